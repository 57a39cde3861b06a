/// `ByteWriter` for memory that is already there: one append to the bytes that it is for, instead of one for each number. Who
/// makes one has measured: running over the end is a bug and traps.
package struct RawWriter {
    @usableFromInline let buffer: UnsafeMutableRawBufferPointer
    /// Where the next byte goes; what was written is before it.
    @usableFromInline package private(set) var offset = 0

    @inlinable package init(_ buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

    /// What was written so far.
    @inlinable @inline(__always) package var written: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: buffer[..<offset])
    }

    @inlinable @inline(__always) package mutating func byte(_ value: UInt8) {
        precondition(offset < buffer.count)
        buffer[offset] = value
        offset += 1
    }

    @inlinable @inline(__always) package mutating func uint32(_ value: UInt32) {
        precondition(offset + 4 <= buffer.count)
        buffer.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
        offset += 4
    }

    @inlinable @inline(__always) package mutating func uint64(_ value: UInt64) {
        precondition(offset + 8 <= buffer.count)
        buffer.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt64.self)
        offset += 8
    }

    @inlinable @inline(__always) package mutating func identifier(_ value: Identifier128) {
        uint64(value.high)
        uint64(value.low)
    }

    @inlinable @inline(__always) package mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            byte(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        byte(UInt8(truncatingIfNeeded: rest))
    }

    /// 16 digits, lower case, most significant first.
    package mutating func hexadecimal(_ value: UInt64) {
        precondition(offset + 16 <= buffer.count)
        let (high, low) = (UInt32(truncatingIfNeeded: value >> 32), UInt32(truncatingIfNeeded: value))
        buffer.storeBytes(of: Hexadecimal.digits(high), toByteOffset: offset, as: UInt64.self)
        buffer.storeBytes(of: Hexadecimal.digits(low), toByteOffset: offset + 8, as: UInt64.self)
        offset += 16
    }

    /// A varint length, then the bytes.
    @inlinable @inline(__always) package mutating func string(_ value: [UInt8]) {
        varint(UInt64(value.count))
        for part in value { byte(part) }
    }

    /// Writes over the byte at `place`, which was written before.
    @inlinable @inline(__always) package mutating func patch(_ place: Int, _ value: UInt8) {
        precondition(place >= 0 && place < offset)
        buffer[place] = value
    }
}
