/// One header or trailer line (RFC 9112 §5), read.
struct FieldLine: Hashable {
    let name: ArraySlice<UInt8>
    /// Without white space around it.
    let value: ArraySlice<UInt8>

    init(_ line: ArraySlice<UInt8>) throws(HTTPRefusal) {
        if let first = line.first, first == ASCII.space || first == ASCII.tab {
            throw .malformed("a header line is folded")
        }
        guard let colon = line.firstIndex(of: 0x3a) else { throw .malformed("a header line has no colon") }
        name = line[..<colon]
        // White space before the colon is refused with all else that is no name (RFC 9112 §5.1).
        guard !name.isEmpty, name.allSatisfy(ASCII.isToken) else { throw .malformed("a header name is malformed") }
        value = ASCII.trimmed(line[(colon + 1)...])
        guard value.allSatisfy(ASCII.isFieldValue) else {
            throw .malformed("a header value holds a control character")
        }
    }
}

/// How the length of a body is known (RFC 9112 §6), and what else the header asks of the server.
struct MessageFraming: Hashable {
    enum Length: Hashable {
        case fixed(Int)
        case chunked
    }

    let length: Length
    let keepAlive: Bool
    let expectsContinue: Bool

    init(_ fields: HTTPFields, isVersion10: Bool, bodyLimit: Int) throws(HTTPRefusal) {
        let hosts = fields.values("host")
        guard hosts.count <= 1, hosts.allSatisfy({ $0.allSatisfy(ASCII.isAuthority) }) else {
            throw .malformed("the Host header is malformed or stands twice")
        }
        guard isVersion10 || hosts.count == 1 else { throw .malformed("the Host header is missing") }
        length = try Self.length(fields, isVersion10: isVersion10, bodyLimit: bodyLimit)

        let closes = fields.lists("connection", "close")
        keepAlive = isVersion10 ? !closes && fields.lists("connection", "keep-alive") : !closes

        let expectations = fields.values("expect")
        guard expectations.allSatisfy({ isEqualIgnoringCase($0, "100-continue") }) else {
            throw HTTPRefusal(417, "only the expectation 100-continue can be met")
        }
        // RFC 9110 §10.1.1: a 1.0 client knows no interim answer, and without a body there is nothing to wait for.
        expectsContinue = !expectations.isEmpty && !isVersion10 && length != .fixed(0)
    }

    /// Two lengths, or a length that peers may read differently, are how requests are smuggled past a proxy: refused.
    private static func length(
        _ fields: HTTPFields, isVersion10: Bool, bodyLimit: Int
    ) throws(HTTPRefusal) -> Length {
        let codings = fields.values("transfer-encoding")
        let lengths = fields.values("content-length")
        if let coding = codings.first {
            guard lengths.isEmpty else { throw .malformed("both Transfer-Encoding and Content-Length are given") }
            guard !isVersion10 else { throw .malformed("HTTP/1.0 has no Transfer-Encoding") }
            guard codings.count == 1, isEqualIgnoringCase(coding, "chunked") else {
                throw HTTPRefusal(501, "the only transfer coding understood is chunked")
            }
            return .chunked
        }
        var length: Int?
        for text in lengths {
            guard !text.isEmpty, text.allSatisfy(ASCII.isDigit) else {
                throw .malformed("Content-Length is not a number")
            }
            var number = 0
            for digit in text {
                let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
                let (sum, carry) = tens.addingReportingOverflow(Int(digit) - 0x30)
                guard !overflow, !carry else { throw .bodyTooLarge }
                number = sum
            }
            guard length == nil || length == number else { throw .malformed("two values of Content-Length differ") }
            length = number
        }
        guard let length else { return .fixed(0) }
        guard length <= bodyLimit else { throw .bodyTooLarge }
        return .fixed(length)
    }
}
