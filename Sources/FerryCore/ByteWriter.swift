/// Appends numbers and strings in the two forms that frames and records use: big-endian, and LEB128 varints.
package struct ByteWriter {
    package var bytes: [UInt8]

    package init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    package mutating func byte(_ value: UInt8) { bytes.append(value) }

    package mutating func uint32(_ value: UInt32) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func uint64(_ value: UInt64) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func identifier(_ value: Identifier128) {
        withUnsafeBytes(of: (value.high.bigEndian, value.low.bigEndian)) { bytes.append(contentsOf: $0) }
    }

    /// Least significant group first, 7 bits a byte, the high bit says that more follow; 1...10 bytes.
    package mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    package mutating func raw(_ value: UnsafeRawBufferPointer) { bytes.append(contentsOf: value) }

    package mutating func raw(_ value: some Swift.Sequence<UInt8>) {
        // From its storage where it lends it: walking a sequence of any type is slow across modules.
        if value.withContiguousStorageIfAvailable({ bytes.append(contentsOf: $0) }) == nil {
            bytes.append(contentsOf: value)
        }
    }

    /// A varint length, then the bytes.
    package mutating func string(_ value: UnsafeRawBufferPointer) {
        varint(UInt64(value.count))
        raw(value)
    }

    /// The same.
    package mutating func string(_ value: some Collection<UInt8>) {
        varint(UInt64(value.count))
        raw(value)
    }

    /// How many bytes `varint` writes for `value`.
    package static func varintSize(_ value: UInt64) -> Int {
        value == 0 ? 1 : (70 - value.leadingZeroBitCount) / 7
    }
}
