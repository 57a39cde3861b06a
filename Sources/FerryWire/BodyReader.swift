internal import FerryCore

/// `ByteReader` with the protocol's errors: what is cut short is 5000, what is too long for its field is 5005.
struct BodyReader {
    private var reader: ByteReader

    init(_ body: UnsafeRawBufferPointer) { reader = ByteReader(body) }

    mutating func byte() throws(WireError) -> UInt8 {
        guard let value = reader.byte() else { throw .shortField }
        return value
    }

    mutating func uint64() throws(WireError) -> UInt64 {
        guard let value = reader.uint64() else { throw .shortField }
        return value
    }

    mutating func varint() throws(WireError) -> UInt64 {
        guard let value = reader.varint() else { throw .badVarint }
        return value
    }

    mutating func identifier() throws(WireError) -> Identifier128 {
        guard let value = reader.identifier() else { throw .shortField }
        return value
    }

    mutating func bytes32() throws(WireError) -> Bytes32 {
        let high = try identifier()
        return Bytes32(high, try identifier())
    }

    mutating func string(limit: Int) throws(WireError) -> UnsafeRawBufferPointer {
        let count = try varint()
        guard count <= UInt64(limit) else { throw .longString }
        guard let bytes = reader.raw(Int(count)) else { throw .shortField }
        return bytes
    }

    mutating func text(limit: Int) throws(WireError) -> String {
        let bytes = try string(limit: limit)
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .badText }
        return text
    }

    mutating func appID() throws(WireError) -> AppID {
        guard let app = AppID(try text(limit: WireLimits.appIDBytes)) else {
            throw WireError(.fieldOutOfRange, "an app id is empty or holds a character that it may not")
        }
        return app
    }

    /// Reads the extensions up to the end of the body and hands each to `take`, known or not.
    mutating func extensions(
        _ take: (_ tag: UInt64, _ bytes: UnsafeRawBufferPointer) throws(WireError) -> Void
    ) throws(WireError) {
        while !reader.isAtEnd {
            guard let tag = reader.varint(), let count = reader.varint(), count <= UInt64(reader.remaining),
                let bytes = reader.raw(Int(count))
            else { throw .badExtension }
            try take(tag, bytes)
        }
    }

    /// Checks that nothing but well-formed extensions follows; all are skipped.
    mutating func end() throws(WireError) {
        try extensions { (_, _) throws(WireError) in }
    }
}
