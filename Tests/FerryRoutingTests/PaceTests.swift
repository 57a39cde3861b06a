private import FerryCore
private import FerryRouting
internal import FerryTestSupport
internal import Testing

struct PaceTests {
    private static let start = Instant(milliseconds: 1_700_000_000_000)

    @Test(arguments: [1, 3, 7, 100, 999, 1_000, 12_345] as [Int64])
    func `In ten seconds as many go as the pace says, and one more at once`(_ perSecond: Int64) {
        var pace = Pace(perSecond: perSecond, parts: 1, now: Self.start)
        var count: Int64 = 0
        for millisecond in 0..<10_000 as Range<Int64> {
            let now = Self.start + .milliseconds(millisecond)
            let allowed = pace.allowance(now: now, limit: .max)
            pace.spend(allowed, now: now)
            count += Int64(allowed)
        }
        let moment = perSecond / 1_000 + 1
        #expect((perSecond * 10 - moment...perSecond * 10 + moment).contains(count))
    }

    @Test(arguments: Effort.seeds(20))
    func `Steps of any size at any times never exceed the pace by more than a step and a moment's worth`(_ seed: UInt64)
    {
        var random = SplitMix(seed: seed)
        let perSecond = Int64.random(in: 1...5_000, using: &random)
        let parts = Int.random(in: 1...4, using: &random)
        var pace = Pace(perSecond: perSecond, parts: parts, now: Self.start)
        var now = Self.start
        var count: Int64 = 0
        var largest: Int64 = 0
        for _ in 0..<2_000 {
            now = now + .milliseconds(Int64.random(in: 0...400, using: &random))
            guard pace.isDue(now: now) else {
                #expect(pace.nextAt > now)
                continue
            }
            #expect(pace.nextAt <= now)
            let step = Int.random(in: 0...200, using: &random)
            pace.spend(step, now: now)
            count += Int64(step)
            largest = max(largest, Int64(step))
            let elapsed = (now - Self.start).inMilliseconds + 200
            #expect((count - largest) * 1_000 * Int64(parts) <= perSecond * elapsed)
        }
    }

    @Test func `A long pause earns a fifth of a second and no more`() {
        var pace = Pace(perSecond: 100, parts: 1, now: Self.start)
        pace.spend(1, now: Self.start)
        let later = Self.start + .seconds(3_600)
        #expect(pace.allowance(now: later, limit: .max) == 21)
        pace.spend(21, now: later)
        #expect(!pace.isDue(now: later))
    }

    @Test func `Parts share a pace, and slow ones lose nothing to rounding`() {
        var parts = [Pace](repeating: Pace(perSecond: 1, parts: 3, now: Self.start), count: 3)
        var count = 0
        for second in 0..<300 {
            let now = Self.start + .seconds(Int64(second))
            for index in parts.indices where parts[index].isDue(now: now) {
                parts[index].spend(1, now: now)
                count += 1
            }
        }
        #expect(count == 300)
    }

    @Test func `No number overflows, and what takes for ever is never due`() {
        var pace = Pace(perSecond: .max, parts: .max, now: .distantFuture)
        pace.spend(.max, now: .distantFuture)
        pace.spend(.max, now: .distantFuture)
        var slow = Pace(perSecond: 0, parts: 0, now: .distantPast)
        slow.spend(.max, now: Self.start)
        slow.spend(.max, now: Self.start)
        #expect(slow.perSecond == 1)
        #expect(!slow.isDue(now: Self.start + .seconds(100 * 366 * 86_400)))
        #expect(slow.allowance(now: .distantFuture, limit: 5) <= 5)
    }
}
