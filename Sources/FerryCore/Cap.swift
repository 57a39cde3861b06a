/// An upper bound that may be none. Where people set it, none is said by a word and never by 0.
package struct Cap: Hashable, Sendable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    package static let unlimited = Cap(.max)
    /// How configurations say `unlimited`.
    package static let unlimitedWord = "unlimited"

    /// At least 1; no number of things exceeds that of `unlimited`.
    package let value: Int

    package init(_ value: Int) { self.value = max(1, value) }
    package init(integerLiteral value: Int) { self.init(value) }

    package var isUnlimited: Bool { value == .max }
    package var description: String { isUnlimited ? Self.unlimitedWord : String(value) }
}
