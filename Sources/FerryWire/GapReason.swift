/// Why kept messages are missing from a device's stream. A code that is not here counts as "other".
package enum GapReason: UInt64, Sendable, CaseIterable {
    case expired = 1
    case overflowed = 2
}
