internal import FerryCore

/// The times and windows that the gateway grants to sessions. Bounds of the wire are in `protocol-spec/registry/limits.json`.
package struct SessionPolicy: Hashable, Sendable {
    package var handshakeDeadline = Duration.seconds(10)
    package var keepAliveDefault = Duration.seconds(240)
    package var keepAliveMinimum = Duration.seconds(5)
    package var keepAliveMaximum = Duration.seconds(3_600)
    package var windowDefault: Int32 = 64
    package var windowMaximum: Int32 = 1_024
    package var windowBytes: Int32 = 262_144
    /// With messages in flight, how long the device may be silent.
    package var ackDeadline = Duration.seconds(10) { didSet { ackDeadlineMilliseconds = ackDeadline.inMilliseconds } }
    /// With messages in flight, how long it may acknowledge nothing.
    package var progressDeadline = Duration.seconds(60) {
        didSet { progressDeadlineMilliseconds = progressDeadline.inMilliseconds }
    }
    /// How long unsent bytes may stay above the high-water mark.
    package var slowDeadline = Duration.seconds(30)
    /// Unsent bytes of a connection above which its log is not read on.
    package var highWaterMark = 262_144

    // The same in milliseconds: they are looked at for each message.
    private(set) var ackDeadlineMilliseconds: Int64 = 10_000
    private(set) var progressDeadlineMilliseconds: Int64 = 60_000

    package init() {}

    /// The keep-alive for a device that wishes `seconds` (0: no wish).
    package func keepAlive(wished seconds: UInt64) -> Duration {
        guard seconds > 0 else { return keepAliveDefault }
        return min(max(.seconds(Int64(clamping: min(seconds, 1_000_000))), keepAliveMinimum), keepAliveMaximum)
    }

    /// The window for a device that wishes `messages` (0: no wish).
    package func window(wished messages: UInt64) -> Int32 {
        guard messages > 0 else { return windowDefault }
        return min(Int32(clamping: messages), max(1, windowMaximum))
    }
}
