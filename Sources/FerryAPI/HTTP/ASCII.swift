/// The sets of bytes that HTTP's grammar is made of.
enum ASCII {
    static let tab: UInt8 = 0x09
    static let lineFeed: UInt8 = 0x0a
    static let carriageReturn: UInt8 = 0x0d
    static let space: UInt8 = 0x20

    static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }

    static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

    /// `tchar` of RFC 9110 §5.6.2: what methods and field names are made of.
    static func isToken(_ byte: UInt8) -> Bool {
        if isDigit(byte) || isLetter(byte) { return true }
        switch byte {
        case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x5e, 0x5f, 0x60, 0x7c, 0x7e: return true
        default: return false
        }
    }

    /// What a field value may hold (RFC 9110 §5.5): no control character but the tab.
    static func isFieldValue(_ byte: UInt8) -> Bool { byte == tab || (byte >= 0x20 && byte != 0x7f) }

    /// What a host and port are made of (RFC 3986 §3.2), brackets of IPv6 and percent signs included.
    static func isAuthority(_ byte: UInt8) -> Bool {
        if isDigit(byte) || isLetter(byte) { return true }
        switch byte {
        case 0x21, 0x24...0x2e, 0x3a, 0x3b, 0x3d, 0x5b, 0x5d, 0x5f, 0x7e: return true
        default: return false
        }
    }

    /// Where the first line feed at or after `start` is. Sixteen bytes at a time: every byte of a head is looked at here.
    static func firstLineFeed(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        let wanted = SIMD16<UInt8>(repeating: lineFeed)
        var index = max(0, start)
        while index + 16 <= bytes.count {
            let block = bytes.loadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
            let hits = block .== wanted
            if any(hits) {
                for lane in 0..<16 where hits[lane] { return index + lane }
            }
            index += 16
        }
        while index < bytes.count {
            if bytes[index] == lineFeed { return index }
            index += 1
        }
        return nil
    }

    /// Whether both hold the same `count` bytes from these places on; both have as many. Sixteen bytes at a time.
    static func isSame(_ left: [UInt8], _ leftStart: Int, _ right: [UInt8], _ rightStart: Int, count: Int) -> Bool {
        left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in
                var index = 0
                while index + 16 <= count {
                    let one = left.loadUnaligned(fromByteOffset: leftStart + index, as: SIMD16<UInt8>.self)
                    let other = right.loadUnaligned(fromByteOffset: rightStart + index, as: SIMD16<UInt8>.self)
                    if one != other { return false }
                    index += 16
                }
                while index < count {
                    if left[leftStart + index] != right[rightStart + index] { return false }
                    index += 1
                }
                return true
            }
        }
    }

    /// The number that a hex digit of either case stands for.
    static func hexValue(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x37
        case 0x61...0x66: digit - 0x57
        default: nil
        }
    }

    /// Without spaces and tabs at both ends.
    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = bytes
        while let first = rest.first, first == space || first == tab { rest.removeFirst() }
        while let last = rest.last, last == space || last == tab { rest.removeLast() }
        return rest
    }
}
