/// Lower-case hexadecimal text, as `cid`, `msgid` and device tokens are written outside the process.
package enum Hexadecimal {
    /// The two-digits-a-byte text of `bytes`.
    package static func encode(_ bytes: some Swift.Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 15))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends the 32 digits of `value`.
    package static func append(_ value: Identifier128, to text: inout [UInt8]) {
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { room in
            room.storeBytes(of: digits(UInt32(truncatingIfNeeded: value.high >> 32)), as: UInt64.self)
            room.storeBytes(of: digits(UInt32(truncatingIfNeeded: value.high)), toByteOffset: 8, as: UInt64.self)
            room.storeBytes(of: digits(UInt32(truncatingIfNeeded: value.low >> 32)), toByteOffset: 16, as: UInt64.self)
            room.storeBytes(of: digits(UInt32(truncatingIfNeeded: value.low)), toByteOffset: 24, as: UInt64.self)
            text.append(contentsOf: room)
        }
    }

    /// The eight digits of `number`, as they lie in memory: all at once, a byte each.
    static func digits(_ number: UInt32) -> UInt64 {
        // Spread: each step halves the groups and doubles the room between them, until each nibble has its own byte.
        var spread = UInt64(number)
        spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff
        spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff
        spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f
        // 6 more and a nibble of 10 or above reaches the fifth bit: letters begin 39 after the place behind the nine.
        let letters = (spread &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return (spread &+ 0x3030_3030_3030_3030 &+ letters &* 39).bigEndian
    }

    /// The number that exactly 32 digits of either case spell.
    package static func identifier(_ digits: UnsafeBufferPointer<UInt8>) -> Identifier128? {
        guard digits.count == 32, let high = half(digits, 0), let low = half(digits, 16) else { return nil }
        return Identifier128(high: high, low: low)
    }

    private static func half(_ digits: UnsafeBufferPointer<UInt8>, _ start: Int) -> UInt64? {
        var number: UInt64 = 0
        for index in start..<start + 16 {
            guard let nibble = value(digits[index]) else { return nil }
            number = number << 4 | UInt64(nibble)
        }
        return number
    }

    /// The bytes that `text` spells, or nil when it holds anything but an even number of hex digits (either case).
    package static func decode(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// The ASCII digit of a nibble (0...15).
    static func digit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? 48 + nibble : 87 + nibble }

    /// The nibble that an ASCII digit stands for, in either case.
    static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 48...57: digit - 48
        case 97...102: digit - 87
        case 65...70: digit - 55
        default: nil
        }
    }
}
