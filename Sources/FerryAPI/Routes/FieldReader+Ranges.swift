/// Members with a range or a length; what breaks it is refused with the value and the rule.
extension FieldReader {
    /// A whole number within `range`.
    func integer(_ name: StaticString, in range: ClosedRange<Int64>) throws(APIError) -> Int64? {
        guard let value = try integer(name) else { return nil }
        guard range.contains(value) else {
            throw .invalid(path(name), "\(value), must be \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    /// A text of at most so many characters (Unicode scalars); an empty one equals absent.
    func text(_ name: StaticString, upTo most: Int) throws(APIError) -> String? {
        guard let text = try nonEmptyString(name) else { return nil }
        // Bytes first, so that a long one is not counted through.
        guard text.utf8.count > most else { return text }
        let characters = text.unicodeScalars.count
        guard characters <= most else { throw .overLimit(path(name), "\(characters) characters, at most \(most)") }
        return text
    }

    /// The same, and it must be there.
    func requiredText(_ name: StaticString, upTo most: Int) throws(APIError) -> String {
        guard let text = try text(name, upTo: most) else { throw .empty(path(name)) }
        return text
    }

    /// Two members of which a sender may name one.
    func chooseOne(_ first: StaticString, _ second: StaticString) throws(APIError) {
        guard try value(first) != nil, try value(second) != nil else { return }
        throw .badParameter("\(path(first)) and \(path(second)) cannot setting at same time")
    }
}
