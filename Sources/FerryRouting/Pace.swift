package import FerryCore

/// So many a second: a bucket that leaks. It is told how many went and says when the next may go. What was not used is made up
/// for by no more than a moment's worth, so that a late turn loses nothing and a long pause earns nothing.
package struct Pace: Hashable, Sendable {
    /// Over all that share it.
    package let perSecond: Int64
    private let parts: Int64
    /// The next may go at this time, in microseconds since 1970.
    private var freeAt: Int64
    /// What the last division left over, in parts of a microsecond.
    private var rest: Int64 = 0

    /// So much of unused time counts.
    private static let patience: Int64 = 200_000
    private static let most: Int64 = 1_000_000_000
    /// Beyond every time that is used: three hundred years.
    private static let longest: Int64 = 300 * 366 * 86_400 * 1_000_000

    /// `perSecond` 1... counts for all of `parts` together, of which this is one. The first may go at `now`.
    package init(perSecond: Int64, parts: Int, now: Instant) {
        self.perSecond = max(1, min(perSecond, Self.most))
        self.parts = Int64(max(1, min(parts, 65_536)))
        freeAt = Self.microseconds(now)
    }

    /// The earliest time at which the next may go, in whole milliseconds.
    package var nextAt: Instant {
        Instant(milliseconds: freeAt / 1_000 + (freeAt % 1_000 > 0 ? 1 : 0))
    }

    package func isDue(now: Instant) -> Bool { freeAt <= Self.microseconds(now) }

    /// How many may go now, one by one, up to `limit`.
    package func allowance(now: Instant, limit: Int) -> Int {
        let now = Self.microseconds(now)
        guard freeAt <= now, limit > 0 else { return 0 }
        let elapsed = min(now - freeAt, Self.patience)
        let (product, overflow) = elapsed.multipliedReportingOverflow(by: perSecond)
        guard !overflow else { return limit }
        return Int(clamping: min(Int64(limit), product / (1_000_000 * parts) + 1))
    }

    /// So many went at `now`; none costs nothing.
    package mutating func spend(_ count: Int, now: Instant) {
        guard count > 0 else { return }
        let start = min(max(freeAt, Self.microseconds(now) - Self.patience), .max / 2)
        let (product, overflow) = Int64(count).multipliedReportingOverflow(by: 1_000_000 * parts)
        guard !overflow, product <= .max - rest else {
            (freeAt, rest) = (start + Self.longest, 0)
            return
        }
        let (time, left) = (product + rest).quotientAndRemainder(dividingBy: perSecond)
        (freeAt, rest) = (start + min(time, Self.longest), left)
    }

    private static func microseconds(_ time: Instant) -> Int64 {
        max(-.max / 2_000, min(time.milliseconds, .max / 2_000)) * 1_000
    }
}
