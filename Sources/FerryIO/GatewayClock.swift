internal import CLinux
package import FerryCore
internal import Synchronization

/// The time of a running gateway: `ClockDiscipline` over the kernel's clocks. All threads see one line of time that never
/// goes back. It compares the clocks as it is asked, at most once a second.
package final class GatewayClock: Sendable {
    private struct State {
        var discipline: ClockDiscipline
        var nextSample: Int64
    }

    private let state: Mutex<State>
    private let wallClock: @Sendable () -> Int64
    private let bootClock: @Sendable () -> Int64
    private let tell: @Sendable (ClockDiscipline.Notice) -> Void
    private static let sampleMilliseconds: Int64 = 1_000

    /// - Parameter tell: told of steps; called on whichever thread asked for the time.
    package convenience init(tell: @escaping @Sendable (ClockDiscipline.Notice) -> Void) {
        self.init(wall: { clinux_wall_milliseconds() }, boot: { clinux_boot_milliseconds() }, tell: tell)
    }

    /// `wall` and `boot` are clocks in milliseconds.
    package init(
        wall: @escaping @Sendable () -> Int64, boot: @escaping @Sendable () -> Int64,
        tell: @escaping @Sendable (ClockDiscipline.Notice) -> Void
    ) {
        wallClock = wall
        bootClock = boot
        self.tell = tell
        let boot = boot()
        state = Mutex(
            State(
                discipline: ClockDiscipline(
                    wall: Instant(milliseconds: wall()), boot: Instant(milliseconds: boot)),
                nextSample: boot &+ Self.sampleMilliseconds))
    }

    package var now: Instant {
        let boot = bootClock()
        let (now, notice) = state.withLock { state -> (Instant, ClockDiscipline.Notice?) in
            var notice: ClockDiscipline.Notice?
            if boot >= state.nextSample {
                state.nextSample = boot &+ Self.sampleMilliseconds
                notice = state.discipline.sampled(
                    wall: Instant(milliseconds: wallClock()), boot: Instant(milliseconds: boot))
            }
            return (state.discipline.now(boot: Instant(milliseconds: boot)), notice)
        }
        if let notice { tell(notice) }
        return now
    }

    /// The wall clock as it is, steps and all: for what other machines' clocks are compared with.
    package var wall: Instant { Instant(milliseconds: wallClock()) }

    /// Never below `floor` from now on: the last time that a journal holds.
    package func raise(to floor: Instant) {
        let boot = Instant(milliseconds: bootClock())
        state.withLock { $0.discipline.raise(to: floor, boot: boot) }
    }

    /// An operator confirms a step of the wall clock; whether there was one to confirm.
    package func confirmStep() -> Bool {
        guard let notice = state.withLock({ $0.discipline.confirmStep() }) else { return false }
        tell(notice)
        return true
    }
}
