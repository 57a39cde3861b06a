/// `ByteWriter` for memory that is already there: one append to the bytes that it is for, instead of one for each number. Who
/// makes one has measured: running over the end is a bug and traps.
package struct RawWriter {
    @usableFromInline let buffer: UnsafeMutableRawBufferPointer
    /// Where the next byte goes; what was written is before it.
    @usableFromInline package private(set) var offset = 0

    @inlinable package init(_ buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

    /// What was written so far.
    @inlinable package var written: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<offset]) }

    @inlinable package mutating func byte(_ value: UInt8) {
        precondition(offset < buffer.count)
        buffer[offset] = value
        offset += 1
    }

    @inlinable package mutating func uint32(_ value: UInt32) {
        precondition(offset + 4 <= buffer.count)
        buffer.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
        offset += 4
    }

    @inlinable package mutating func uint64(_ value: UInt64) {
        precondition(offset + 8 <= buffer.count)
        buffer.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt64.self)
        offset += 8
    }

    @inlinable package mutating func identifier(_ value: Identifier128) {
        uint64(value.high)
        uint64(value.low)
    }

    @inlinable package mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            byte(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        byte(UInt8(truncatingIfNeeded: rest))
    }

    /// A varint length, then the bytes.
    @inlinable package mutating func string(_ value: [UInt8]) {
        varint(UInt64(value.count))
        for part in value { byte(part) }
    }

    /// Writes over the byte at `place`, which was written before.
    @inlinable package mutating func patch(_ place: Int, _ value: UInt8) {
        precondition(place >= 0 && place < offset)
        buffer[place] = value
    }
}
