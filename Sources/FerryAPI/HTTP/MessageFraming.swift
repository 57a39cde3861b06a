/// How the length of a body is known (RFC 9112 §6), and what else a header asks of the server.
struct MessageFraming: Hashable {
    enum Length: Hashable {
        case fixed(Int)
        case chunked
    }

    private(set) var length = Length.fixed(0)
    private(set) var keepAlive: Bool
    private(set) var expectsContinue = false

    /// A body of one stated length, or none, and nobody waits: all that most requests have.
    private(set) var isPlain = false

    /// Two lengths, or a length that peers may read differently, are how requests are smuggled past a proxy: refused.
    init(_ fields: HTTPFields, isVersion10: Bool, bodyLimit: Int) throws(HTTPRefusal) {
        var (hosts, codings) = (0, 0)
        var contentLength: Int?
        var lengths = 0
        var (closes, keeps) = (false, false)
        for index in 0..<fields.count {
            if fields.isNamed(index, "host") {
                hosts += 1
                guard hosts == 1, fields.value(index).allSatisfy(ASCII.isAuthority) else {
                    throw .malformed("the Host header is malformed or stands twice")
                }
            } else if fields.isNamed(index, "content-length") {
                let number = try Self.number(fields.value(index))
                guard contentLength == nil || contentLength == number else {
                    throw .malformed("two values of Content-Length differ")
                }
                contentLength = number
                lengths += 1
            } else if fields.isNamed(index, "transfer-encoding") {
                codings += 1
                guard codings == 1, isEqualIgnoringCase(fields.value(index), "chunked") else {
                    throw HTTPRefusal(501, "the only transfer coding understood is chunked")
                }
            } else if fields.isNamed(index, "connection") {
                for option in fields.value(index).split(separator: 0x2c) {
                    let option = ASCII.trimmed(option)
                    closes = closes || isEqualIgnoringCase(option, "close")
                    keeps = keeps || isEqualIgnoringCase(option, "keep-alive")
                }
            } else if fields.isNamed(index, "expect") {
                guard isEqualIgnoringCase(fields.value(index), "100-continue") else {
                    throw HTTPRefusal(417, "only the expectation 100-continue can be met")
                }
                expectsContinue = true
            }
        }
        guard isVersion10 || hosts == 1 else { throw .malformed("the Host header is missing") }
        keepAlive = isVersion10 ? keeps && !closes : !closes
        if codings > 0 {
            guard contentLength == nil else {
                throw .malformed("both Transfer-Encoding and Content-Length are given")
            }
            guard !isVersion10 else { throw .malformed("HTTP/1.0 has no Transfer-Encoding") }
            length = .chunked
        } else if let contentLength {
            guard contentLength <= bodyLimit else { throw .bodyTooLarge }
            length = .fixed(contentLength)
        }
        // RFC 9110 §10.1.1: a 1.0 client knows no interim answer, and without a body there is nothing to wait for.
        let isExpecting = expectsContinue
        expectsContinue = expectsContinue && !isVersion10 && length != .fixed(0)
        isPlain = codings == 0 && lengths < 2 && !isExpecting
    }

    private static func number(_ text: ArraySlice<UInt8>) throws(HTTPRefusal) -> Int {
        guard !text.isEmpty, text.allSatisfy(ASCII.isDigit) else { throw .malformed("Content-Length is not a number") }
        var number = 0
        for digit in text {
            let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tens.addingReportingOverflow(Int(digit) - 0x30)
            guard !overflow, !carry else { throw .bodyTooLarge }
            number = sum
        }
        return number
    }
}
