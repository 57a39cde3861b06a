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
    @inlinable package mutating func hexadecimal(_ value: UInt64) {
        uint64(Self.eightDigits(UInt32(truncatingIfNeeded: value >> 32)))
        uint64(Self.eightDigits(UInt32(truncatingIfNeeded: value)))
    }

    /// The digits of `value`, the first in the highest byte, all at once: each of the eight nibbles gets a byte of its own, and
    /// those above 9 the distance from "9" to "a".
    @inlinable static func eightDigits(_ value: UInt32) -> UInt64 {
        var spread = UInt64(value)
        spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff
        spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff
        spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f
        let isLetter = (spread &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return spread &+ 0x3030_3030_3030_3030 &+ isLetter &* 39
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
