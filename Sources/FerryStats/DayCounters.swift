internal import FerryCore

/// One day of an app: its messages, and who was there.
package struct DayCounters: Hashable, Sendable {
    package var messages = ReportCounters()
    /// Devices that registered on the day.
    package var registered: Int64 = 0
    /// Devices that logged in, or came to the foreground, on the day, each once.
    package var active: Int64 = 0
    /// The most that were online at one moment, over all shards, as far as this one saw it.
    package var peakOnline: Int64 = 0
    /// The most devices that were registered at one moment of the day, over all shards, as far as this one saw it.
    package var accumulated: Int64 = 0

    package init() {}

    /// Another shard's, of the same day.
    package static func += (left: inout Self, right: Self) {
        left.messages += right.messages
        left.registered += right.registered
        left.active += right.active
        left.peakOnline = max(left.peakOnline, right.peakOnline)
        left.accumulated = max(left.accumulated, right.accumulated)
    }

    func write(to writer: inout ByteWriter) {
        messages.write(to: &writer)
        for number in [registered, active, peakOnline, accumulated] { writer.signed(number) }
    }

    init?(from reader: inout ByteReader) {
        guard let messages = ReportCounters(from: &reader), let registered = reader.count(),
            let active = reader.count(), let peakOnline = reader.count(), let accumulated = reader.count()
        else { return nil }
        self.messages = messages
        self.registered = registered
        self.active = active
        self.peakOnline = peakOnline
        self.accumulated = accumulated
    }
}
