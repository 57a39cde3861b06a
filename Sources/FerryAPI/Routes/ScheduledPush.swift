package import FerryCore

/// A push to all for a later time, with the body that it came in: it is kept as it is, and read again when its time has come.
package struct ScheduledPush: Hashable, Sendable {
    package let push: BroadcastPush
    package let releaseAt: Instant
    package let body: [UInt8]

    /// How far ahead a push may be scheduled.
    package static let horizon = Duration.seconds(7 * 86_400)
    /// Of its body; it is one row of the store.
    package static let bodyBytes = 524_288

    /// nil for a push that is for now.
    init?(_ push: BroadcastPush, body: [UInt8]) throws(APIError) {
        guard let releaseAt = push.scheduledAt else { return nil }
        guard body.count <= Self.bodyBytes else {
            throw .overLimit("body", "\(body.count) bytes, at most \(Self.bodyBytes) with settings.schedule_time")
        }
        self.push = push
        self.releaseAt = releaseAt
        self.body = body
    }

    /// Whether the gateway takes it at the time `now`; its time in the past, or too far ahead, is refused.
    package func check(now: Instant) -> APIError? {
        guard releaseAt > now else {
            return .invalid(
                "settings.schedule_time",
                "\(releaseAt.milliseconds) is not after the gateway's time \(now.milliseconds)")
        }
        guard releaseAt <= now + Self.horizon else {
            return .invalid(
                "settings.schedule_time",
                "\(releaseAt.milliseconds) is more than 7 days after the gateway's time \(now.milliseconds)")
        }
        return nil
    }
}
