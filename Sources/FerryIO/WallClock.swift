internal import CLinux
package import FerryCore
internal import Synchronization

/// The wall clock at start plus the boot-time clock since, so that a step of the wall clock moves nothing, and never below
/// the floor that it was raised to, the last time that the journal holds.
package final class WallClock: Sendable {
    private let offset: Atomic<Int64>

    package init(floor: Instant = .distantPast) {
        let boot = clinux_boot_milliseconds()
        offset = Atomic(max(clinux_wall_milliseconds(), floor.milliseconds) - boot)
    }

    package var now: Instant {
        Instant(milliseconds: offset.load(ordering: .relaxed) + clinux_boot_milliseconds())
    }

    /// From now on it does not show less than `floor`.
    package func raise(to floor: Instant) {
        guard now < floor else { return }
        _ = offset.max(floor.milliseconds - clinux_boot_milliseconds(), ordering: .relaxed)
    }

    /// CPU time that the process has used so far.
    package static var processorTime: (user: Duration, system: Duration) {
        var user: Int64 = 0
        var system: Int64 = 0
        clinux_cpu_microseconds(&user, &system)
        return (.microseconds(user), .microseconds(system))
    }
}
