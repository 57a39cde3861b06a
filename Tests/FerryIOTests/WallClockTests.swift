private import FerryCore
private import FerryIO
internal import Testing

struct WallClockTests {
    @Test func `The clock never shows less than its floor, and goes on from there`() {
        let floor = WallClock().now + .seconds(1_000_000)
        let clock = WallClock(floor: floor)
        let first = clock.now
        #expect(first >= floor && first < floor + .seconds(60))
        #expect(clock.now >= first)
    }

    @Test func `A clock that is raised goes on from there, and is never lowered`() {
        let clock = WallClock()
        let floor = clock.now + .seconds(1_000_000)
        clock.raise(to: floor)
        #expect(clock.now >= floor && clock.now < floor + .seconds(60))
        clock.raise(to: .distantPast)
        #expect(clock.now >= floor)
    }

    @Test func `A floor in the past changes nothing`() {
        let plain = WallClock().now
        let floored = WallClock(floor: .distantPast).now
        #expect(plain > Instant(milliseconds: 1_600_000_000_000), "the clock of this machine is set")
        #expect(floored >= plain + .milliseconds(-1) && floored < plain + .seconds(60))
    }

    @Test func `Processor time is what the process used`() {
        let before = WallClock.processorTime
        var sum: UInt64 = 0
        while WallClock.processorTime.user + WallClock.processorTime.system == before.user + before.system { sum &+= 1 }
        #expect(WallClock.processorTime.user >= before.user)
    }
}
