internal import CLinux
package import FerryCore

/// The wall clock at start plus the boot-time clock since, so that a step of the wall clock moves nothing: enough for a
/// client or a command. A gateway, which lives long and keeps a journal, has `GatewayClock`.
package struct WallClock: Sendable {
    private let offset: Int64

    package init() { offset = clinux_wall_milliseconds() - clinux_boot_milliseconds() }

    package var now: Instant { Instant(milliseconds: offset + clinux_boot_milliseconds()) }

    /// CPU time that the process has used so far.
    package static var processorTime: (user: Duration, system: Duration) {
        var user: Int64 = 0
        var system: Int64 = 0
        clinux_cpu_microseconds(&user, &system)
        return (.microseconds(user), .microseconds(system))
    }
}
