/// A request that cannot be read to its end. Where the next one would begin is unknown, so after the answer the
/// connection must be closed.
package struct HTTPRefusal: Error, Hashable, Sendable {
    /// 4xx or 5xx.
    package let status: Int
    /// For the sender; holds nothing that the sender wrote.
    package let message: String

    init(_ status: Int, _ message: String) {
        self.status = status
        self.message = message
    }

    static func malformed(_ message: String) -> Self { HTTPRefusal(400, message) }

    static let bareLineFeed = malformed("a line ends without carriage return")
    static let requestLineTooLong = HTTPRefusal(414, "the request line is too long")
    static let headerTooLarge = HTTPRefusal(431, "the header is too large")
    static let bodyTooLarge = HTTPRefusal(413, "the body is too large")
}

/// What a decoder has to say.
package enum HTTPDecoded: Hashable, Sendable {
    /// Nothing, until more bytes come.
    case needsMore
    /// The client waits for `100 Continue` before it sends the body; said once a request.
    case expectsContinue
    case request(HTTPRequest)
    case refused(HTTPRefusal)
}
