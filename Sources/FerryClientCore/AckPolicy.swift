package import FerryCore

/// When a client acknowledges what its app has taken. An ack covers all messages before it and is saved before it is sent,
/// so each one that is spared spares a frame, a wake of the radio, and a write to the disk.
package struct AckPolicy: Hashable, Sendable {
    /// An ack leaves at the latest so long after the app took the oldest message that waits for it.
    package var delay: Duration
    /// So many messages are reason enough: one ack for them at the end of the read that brought them.
    package var messages: UInt64

    package init(delay: Duration = ClientLimits.ackDelay, messages: UInt64 = ClientLimits.ackEvery) {
        self.delay = delay
        self.messages = messages
    }

    /// Messages that wait for an ack.
    package struct Waiting: Hashable, Sendable {
        package var messages: UInt64 = 0
        /// Of their original payloads.
        package var bytes: UInt64 = 0
        /// When the app took the oldest of them.
        package var since: Instant

        package init(messages: UInt64 = 0, bytes: UInt64 = 0, since: Instant) {
            self.messages = messages
            self.bytes = bytes
            self.since = since
        }
    }

    /// What the gateway lets be in flight.
    package struct Window: Hashable, Sendable {
        package var messages: UInt64
        package var bytes: UInt64

        package init(messages: UInt64, bytes: UInt64) {
            self.messages = messages
            self.bytes = bytes
        }
    }

    /// The time from which an ack is due; `.distantPast` for at once.
    ///
    /// Half a window does not wait for the end of a read: while the app is busy with the rest of it, the gateway fills the
    /// first half again.
    package func dueTime(for waiting: Waiting, in window: Window, isReading: Bool) -> Instant {
        if waiting.messages >= max(1, window.messages / 2) { return .distantPast }
        if waiting.bytes >= max(1, window.bytes / 2 + window.bytes % 2) { return .distantPast }
        if waiting.messages >= messages, !isReading { return .distantPast }
        return waiting.since + delay
    }
}
