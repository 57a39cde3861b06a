/// The first line of a request (RFC 9112 §3), read.
struct RequestLine: Hashable {
    var method: HTTPMethod
    var segments: [String]
    var query: String
    /// HTTP/1.0; all else here is 1.1 or a later minor version, which a 1.1 server treats as 1.1 (RFC 9110 §2.5).
    var isVersion10: Bool

    init(_ line: ArraySlice<UInt8>) throws(HTTPRefusal) {
        let parts = line.split(separator: ASCII.space, maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(ASCII.isToken) else {
            throw .malformed("the request line is not: method, target, version")
        }
        method = HTTPMethod(parts[0])
        isVersion10 = try Self.isVersion10(parts[2])
        (segments, query) = try Self.readTarget(parts[1])
    }

    private static func isVersion10(_ version: ArraySlice<UInt8>) throws(HTTPRefusal) -> Bool {
        guard version.count == 8, version.starts(with: "HTTP/".utf8), let minor = version.last, ASCII.isDigit(minor),
            version[version.startIndex + 6] == 0x2e, ASCII.isDigit(version[version.startIndex + 5])
        else { throw .malformed("the request line names no HTTP version") }
        // The preface of HTTP/2, `PRI * HTTP/2.0`, ends here.
        guard version[version.startIndex + 5] == 0x31 else {
            throw HTTPRefusal(505, "only HTTP/1.1 and HTTP/1.0 are spoken here")
        }
        return minor == 0x30
    }

    private static func readTarget(_ target: ArraySlice<UInt8>) throws(HTTPRefusal) -> ([String], String) {
        guard !target.isEmpty, target.allSatisfy({ (0x21...0x7e).contains($0) && $0 != 0x23 }) else {
            throw .malformed("the request target holds a character that must be percent-encoded")
        }
        let origin = try originForm(target)
        let end = origin.firstIndex(of: 0x3f) ?? origin.endIndex
        var segments: [String] = []
        // An absolute target may have no path at all; it means `/` (RFC 9110 §4.2.3).
        for segment in origin[..<end].dropFirst()
            .split(separator: 0x2f, maxSplits: .max, omittingEmptySubsequences: false)
        {
            segments.append(try percentDecoded(segment))
        }
        return (segments, String(decoding: origin[end...].dropFirst(), as: UTF8.self))
    }

    /// Cuts scheme and authority off an absolute target. Which host is meant makes no difference to this server.
    private static func originForm(_ target: ArraySlice<UInt8>) throws(HTTPRefusal) -> ArraySlice<UInt8> {
        if target.first == 0x2f || target.elementsEqual("*".utf8) { return target }
        for scheme in ["http://", "https://"] as [StaticString] {
            let head = target.prefix(scheme.utf8CodeUnitCount)
            guard isEqualIgnoringCase(head, scheme) else { continue }
            let rest = target[head.endIndex...]
            let end = rest.firstIndex { $0 == 0x2f || $0 == 0x3f } ?? rest.endIndex
            guard end > rest.startIndex, rest[..<end].allSatisfy(ASCII.isAuthority) else { break }
            if end == rest.endIndex || rest[end] == 0x2f { return rest[end...] }
            return [0x2f] + rest[end...]
        }
        throw .malformed("the request target is neither a path nor an http URL")
    }

    static func percentDecoded(_ text: ArraySlice<UInt8>) throws(HTTPRefusal) -> String {
        guard text.contains(0x25) else { return String(decoding: text, as: UTF8.self) }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(text.count)
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                decoded.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(ASCII.hexValue), let low = rest.popFirst().flatMap(ASCII.hexValue)
            else { throw .malformed("the request target holds a percent sign without two hex digits") }
            decoded.append(high << 4 | low)
        }
        guard !decoded.contains(0), let text = String(validating: decoded, as: UTF8.self) else {
            throw .malformed("the request target decodes to text that is no UTF-8 or holds NUL")
        }
        return text
    }
}
