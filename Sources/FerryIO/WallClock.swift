internal import CLinux
package import FerryCore

/// The wall clock at start plus the boot-time clock since, so that a step of the wall clock moves nothing, and never below
/// `floor`, the last time that the journal holds.
package struct WallClock: Sendable {
    private let offset: Int64

    package init(floor: Instant = .distantPast) {
        let boot = clinux_boot_milliseconds()
        offset = max(clinux_wall_milliseconds(), floor.milliseconds) - boot
    }

    package var now: Instant { Instant(milliseconds: offset + clinux_boot_milliseconds()) }

    /// CPU time that the process has used so far.
    package static var processorTime: (user: Duration, system: Duration) {
        var user: Int64 = 0
        var system: Int64 = 0
        clinux_cpu_microseconds(&user, &system)
        return (.microseconds(user), .microseconds(system))
    }
}
