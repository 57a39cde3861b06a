internal import FerryIO

/// What happened in a run, in order: always as one number, and as text where somebody wants to read it.
final class Trace {
    let isTold: Bool
    /// FNV-1a over everything noted.
    private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    var step = 0
    var milliseconds: Int64 = 0

    init(isTold: Bool) { self.isTold = isTold }

    func note(_ what: StaticString, _ a: Int = 0, _ b: Int = 0, _ c: Int = 0, _ text: @autoclosure () -> String = "") {
        what.withUTF8Buffer { for byte in $0 { add(UInt64(byte)) } }
        add(UInt64(truncatingIfNeeded: a))
        add(UInt64(truncatingIfNeeded: b))
        add(UInt64(truncatingIfNeeded: c))
        add(UInt64(truncatingIfNeeded: milliseconds))
        guard isTold else { return }
        EventLog.print("\(step) +\(milliseconds) ms: \(what) \(a) \(b) \(c) \(text())\n")
    }

    private func add(_ value: UInt64) { hash = (hash ^ value) &* 0x0000_0100_0000_01b3 }
}

/// A promise that was not kept.
package struct Violation: Error, Sendable, CustomStringConvertible {
    /// Such as "P1".
    package let promise: String
    package let what: String
    package var description: String { "\(promise): \(what)" }
}
