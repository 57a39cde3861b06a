/// Writes JSON text, member by member; it puts the commas. The caller closes what it opens.
package struct JSONWriter {
    package private(set) var bytes: [UInt8] = []
    private var needsComma = false

    package init() { bytes.reserveCapacity(256) }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    package mutating func beginObject() { open(0x7b) }
    package mutating func endObject() { close(0x7d) }
    package mutating func beginArray() { open(0x5b) }
    package mutating func endArray() { close(0x5d) }

    /// A member's name; its value follows.
    package mutating func name(_ text: String) {
        string(text)
        bytes.append(0x3a)
        needsComma = false
    }

    /// A member's name that is known to need no escapes.
    package mutating func name(_ text: StaticString) {
        separate()
        bytes.append(0x22)
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        bytes.append(0x22)
        bytes.append(0x3a)
        needsComma = false
    }

    package mutating func string(_ text: String) {
        separate()
        var text = text
        text.withUTF8 { quote($0) }
    }

    package mutating func integer(_ number: Int64) {
        separate()
        bytes.append(contentsOf: String(number).utf8)
    }

    package mutating func truth(_ value: Bool) {
        separate()
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    /// A member's name that `write` appends and that needs no escapes.
    package mutating func name(plain write: (inout [UInt8]) -> Void) {
        separate()
        bytes.append(0x22)
        write(&bytes)
        bytes.append(0x22)
        bytes.append(0x3a)
        needsComma = false
    }

    /// Bytes that are one JSON value already.
    package mutating func raw(_ value: [UInt8]) {
        separate()
        bytes.append(contentsOf: value)
    }

    package mutating func member(_ name: StaticString, _ text: String) {
        self.name(name)
        string(text)
    }

    package mutating func member(_ name: StaticString, _ number: Int64) {
        self.name(name)
        integer(number)
    }

    private mutating func open(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(0x2c) }
        needsComma = true
    }

    /// RFC 8259 §7: quote, backslash and control characters must be escaped; the rest stands as it is.
    private mutating func quote(_ text: UnsafeBufferPointer<UInt8>) {
        bytes.append(0x22)
        if text.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5c }) {
            bytes.append(contentsOf: text)
        } else {
            for byte in text { escape(byte) }
        }
        bytes.append(0x22)
    }

    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case 0x22, 0x5c:
            bytes.append(0x5c)
            bytes.append(byte)
        case 0x0a: bytes.append(contentsOf: [0x5c, 0x6e])
        case 0x0d: bytes.append(contentsOf: [0x5c, 0x72])
        case 0x09: bytes.append(contentsOf: [0x5c, 0x74])
        case 0..<0x20:
            bytes.append(contentsOf: [0x5c, 0x75, 0x30, 0x30, byte < 0x10 ? 0x30 : 0x31])
            bytes.append(byte & 15 < 10 ? 0x30 + (byte & 15) : 0x57 + (byte & 15))
        default: bytes.append(byte)
        }
    }
}
