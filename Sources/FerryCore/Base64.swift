/// Bytes as text by RFC 4648 §4: the standard alphabet, padded, without line breaks.
package enum Base64 {
    /// The bytes that `text` spells. nil when it is not the one spelling that they have: a sign that is not in the alphabet,
    /// padding that is missing or stands elsewhere, bits behind the last byte that are not zero.
    package static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        var signs = text[...]
        if signs.last == padding { signs.removeLast() }
        if signs.last == padding { signs.removeLast() }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(signs.count / 4 * 3 + 2)
        var gathered: UInt32 = 0
        var bits = 0
        for sign in signs {
            guard let value = value(of: sign) else { return nil }
            gathered = gathered << 6 | value
            bits += 6
            guard bits >= 8 else { continue }
            bits -= 8
            bytes.append(UInt8(truncatingIfNeeded: gathered >> UInt32(bits)))
            gathered &= (1 << UInt32(bits)) - 1
        }
        // One sign alone is no byte: 6 bits are left over only then.
        guard gathered == 0, bits < 6 else { return nil }
        return bytes
    }

    private static let padding: UInt8 = 0x3d

    private static func value(of sign: UInt8) -> UInt32? {
        switch sign {
        case 0x41...0x5a: UInt32(sign) - 0x41
        case 0x61...0x7a: UInt32(sign) - 0x61 + 26
        case 0x30...0x39: UInt32(sign) - 0x30 + 52
        case 0x2b: 62
        case 0x2f: 63
        default: nil
        }
    }
}
