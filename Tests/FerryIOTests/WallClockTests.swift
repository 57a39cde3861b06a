private import FerryCore
private import FerryIO
internal import Testing

struct WallClockTests {
    @Test func `The clock shows the machine's date and goes on from there`() {
        let clock = WallClock()
        let first = clock.now
        #expect(first > Instant(milliseconds: 1_600_000_000_000), "the clock of this machine is set")
        #expect(clock.now >= first)
    }

    @Test func `Processor time is what the process used`() {
        let before = WallClock.processorTime
        var sum: UInt64 = 0
        while WallClock.processorTime.user + WallClock.processorTime.system == before.user + before.system { sum &+= 1 }
        #expect(WallClock.processorTime.user >= before.user)
    }
}
