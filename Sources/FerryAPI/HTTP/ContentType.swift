/// What a request says of the form of its body.
package enum ContentType: Hashable, Sendable {
    /// `application/json`, in UTF-8 as far as it says so; or nothing: many clients say nothing.
    case json
    /// `application/octet-stream`.
    case bytes
    /// Another one, or one that is coded in a way that is not understood here.
    case other
}

extension HTTPFields {
    /// Of the fields `Content-Type` and `Content-Encoding`. Makes no copy: every new head is asked.
    package var contentType: ContentType {
        var type = ContentType.json
        for index in 0..<count {
            if isNamed(index, "content-type") {
                type = Self.type(value(index))
                guard type != .other else { return .other }
            } else if isNamed(index, "content-encoding"), !isEqualIgnoringCase(value(index), "identity") {
                return .other
            }
        }
        return type
    }

    /// A media type and its parameters (RFC 9110 §8.3).
    private static func type(_ value: ArraySlice<UInt8>) -> ContentType {
        let end = value.firstIndex(of: 0x3b) ?? value.endIndex
        let essence = ASCII.trimmed(value[..<end])
        if essence.isEmpty { return .json }
        if isEqualIgnoringCase(essence, "application/octet-stream") { return .bytes }
        guard isEqualIgnoringCase(essence, "application/json") else { return .other }
        for parameter in value[end...].split(separator: 0x3b) {
            let parts = parameter.split(separator: 0x3d, maxSplits: 1)
            guard parts.count == 2, isEqualIgnoringCase(ASCII.trimmed(parts[0]), "charset") else { continue }
            var name = ASCII.trimmed(parts[1])
            if name.count >= 2, name.first == 0x22, name.last == 0x22 { name = name.dropFirst().dropLast() }
            guard isEqualIgnoringCase(name, "utf-8") || isEqualIgnoringCase(name, "utf8") else { return .other }
        }
        return .json
    }
}
