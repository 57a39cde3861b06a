/// Reads what `ByteWriter` writes from bytes that nobody vouches for: every read is bounded and answers nil instead of
/// trapping. It borrows its buffer, so it must not outlive the closure that lent it.
package struct ByteReader {
    private let buffer: UnsafeRawBufferPointer
    /// The next byte to read, 0...count.
    package private(set) var offset: Int

    package init(_ buffer: UnsafeRawBufferPointer) {
        self.buffer = buffer
        offset = 0
    }

    package var remaining: Int { buffer.count - offset }
    package var isAtEnd: Bool { remaining == 0 }

    package mutating func byte() -> UInt8? {
        guard remaining >= 1 else { return nil }
        defer { offset += 1 }
        return buffer[offset]
    }

    package mutating func uint32() -> UInt32? {
        guard remaining >= 4 else { return nil }
        defer { offset += 4 }
        return UInt32(bigEndian: buffer.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    package mutating func uint64() -> UInt64? {
        guard remaining >= 8 else { return nil }
        defer { offset += 8 }
        return UInt64(bigEndian: buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    package mutating func identifier() -> Identifier128? {
        guard remaining >= 16, let high = uint64(), let low = uint64() else { return nil }
        return Identifier128(high: high, low: low)
    }

    /// nil when the bytes end early, the value passes 64 bits, or the last group of several is zero (one number has one
    /// spelling, so that a signature over bytes is one over values).
    package mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        var cursor = offset
        while cursor < buffer.count {
            let byte = buffer[cursor]
            cursor += 1
            let group = UInt64(byte & 0x7f)
            if shift == 63 && group > 1 { return nil }
            value |= group << shift
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 { return nil }
                offset = cursor
                return value
            }
            shift += 7
            if shift > 63 { return nil }
        }
        return nil
    }

    /// The next `count` bytes.
    package mutating func raw(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, remaining >= count else { return nil }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: buffer[offset..<offset + count])
    }

    /// A varint length of at most `limit`, then as many bytes.
    package mutating func string(limit: Int) -> UnsafeRawBufferPointer? {
        let start = offset
        guard let count = varint(), count <= UInt64(limit), let bytes = raw(Int(count)) else {
            offset = start
            return nil
        }
        return bytes
    }
}
