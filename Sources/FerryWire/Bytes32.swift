internal import FerryCore

/// 32 bytes that nobody may guess or forge: nonces, proofs, keys, secrets. It prints nothing of itself. Compare proofs and
/// secrets in constant time (FerryIO's `Cryptography.isEqual`), not with `==`.
package struct Bytes32: Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    private var words: (high: Identifier128, low: Identifier128)

    package static let zero = Bytes32(.init(high: 0, low: 0), .init(high: 0, low: 0))

    init(_ high: Identifier128, _ low: Identifier128) { words = (high, low) }

    /// nil unless there are exactly 32 bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 32 else { return nil }
        // An array and not any collection: its slices lend their storage.
        let bytes = Array(bytes)
        guard let high = Identifier128(bytes: bytes[..<16]), let low = Identifier128(bytes: bytes[16...]) else {
            return nil
        }
        words = (high, low)
    }

    /// nil unless `hex` is 64 hex digits.
    package init?(hex: String) {
        guard let bytes = Hexadecimal.decode(hex) else { return nil }
        self.init(bytes)
    }

    package var bytes: [UInt8] { words.high.bytes + words.low.bytes }
    package var hex: String { Hexadecimal.encode(bytes) }
    package var description: String { "32 bytes" }

    package static func == (left: Self, right: Self) -> Bool {
        left.words.high == right.words.high && left.words.low == right.words.low
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.high)
        hasher.combine(words.low)
    }
}
