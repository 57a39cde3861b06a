/// 128 bits that name something; the shared shape of `CID` and `MessageID`.
package struct Identifier128: Hashable, Comparable, Sendable, BitwiseCopyable {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads 32 hex digits; nil for any other text.
    package init?(hex: String) {
        var hex = hex
        guard let value = hex.withUTF8({ Hexadecimal.identifier($0) }) else { return nil }
        self = value
    }

    /// Reads the first 16 bytes, big-endian; nil when there are fewer.
    package init?(bytes: some Collection<UInt8>) {
        // Arrays and their slices lend their storage. Walking a collection of any type, which is not specialized across
        // modules, costs a microsecond, and this is done for every message.
        let found = bytes.withContiguousStorageIfAvailable { Self(storage: UnsafeRawBufferPointer($0)) }
        guard let value = found ?? Array(bytes.prefix(16)).withUnsafeBytes({ Self(storage: $0) }) else { return nil }
        self = value
    }

    private init?(storage: UnsafeRawBufferPointer) {
        var reader = ByteReader(storage)
        guard let high = reader.uint64(), let low = reader.uint64() else { return nil }
        self.init(high: high, low: low)
    }

    /// The 16 bytes, big-endian.
    package var bytes: [UInt8] {
        (0..<16).map { index in
            UInt8(truncatingIfNeeded: (index < 8 ? high : low) >> (UInt64(7 - index % 8) * 8))
        }
    }

    /// 32 lower-case hex digits.
    package var hex: String {
        var text: [UInt8] = []
        text.reserveCapacity(32)
        Hexadecimal.append(self, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    package static func < (left: Self, right: Self) -> Bool {
        left.high != right.high ? left.high < right.high : left.low < right.low
    }
}

/// A customer's application, as its operator named it (1...64 of letters, digits, `-`, `_`, `.`).
package struct AppID: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    /// nil when `text` is empty, longer than 64 bytes or holds another character.
    package init?(_ text: String) {
        guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy(Self.isAllowed) else { return nil }
        self.text = text
    }

    package var description: String { text }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122, 45, 46, 95: true
        default: false
        }
    }
}

/// One installation of an app: 32 hex digits, made by the gateway when the device first registers.
package struct CID: Hashable, Comparable, Sendable, BitwiseCopyable, CustomStringConvertible {
    package let value: Identifier128

    package init(_ value: Identifier128) { self.value = value }

    /// Reads 32 hex digits; nil for any other text.
    package init?(hex: String) {
        guard let value = Identifier128(hex: hex) else { return nil }
        self.value = value
    }

    package var description: String { value.hex }
    package static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}

/// Task × device: names one message for its whole life.
package struct MessageID: Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    package let value: Identifier128
    package init(_ value: Identifier128) { self.value = value }
    package var description: String { value.hex }
}

/// What one API call asked for. Its text has the form of GeTui's ids, `RASS_MMdd_<32 hex>`, and is opaque to clients.
package struct TaskID: Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// Which kind of call made the task; the fourth letter of its text.
    package enum Kind: UInt8, Sendable, BitwiseCopyable, CaseIterable {
        case single = 0x53  // S
        case list = 0x4c  // L
        case app = 0x41  // A
    }

    package let value: Identifier128
    /// Month × 100 + day of acceptance, UTC.
    package let monthDay: UInt16
    package let kind: Kind

    package init(_ value: Identifier128, monthDay: UInt16, kind: Kind) {
        self.value = value
        self.monthDay = monthDay
        self.kind = kind
    }

    /// Of a task of single pushes: it may have messages for several devices, which lie in any partition. That of a push to one
    /// device ends in the device's partition.
    package var mayHaveSeveralDevices: Bool { value.isOfSeveral }

    /// The id that `description` gives this text; nil for any other text.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 42, bytes.starts(with: "RAS".utf8), let kind = Kind(rawValue: bytes[3]),
            bytes[4] == 0x5f, bytes[9] == 0x5f, bytes[5..<9].allSatisfy({ (0x30...0x39).contains($0) }),
            let value = Identifier128(hex: String(decoding: bytes[10...], as: UTF8.self))
        else { return nil }
        let monthDay = bytes[5..<9].reduce(UInt16(0)) { $0 * 10 + UInt16($1 - 0x30) }
        self.init(value, monthDay: monthDay, kind: kind)
    }

    package var description: String {
        var text: [UInt8] = []
        text.reserveCapacity(42)
        append(to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// How many bytes `append` appends.
    package var textCount: Int { monthDay > 9_999 ? 43 : 42 }

    /// Appends the text, which is ASCII.
    package func append(to text: inout [UInt8]) {
        text.append(0x52)
        text.append(0x41)
        text.append(0x53)
        text.append(kind.rawValue)
        text.append(0x5f)
        // Four digits are what a month and a day have; the type could hold five.
        if monthDay > 9_999 { text.append(0x30 + UInt8(truncatingIfNeeded: monthDay / 10_000)) }
        text.append(0x30 + UInt8(truncatingIfNeeded: monthDay / 1_000 % 10))
        text.append(0x30 + UInt8(truncatingIfNeeded: monthDay / 100 % 10))
        text.append(0x30 + UInt8(truncatingIfNeeded: monthDay / 10 % 10))
        text.append(0x30 + UInt8(truncatingIfNeeded: monthDay % 10))
        text.append(0x5f)
        Hexadecimal.append(value, to: &text)
    }
}

/// A device's authenticated, foreground attachment over a connection. Unique within one run of the gateway.
package struct SessionID: Hashable, Sendable, BitwiseCopyable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A place in a partition's one rising line of messages; 0 is "before the first".
package struct Seq: Hashable, Comparable, Sendable, BitwiseCopyable, CustomStringConvertible {
    package let rawValue: UInt64
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
    package static let zero = Seq(0)
    package var next: Seq { Seq(rawValue + 1) }
    package var description: String { String(rawValue) }
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Names one life of a data folder. Another epoch means that `seq` numbers of before say nothing.
package struct Epoch: Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    package let rawValue: UInt64
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
    /// What a client says that has no epoch yet.
    package static let none = Epoch(0)
    package var description: String {
        Hexadecimal.encode((0..<8).map { UInt8(truncatingIfNeeded: rawValue >> (UInt64(7 - $0) * 8)) })
    }
}
