/// The low half of an instant, for where there are many: four bytes that are read as the one instant, of all that end so,
/// which is nearest to a reference. It is the one that was meant if the two lie within 24.8 days of each other.
package struct LowInstant: Hashable, Sendable, BitwiseCopyable {
    private let low: UInt32

    package init(_ instant: Instant) { low = UInt32(truncatingIfNeeded: instant.milliseconds) }

    /// Saturates where the reference is at the end of its range.
    package func nearest(to reference: Instant) -> Instant {
        let distance = Int32(truncatingIfNeeded: low &- UInt32(truncatingIfNeeded: reference.milliseconds))
        return reference.advanced(byMilliseconds: Int64(distance))
    }
}
