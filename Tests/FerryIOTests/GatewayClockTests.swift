private import FerryCore
private import FerryIO
internal import Synchronization
internal import Testing

struct GatewayClockTests {
    /// Clocks that a test sets, and what was told.
    private final class Hands: Sendable {
        let wall = Atomic<Int64>(1_700_000_000_000)
        let boot = Atomic<Int64>(1_000)
        let notices = Mutex<[ClockDiscipline.Notice]>([])

        func pass(milliseconds: Int64) {
            wall.add(milliseconds, ordering: .relaxed)
            boot.add(milliseconds, ordering: .relaxed)
        }

        func makeClock() -> GatewayClock {
            GatewayClock(
                wall: { self.wall.load(ordering: .relaxed) }, boot: { self.boot.load(ordering: .relaxed) },
                tell: { notice in self.notices.withLock { $0.append(notice) } })
        }
    }

    /// Compares what threads were told one after the other.
    private final class Watch: Sendable {
        let clock = GatewayClock { _ in }
        let latest = Mutex(Instant.distantPast)
        let wentBack = Mutex(0)

        func look() {
            let isBroken = latest.withLock { latest in
                let now = clock.now
                defer { latest = max(latest, now) }
                return now < latest
            }
            if isBroken { wentBack.withLock { $0 += 1 } }
        }
    }

    @Test func `Asking for the time is enough to notice a step, within a second`() {
        let hands = Hands()
        let clock = hands.makeClock()
        hands.wall.add(3_600_000, ordering: .relaxed)
        hands.pass(milliseconds: 999)
        let before = clock.now
        #expect(hands.notices.withLock { $0 }.isEmpty)
        hands.pass(milliseconds: 1)
        #expect(clock.now == before + .milliseconds(1))
        #expect(hands.notices.withLock { $0 } == [.stepped(by: .seconds(3_600))])
        #expect(clock.wall == before + .milliseconds(3_600_001))
    }

    @Test func `A confirmation is told, and one without a step is not`() {
        let hands = Hands()
        let clock = hands.makeClock()
        #expect(!clock.confirmStep())
        hands.wall.add(90_000, ordering: .relaxed)
        hands.pass(milliseconds: 1_000)
        _ = clock.now
        #expect(clock.confirmStep())
        #expect(hands.notices.withLock { $0 } == [.stepped(by: .seconds(90)), .confirmed(by: .seconds(90))])
    }

    @Test func `Threads that ask at the same time see no time that goes back`() throws {
        let watch = Watch()
        let threads = try (0..<4).map { index in
            try OSThread(name: "clock-\(index)") { for _ in 0..<20_000 { watch.look() } }
        }
        for thread in threads { thread.join() }
        #expect(watch.wentBack.withLock { $0 } == 0)
    }

    @Test func `The kernel's clocks tell the date`() {
        let clock = GatewayClock { _ in }
        clock.raise(to: .distantPast)
        #expect(clock.now > Instant(milliseconds: 1_600_000_000_000))
        let floor = clock.now + .seconds(1_000)
        clock.raise(to: floor)
        #expect(clock.now >= floor)
    }
}
