/// Counts durations in buckets whose width grows with them: at most 1.6 % off, at a fixed size.
struct BenchHistogram {
    private static let steps = 64
    private static let stepBits = 6
    private var buckets = [UInt32](repeating: 0, count: (64 - stepBits + 1) * steps)
    private(set) var count: UInt64 = 0
    /// Exact.
    private(set) var maximum: UInt64 = 0

    mutating func record(_ nanoseconds: UInt64) {
        buckets[Self.index(nanoseconds)] &+= 1
        count += 1
        maximum = max(maximum, nanoseconds)
    }

    /// The duration that `share` (0...1) of all are not above.
    func percentile(_ share: Double) -> UInt64 {
        guard count > 0 else { return 0 }
        let wanted = max(1, UInt64((Double(count) * share).rounded(.up)))
        var seen: UInt64 = 0
        for (index, bucket) in buckets.enumerated() {
            seen += UInt64(bucket)
            if seen >= wanted { return min(Self.upperBound(index), maximum) }
        }
        return maximum
    }

    mutating func reset() { self = BenchHistogram() }

    private static func index(_ value: UInt64) -> Int {
        guard value >= UInt64(steps) else { return Int(value) }
        let shift = 63 - value.leadingZeroBitCount - stepBits
        return (shift + 1) * steps + Int(value >> UInt64(shift)) - steps
    }

    private static func upperBound(_ index: Int) -> UInt64 {
        guard index >= steps else { return UInt64(index) }
        let shift = UInt64(index / steps - 1)
        let start = UInt64(index % steps + steps) << shift
        return start + (1 << shift - 1)
    }
}
