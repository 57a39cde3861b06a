internal import FerryCore

/// The parameters of a URL's query that a call knows. Others are not looked at; one that stands twice is refused.
struct QueryFields {
    private var values: [String: String] = [:]

    /// `names` are those that the call knows.
    init(_ query: String, names: Set<String>) throws(APIError) {
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard names.contains(name) else { continue }
            guard values[name] == nil else { throw .duplicate(name) }
            values[name] = try Self.decoded(parts.count > 1 ? parts[1] : "", of: name)
        }
    }

    /// nil for one that is not given.
    subscript(name: String) -> String? { values[name] }

    func integer(_ name: String) throws(APIError) -> Int64? {
        guard let text = self[name] else { return nil }
        guard let number = Int64(text) else { throw .type(name, mustBe: "a whole number") }
        return number
    }

    func truth(_ name: String) throws(APIError) -> Bool? {
        switch self[name] {
        case nil: return nil
        case "true", "1": return true
        case "false", "0": return false
        default: throw .type(name, mustBe: "true or false")
        }
    }

    /// With `%20` and the like undone. A plus sign is one.
    private static func decoded(_ text: Substring, of name: String) throws(APIError) -> String {
        guard text.utf8.contains(0x25) else { return String(text) }
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(ASCII.hexValue), let low = rest.popFirst().flatMap(ASCII.hexValue)
            else { throw .invalid(name, "it holds a percent sign without two hex digits") }
            bytes.append(high << 4 | low)
        }
        guard let decoded = String(validating: bytes, as: UTF8.self) else {
            throw .invalid(name, "it is not UTF-8")
        }
        return decoded
    }
}
