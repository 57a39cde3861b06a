internal import FerryCore

/// An answer, ready to be written.
package struct HTTPResponse: Hashable, Sendable {
    /// 200...599.
    package var status: Int
    /// JSON.
    package var body: [UInt8]
    package var retryAfterSeconds: Int?
    /// The methods that the path takes; for 405.
    package var allow: String?

    package init(status: Int, body: [UInt8], retryAfterSeconds: Int? = nil, allow: String? = nil) {
        self.status = status
        self.body = body
        self.retryAfterSeconds = retryAfterSeconds
        self.allow = allow
    }

    /// The answer to a request that could not be read: the API's envelope, with the HTTP status as its code. Send it
    /// with `keepAlive: false`.
    package init(_ refusal: HTTPRefusal) {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("code", Int64(refusal.status))
        writer.member("msg", refusal.message)
        writer.endObject()
        self.init(status: refusal.status, body: writer.bytes)
    }

    /// What a client waits for that sent `Expect: 100-continue`.
    package static let continueBytes = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    /// Appends the answer's bytes. Without `includesBody` (an answer to HEAD) only the body's length is told.
    package func encode(into bytes: inout [UInt8], keepAlive: Bool, includesBody: Bool = true) {
        bytes.reserveCapacity(bytes.count + 192 + body.count)
        bytes.append(contentsOf: "HTTP/1.1 ".utf8)
        bytes.append(contentsOf: String(status).utf8)
        bytes.append(0x20)
        bytes.append(contentsOf: Self.reason(status).utf8)
        bytes.append(contentsOf: "\r\nContent-Type: application/json;charset=utf-8\r\nContent-Length: ".utf8)
        bytes.append(contentsOf: String(body.count).utf8)
        // Said in both cases, because a 1.0 client takes silence for "close" and a 1.1 client for "keep-alive".
        bytes.append(contentsOf: (keepAlive ? "\r\nConnection: keep-alive" : "\r\nConnection: close").utf8)
        if let retryAfterSeconds {
            bytes.append(contentsOf: "\r\nRetry-After: \(max(0, retryAfterSeconds))".utf8)
        }
        if let allow { bytes.append(contentsOf: "\r\nAllow: \(allow)".utf8) }
        bytes.append(contentsOf: "\r\n\r\n".utf8)
        if includesBody { bytes.append(contentsOf: body) }
    }

    private static func reason(_ status: Int) -> StaticString {
        switch status {
        case 200: "OK"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 409: "Conflict"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 501: "Not Implemented"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        default: "Status"
        }
    }
}

extension StaticString {
    var utf8: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)
    }
}
