internal import CSimdJSON

/// A value in a text that a `JSONParser` lends; see there for how long it lives. Every question may be asked of every
/// kind of value: the answer is nil where it makes no sense.
package struct JSONValue {
    package enum Kind: Hashable, Sendable {
        case null
        case bool
        /// Fits `Int64`.
        case integer
        /// Any other number.
        case number
        case string
        case array
        case object
    }

    /// What an object says under a name.
    package enum Member {
        /// No such member, or JSON `null`, or this is no object.
        case absent
        /// The name stands twice. Readers disagree on which one counts, so nobody is asked to guess.
        case duplicate
        case value(JSONValue)
    }

    private let value: csimdjson_value

    init(_ value: csimdjson_value) { self.value = value }

    package var kind: Kind {
        switch csimdjson_kind_of(value) {
        case CSIMDJSON_KIND_BOOL: .bool
        case CSIMDJSON_KIND_INTEGER: .integer
        case CSIMDJSON_KIND_NUMBER: .number
        case CSIMDJSON_KIND_STRING: .string
        case CSIMDJSON_KIND_ARRAY: .array
        case CSIMDJSON_KIND_OBJECT: .object
        default: .null
        }
    }

    package var isNull: Bool { kind == .null }

    /// The member of that name; names are compared with their escapes resolved.
    package func member(_ name: StaticString) -> Member {
        var found = csimdjson_value()
        switch csimdjson_member(value, name.utf8Start, name.utf8CodeUnitCount, &found) {
        case CSIMDJSON_OK:
            let member = JSONValue(found)
            return member.isNull ? .absent : .value(member)
        case CSIMDJSON_DUPLICATE: return .duplicate
        default: return .absent
        }
    }

    /// The string with its escapes resolved. It may hold NUL.
    package var string: String? { withStringBytes { String(decoding: $0, as: UTF8.self) } }

    /// The bytes of `string`.
    package var stringBytes: [UInt8]? { withStringBytes { Array($0) } }

    /// Lends the bytes of `string`.
    package func withStringBytes<Answer>(_ body: (UnsafeBufferPointer<UInt8>) -> Answer) -> Answer? {
        var start: UnsafePointer<UInt8>?
        var count = 0
        guard csimdjson_string(value, &start, &count) == CSIMDJSON_OK else { return nil }
        return body(UnsafeBufferPointer(start: start, count: count))
    }

    /// The number, when it is written without fraction and exponent and fits.
    package var int64: Int64? {
        var number: Int64 = 0
        return csimdjson_int64(value, &number) == CSIMDJSON_OK ? number : nil
    }

    package var bool: Bool? {
        var truth: Int32 = 0
        return csimdjson_bool(value, &truth) == CSIMDJSON_OK ? truth != 0 : nil
    }

    /// The elements of an array.
    package var elements: JSONElements? {
        var walk = csimdjson_walk()
        return csimdjson_elements(value, &walk) == CSIMDJSON_OK ? JSONElements(walk) : nil
    }

    /// An array, and one with nothing in it.
    package var isEmptyArray: Bool {
        guard let elements else { return false }
        for _ in elements { return false }
        return true
    }

    /// The value's text without white space; nil when there is no memory.
    package var minified: [UInt8]? {
        var text: [UInt8] = []
        let status = withUnsafeMutablePointer(to: &text) { pointer in
            csimdjson_minify(value, pointer) { context, bytes, count in
                guard let context else { return }
                context.assumingMemoryBound(to: [UInt8].self).pointee
                    .append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
            }
        }
        return status == CSIMDJSON_OK ? text : nil
    }
}

/// The elements of an array, each taken once; a copy of it walks by itself.
package struct JSONElements: Sequence, IteratorProtocol {
    private var walk: csimdjson_walk

    init(_ walk: csimdjson_walk) { self.walk = walk }

    package mutating func next() -> JSONValue? {
        var element = csimdjson_value()
        return csimdjson_next(&walk, &element) == CSIMDJSON_OK ? JSONValue(element) : nil
    }
}
