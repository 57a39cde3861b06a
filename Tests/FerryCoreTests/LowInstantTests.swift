private import FerryCore
internal import Testing

struct LowInstantTests {
    @Test(arguments: [0, 1, -1, 5_000, Int64(Int32.max), Int64(Int32.min)] as [Int64])
    func `An instant is found again from one up to 24 days away`(_ distance: Int64) {
        for milliseconds in [0, 1_700_000_000_000, 0xffff_ffff, 0x1_0000_0000] as [Int64] {
            let instant = Instant(milliseconds: milliseconds)
            let reference = Instant(milliseconds: milliseconds - distance)
            #expect(LowInstant(instant).nearest(to: reference) == instant)
        }
    }

    @Test func `Farther away another one is taken, and at the ends of the range nothing traps`() {
        let instant = Instant(milliseconds: 1_700_000_000_000)
        let late = instant + .seconds(30 * 86_400)
        #expect(LowInstant(instant).nearest(to: late) == instant.advanced(byMilliseconds: 1 << 32))
        #expect(LowInstant(instant).nearest(to: .distantFuture) <= .distantFuture)
        #expect(LowInstant(.distantFuture).nearest(to: .distantFuture) == .distantFuture)
        #expect(LowInstant(instant).nearest(to: Instant(milliseconds: .min)) >= Instant(milliseconds: .min))
    }
}
