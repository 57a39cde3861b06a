/// A text that is the same as another only where all bytes of both, in UTF-8, are. `String` takes "é" for the same as "e" with an
/// accent behind it; what backends name things by must not.
package struct ExactText: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (left: Self, right: Self) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        let isHashed: Void? = text.utf8.withContiguousStorageIfAvailable { bytes in
            hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
        }
        if isHashed == nil { for byte in text.utf8 { hasher.combine(byte) } }
        // No text has this byte, so that two behind each other are not one.
        hasher.combine(UInt8(0xff))
    }
}

extension String {
    /// Byte for byte.
    package func isExactly(_ other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}

extension Collection<String> {
    /// Byte for byte.
    package func containsExactly(_ text: String) -> Bool { contains { $0.isExactly(text) } }

    package func isExactly(_ other: some Collection<String>) -> Bool {
        count == other.count && zip(self, other).allSatisfy { $0.isExactly($1) }
    }
}
