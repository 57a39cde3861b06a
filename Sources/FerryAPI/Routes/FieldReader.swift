internal import FerryCore

/// Reads the members of one object of a body, and words what is wrong with them. `null` equals absent, unknown members
/// are not looked at, and a member that stands twice is refused by name.
struct FieldReader {
    private let object: JSONValue
    /// Where the object stands in the body; nil for the body itself. Spelled out by the caller, so that a good body costs
    /// no building of paths.
    private let place: StaticString?

    init(_ object: JSONValue, at place: StaticString? = nil) {
        self.object = object
        self.place = place
    }

    /// A member's name as messages show it: its place in the body.
    func path(_ name: StaticString) -> String { place.map { "\($0).\(name)" } ?? "\(name)" }

    func value(_ name: StaticString) throws(APIError) -> JSONValue? {
        switch object.member(name) {
        case .absent: return nil
        case .duplicate: throw .duplicate(path(name))
        case .value(let value): return value
        }
    }

    func string(_ name: StaticString) throws(APIError) -> String? {
        guard let value = try value(name) else { return nil }
        guard let text = value.string else { throw .type(path(name), mustBe: "a string") }
        return text
    }

    /// As `string`, but an empty one equals absent: many senders write every field that they know of.
    func nonEmptyString(_ name: StaticString) throws(APIError) -> String? {
        guard let text = try string(name), !text.isEmpty else { return nil }
        return text
    }

    /// A whole number, or a string of its digits: senders write both.
    func integer(_ name: StaticString) throws(APIError) -> Int64? {
        guard let value = try value(name) else { return nil }
        if let number = value.int64 ?? value.string.flatMap({ Int64($0) }) { return number }
        throw .type(path(name), mustBe: "a whole number")
    }

    /// A truth, or a string that spells one.
    func truth(_ name: StaticString) throws(APIError) -> Bool? {
        guard let value = try value(name) else { return nil }
        if let truth = value.bool { return truth }
        switch value.string {
        case "true": return true
        case "false": return false
        default: throw .type(path(name), mustBe: "true or false")
        }
    }

    /// `place` is where that object stands in the body. An empty array equals absent: PHP writes an object without members
    /// as one.
    func object(_ name: StaticString, at place: StaticString) throws(APIError) -> FieldReader? {
        guard let value = try value(name) else { return nil }
        if value.isEmptyArray { return nil }
        guard value.kind == .object else { throw .type(path(name), mustBe: "an object") }
        return FieldReader(value, at: place)
    }

    /// `atMost` so many are read: a long list is refused before it takes memory.
    func strings(_ name: StaticString, atMost limit: Int = .max) throws(APIError) -> [String]? {
        guard let value = try value(name) else { return nil }
        guard let elements = value.elements else { throw .type(path(name), mustBe: "an array of strings") }
        var strings: [String] = []
        for element in elements {
            guard strings.count < limit else { throw .overLimit(path(name), "at most \(limit) in one call") }
            guard let text = element.string else { throw .type(path(name), mustBe: "an array of strings") }
            strings.append(text)
        }
        return strings
    }
}
