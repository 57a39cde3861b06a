internal import FerryCore
internal import Synchronization

/// The only time of a run; moved by hand.
final class VirtualClock: Sendable {
    static let start: Int64 = 1_700_000_000_000
    private let milliseconds = Atomic<Int64>(VirtualClock.start)

    var now: Instant { Instant(milliseconds: milliseconds.load(ordering: .relaxed)) }
    func advance(_ by: Int) { milliseconds.add(Int64(by), ordering: .relaxed) }
}

/// The time by the clock of the gateway's machine, which somebody may have set wrong before a start.
final class GatewayClock: Sendable {
    private let time: VirtualClock
    private let offset = Atomic<Int64>(0)

    init(_ time: VirtualClock) { self.time = time }

    var now: Instant { time.now + .milliseconds(offset.load(ordering: .relaxed)) }

    /// A life begins with a clock that is off by so many milliseconds.
    func begin(offBy milliseconds: Int) { offset.store(Int64(milliseconds), ordering: .relaxed) }

    /// As the gateway's own clock: never below what is on disk.
    func raise(to floor: Instant) {
        let missing = (floor - now).inMilliseconds
        if floor > now { offset.add(missing, ordering: .relaxed) }
    }
}
