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
        if entries.isEmpty {
            // What a usual client's header takes; saves growing step by step.
            entries.reserveCapacity(12)
            bytes.reserveCapacity(384)
        }
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
        for index in entries.indices where isNamed(index, name) {
            return String(decoding: value(index), as: UTF8.self)
        }
        return nil
    }

    /// Whether field `index` (of `count`) has that name, given in lower case.
    func isNamed(_ index: Int, _ name: StaticString) -> Bool {
        let entry = entries[index]
        let start = Int(entry.nameStart)
        guard Int(entry.valueStart) - start == name.utf8CodeUnitCount else { return false }
        let span = bytes.span
        return name.withUTF8Buffer { expected in
            for offset in expected.indices where ASCII.lowercased(span[start + offset]) != expected[offset] {
                return false
            }
            return true
        }
    }

    /// Field `index` has another value from now on.
    mutating func replaceValue(_ index: Int, with value: ArraySlice<UInt8>) {
        let old = entries[index]
        bytes.replaceSubrange(Int(old.valueStart)..<Int(old.end), with: value)
        let grown = Int32(truncatingIfNeeded: value.count) - (old.end - old.valueStart)
        guard grown != 0 else { return }
        entries[index].end += grown
        for later in entries.indices.dropFirst(index + 1) {
            entries[later].nameStart += grown
            entries[later].valueStart += grown
            entries[later].end += grown
        }
    }

    func value(_ index: Int) -> ArraySlice<UInt8> {
        let entry = entries[index]
        return bytes[Int(entry.valueStart)..<Int(entry.end)]
    }
}

/// `right` is given in lower case.
func isEqualIgnoringCase(_ left: ArraySlice<UInt8>, _ right: StaticString) -> Bool {
    guard left.count == right.utf8CodeUnitCount else { return false }
    return right.withUTF8Buffer { expected in
        left.indices.allSatisfy { ASCII.lowercased(left[$0]) == expected[$0 - left.startIndex] }
    }
}
