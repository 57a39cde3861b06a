internal import FerryCore
internal import Synchronization

/// The only time of a run; moved by hand.
final class VirtualClock: Sendable {
    static let start: Int64 = 1_700_000_000_000
    private let milliseconds = Atomic<Int64>(VirtualClock.start)

    var now: Instant { Instant(milliseconds: milliseconds.load(ordering: .relaxed)) }
    func advance(_ by: Int) { milliseconds.add(Int64(by), ordering: .relaxed) }
}
