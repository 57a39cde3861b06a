/// A request method. Names are case-sensitive (RFC 9110 §9.1), so `get` is `.other`.
package enum HTTPMethod: Hashable, Sendable {
    case get
    case head
    case post
    case put
    case delete
    case other

    init(_ name: some Collection<UInt8>) {
        self =
            if name.elementsEqual("GET".utf8) {
                .get
            } else if name.elementsEqual("POST".utf8) {
                .post
            } else if name.elementsEqual("DELETE".utf8) {
                .delete
            } else if name.elementsEqual("HEAD".utf8) {
                .head
            } else if name.elementsEqual("PUT".utf8) {
                .put
            } else {
                .other
            }
    }
}

/// One whole request.
package struct HTTPRequest: Hashable, Sendable {
    package var method: HTTPMethod
    /// What stands between the slashes of the path, percent-decoded: `/a/b%2Fc/` is `["a", "b/c", ""]`, `/` is `[""]`.
    /// Holds no NUL. No segment means anything by itself here, `..` included.
    package var segments: [String]
    /// What follows the first `?`, not decoded; empty when there is none.
    package var query: String
    package var fields = HTTPFields()
    package var body: [UInt8] = []
    /// Whether the client will use the connection again; the answer must say whether the server does.
    package var keepAlive = true
}

/// The header fields of one request in one block of memory.
package struct HTTPFields: Hashable, Sendable {
    private struct Entry: Hashable, Sendable, BitwiseCopyable {
        var nameStart: Int32
        var valueStart: Int32
        var end: Int32
    }

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []

    package var count: Int { entries.count }

    mutating func append(name: some Collection<UInt8>, value: some Collection<UInt8>) {
        let nameStart = bytes.count
        bytes.append(contentsOf: name)
        let valueStart = bytes.count
        bytes.append(contentsOf: value)
        // Sizes are those of a request's head, bounded by its limits.
        entries.append(
            Entry(
                nameStart: Int32(truncatingIfNeeded: nameStart), valueStart: Int32(truncatingIfNeeded: valueStart),
                end: Int32(truncatingIfNeeded: bytes.count)))
    }

    /// The value of the first field of that name, without white space around it. `name` is given in lower case and
    /// meets any spelling.
    package func first(_ name: StaticString) -> String? {
        for entry in entries where matches(entry, name) {
            return String(decoding: bytes[Int(entry.valueStart)..<Int(entry.end)], as: UTF8.self)
        }
        return nil
    }

    /// The values of all fields of that name.
    func values(_ name: StaticString) -> [ArraySlice<UInt8>] {
        entries.filter { matches($0, name) }.map { bytes[Int($0.valueStart)..<Int($0.end)] }
    }

    /// Whether a comma-separated list of that name holds `token` (given in lower case).
    func lists(_ name: StaticString, _ token: StaticString) -> Bool {
        for entry in entries where matches(entry, name) {
            let value = bytes[Int(entry.valueStart)..<Int(entry.end)]
            for element in value.split(separator: 0x2c) where isEqualIgnoringCase(ASCII.trimmed(element), token) {
                return true
            }
        }
        return false
    }

    private func matches(_ entry: Entry, _ name: StaticString) -> Bool {
        isEqualIgnoringCase(bytes[Int(entry.nameStart)..<Int(entry.valueStart)], name)
    }
}

/// `right` is given in lower case.
func isEqualIgnoringCase(_ left: ArraySlice<UInt8>, _ right: StaticString) -> Bool {
    guard left.count == right.utf8CodeUnitCount else { return false }
    return right.withUTF8Buffer { expected in
        left.indices.allSatisfy { ASCII.lowercased(left[$0]) == expected[$0 - left.startIndex] }
    }
}
