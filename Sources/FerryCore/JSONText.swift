/// Writes JSON (RFC 8259) text, for the few places that answer or record it. The caller keeps the nesting right.
package struct JSONText {
    package private(set) var bytes: [UInt8] = []
    /// Whether the next value or key of the current object or array comes after another.
    private var needsComma = false

    package init() {}

    package mutating func beginObject() { open(0x7b) }
    package mutating func endObject() { close(0x7d) }
    package mutating func beginArray() { open(0x5b) }
    package mutating func endArray() { close(0x5d) }

    package mutating func key(_ name: String) {
        string(name)
        bytes.append(0x3a)
        needsComma = false
    }

    package mutating func string(_ text: String) {
        separate()
        Self.appendQuoted(text.utf8, to: &bytes)
    }

    package mutating func number(_ value: some BinaryInteger) {
        separate()
        bytes.append(contentsOf: String(value).utf8)
    }

    package mutating func bool(_ value: Bool) {
        separate()
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    /// Bytes that are one JSON value already.
    package mutating func raw(_ value: [UInt8]) {
        separate()
        bytes.append(contentsOf: value)
    }

    package mutating func field(_ name: String, _ text: String) {
        key(name)
        string(text)
    }

    package mutating func field(_ name: String, _ value: some BinaryInteger) {
        key(name)
        number(value)
    }

    package mutating func field(_ name: String, _ value: Bool) {
        key(name)
        bool(value)
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Appends UTF-8 `text` in quotes, with what JSON forbids in a string escaped.
    package static func appendQuoted(_ text: some Swift.Sequence<UInt8>, to bytes: inout [UInt8]) {
        bytes.append(0x22)
        for byte in text {
            switch byte {
            case 0x22, 0x5c:
                bytes.append(0x5c)
                bytes.append(byte)
            case 0x0a: bytes.append(contentsOf: [0x5c, 0x6e])
            case 0x00..<0x20:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(Hexadecimal.digit(byte >> 4))
                bytes.append(Hexadecimal.digit(byte & 15))
            default: bytes.append(byte)
            }
        }
        bytes.append(0x22)
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
}
