/// Writes fields one after the other, each a tag, a length and so many bytes: the form of a frame's extensions, so that a
/// reader skips what it does not know.
package struct TaggedFieldsWriter {
    private var writer = ByteWriter()

    package init() {}

    package var bytes: [UInt8] { writer.bytes }

    package mutating func field(_ tag: UInt64, _ value: some Collection<UInt8>) {
        writer.varint(tag)
        writer.string(value)
    }

    /// Writes nothing where there is none.
    package mutating func text(_ tag: UInt64, _ value: String?) {
        if let value { field(tag, Array(value.utf8)) }
    }

    /// The same.
    package mutating func number(_ tag: UInt64, _ value: UInt64?) {
        guard let value else { return }
        var number = ByteWriter()
        number.varint(value)
        field(tag, number.bytes)
    }

    /// A field whose being there says all.
    package mutating func mark(_ tag: UInt64, _ isSet: Bool) {
        if isSet { field(tag, []) }
    }
}

/// Reads what `TaggedFieldsWriter` writes from bytes that nobody vouches for.
package struct TaggedFieldsReader {
    private var reader: ByteReader
    /// Something is no field; what stood before it has been read.
    package private(set) var isBroken = false

    package init(_ buffer: UnsafeRawBufferPointer) { reader = ByteReader(buffer) }

    /// nil at the end, and at what is no field.
    package mutating func next() -> (tag: UInt64, value: UnsafeRawBufferPointer)? {
        guard !reader.isAtEnd, !isBroken else { return nil }
        guard let tag = reader.varint(), let value = reader.string(limit: reader.remaining) else {
            isBroken = true
            return nil
        }
        return (tag, value)
    }

    /// The number that a whole field is; nil when it is none.
    package static func number(_ value: UnsafeRawBufferPointer) -> UInt64? {
        var reader = ByteReader(value)
        guard let number = reader.varint(), reader.isAtEnd else { return nil }
        return number
    }

    /// The text that a whole field is, ill-formed parts of it replaced.
    package static func text(_ value: UnsafeRawBufferPointer) -> String { String(decoding: value, as: UTF8.self) }
}
