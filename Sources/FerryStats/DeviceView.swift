package import FerryCore

/// A device as its owner sees it at the moment of a question.
package struct DeviceView: Hashable, Sendable {
    package enum Presence: Hashable, Sendable {
        case attached(SessionID)
        /// The session was lost; the device counts as online until then.
        case grace(until: Instant)
        case offline
        /// Offline since before the gateway's last start; no stub is asked for until then.
        case restored(until: Instant)
    }

    package var now: Instant
    package var presence: Presence
    package var registeredAt: Instant
    /// The last login.
    package var seenAt: Instant
    package var hasToken: Bool
    package var acknowledged: Seq
    package var keptCount: Int
    package var keptBytes: Int
    /// The last entry of the stream that is in flight in the session, or `acknowledged`.
    package var sentUpTo: Seq

    package init(
        now: Instant, presence: Presence, registeredAt: Instant, seenAt: Instant, hasToken: Bool, acknowledged: Seq,
        keptCount: Int, keptBytes: Int, sentUpTo: Seq
    ) {
        self.now = now
        self.presence = presence
        self.registeredAt = registeredAt
        self.seenAt = seenAt
        self.hasToken = hasToken
        self.acknowledged = acknowledged
        self.keptCount = keptCount
        self.keptBytes = keptBytes
        self.sentUpTo = sentUpTo
    }

    package var isOnline: Bool {
        switch presence {
        case .attached, .grace: true
        case .offline, .restored: false
        }
    }
}

/// Which message a question is about.
package enum TimelineTarget: Hashable, Sendable {
    case message(MessageID)
    /// The task's one message to the device.
    case task(Identifier128)

    package func isMatched(by acceptance: Acceptance) -> Bool {
        switch self {
        case .message(let id): acceptance.messageID == id
        case .task(let id): acceptance.taskID.value == id
        }
    }
}

/// What the log could tell, beside the facts themselves.
package struct TimelineCoverage: Hashable, Sendable {
    /// The time of the oldest fact in the log; nil when it is empty or switched off.
    package var from: Instant?
    /// Facts that were older have been removed for age or room.
    package var hasAgedOut = false
    /// Facts that were never written, since the oldest in the log.
    package var factsLost: UInt64 = 0
    /// Older facts of the device are there than those that were asked for.
    package var hasMore = false
    /// A file, or a part of one, could not be read.
    package var isPartial = false
    package var isOff = false

    package init() {}
}
