/// A point in time in milliseconds since 1970, as the gateway's clock tells it. Passed in, never asked for, by pure code.
package struct Instant: Hashable, Comparable, Sendable, BitwiseCopyable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static let distantPast = Instant(milliseconds: 0)
    package static let distantFuture = Instant(milliseconds: .max)

    /// Saturates instead of overflowing, so that no duration that a peer names can trap.
    package static func + (instant: Instant, duration: Duration) -> Instant {
        instant.advanced(byMilliseconds: duration.inMilliseconds)
    }

    /// Saturating, too.
    package func advanced(byMilliseconds distance: Int64) -> Instant {
        let (sum, overflow) = milliseconds.addingReportingOverflow(distance)
        return Instant(milliseconds: overflow ? (distance < 0 ? .min : .max) : sum)
    }

    /// The time from `right` to `left`, saturating.
    package static func - (left: Instant, right: Instant) -> Duration {
        let (difference, overflow) = left.milliseconds.subtractingReportingOverflow(right.milliseconds)
        return .milliseconds(overflow ? (left > right ? Int64.max : Int64.min) : difference)
    }

    package static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

    /// Zigzag: small numbers of either sign are small, and every `Int64` has its own.
    package var zigzag: UInt64 { UInt64(bitPattern: milliseconds << 1 ^ milliseconds >> 63) }

    /// The instant whose `zigzag` this is.
    package init(zigzag: UInt64) {
        milliseconds = Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
    }

    /// Month × 100 + day in UTC, for task ids.
    package var monthDay: UInt16 {
        // Howard Hinnant's civil-from-days, for days since 1970-01-01.
        let (whole, rest) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
        let days = rest < 0 ? whole - 1 : whole
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return UInt16(month * 100 + day)
    }
}

extension Duration {
    /// Whole milliseconds, rounded towards zero, saturating.
    package var inMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, sumOverflow) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
        return sumOverflow ? (seconds < 0 ? .min : .max) : sum
    }
}
