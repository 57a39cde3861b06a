package import FerryCore

/// The calls that can be for a later time.
package enum ScheduledKind: Hashable, Sendable {
    case all
    case tag
    case fastCustomTag
}

/// What such a call asks for when its time has come.
package enum ScheduledContent: Hashable, Sendable {
    case all(BroadcastPush)
    case audience(ListMessage, ListAudience)

    package var requestID: String {
        switch self {
        case .all(let push): push.requestID
        case .audience(let message, _): message.requestID
        }
    }

    /// What it sends; empty for what is not the sender's own bytes.
    package var transmission: [UInt8] {
        let (kind, payload) =
            switch self {
            case .all(let push): (push.traits.kind, push.payload)
            case .audience(let message, _): (message.traits.kind, message.payload)
            }
        return kind == .transmission ? payload : []
    }
}

/// A push to many for a later time, with the body that it came in: it is kept as it is, and read again when its time has come.
package struct ScheduledPush: Hashable, Sendable {
    package let kind: ScheduledKind
    package let content: ScheduledContent
    package let releaseAt: Instant
    package let body: [UInt8]

    /// How far ahead a push may be scheduled.
    package static let horizon = Duration.seconds(7 * 86_400)
    /// Of its body; it is one row of the store.
    package static let bodyBytes = 524_288

    /// nil for a push that is for now.
    /// `push` is a push to all, whatever it comes to.
    init?(_ push: APIRequest, body: [UInt8]) throws(APIError) {
        switch push {
        case .pushAll(let push): try self.init(.all, .all(push), push.scheduledAt, body)
        case .list(.audience(let message, let audience)):
            try self.init(.all, .audience(message, audience), message.scheduledAt, body)
        default: return nil
        }
    }

    /// nil for a call that is for now.
    init?(_ call: ListCall, _ route: ListRoute, body: [UInt8]) throws(APIError) {
        guard case .audience(let message, let audience) = call else { return nil }
        let kind: ScheduledKind = route == .fastCustomTag ? .fastCustomTag : .tag
        try self.init(kind, .audience(message, audience), message.scheduledAt, body)
    }

    private init?(
        _ kind: ScheduledKind, _ content: ScheduledContent, _ releaseAt: Instant?, _ body: [UInt8]
    ) throws(APIError) {
        guard let releaseAt else { return nil }
        guard body.count <= Self.bodyBytes else {
            throw .overLimit("body", "\(body.count) bytes, at most \(Self.bodyBytes) with settings.schedule_time")
        }
        self.kind = kind
        self.content = content
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
