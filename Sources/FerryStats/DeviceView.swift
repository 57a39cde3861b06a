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
    package var isOff = false

    package init() {}
}

/// Picks what matters for a question from a device's facts. Both in order of time.
package enum FactSelection {
    /// The last `limit` facts, or those that have to do with the target: its own, and the device's presence meanwhile.
    package static func select(
        _ facts: [TimedFact], target: TimelineTarget?, limit: Int
    ) -> (facts: [TimedFact], hasMore: Bool) {
        guard let target else { return (Array(facts.suffix(limit)), facts.count > limit) }
        guard let start = facts.lastIndex(where: { $0.isAcceptance(of: target) }),
            case .accepted(let acceptance) = facts[start].fact
        else {
            // Whose message is not found may at least be told of its presence.
            return (Array(facts.filter(\.fact.isPresence).suffix(limit)), false)
        }
        var chosen = Array(facts[..<start].filter(\.fact.isPresence).suffix(4))
        var hasEnded = false
        for timed in facts[start...] {
            guard chosen.count < limit else { return (chosen, true) }
            if timed.fact.isPresence {
                // After its end, the device's comings and goings are another story.
                if !hasEnded { chosen.append(timed) }
            } else if timed.fact.concerns(acceptance.seq) {
                if hasEnded, case .acknowledged = timed.fact { continue }
                chosen.append(timed)
                hasEnded = hasEnded || timed.fact.ends(acceptance.seq)
            }
        }
        // Whose message still waits wants to know since when nothing was acknowledged.
        if !hasEnded, let ack = facts.last(where: \.fact.isAcknowledgement) {
            chosen.insert(ack, at: chosen.firstIndex { $0.at > ack.at } ?? chosen.count)
        }
        return (chosen, false)
    }
}

extension TimedFact {
    package func isAcceptance(of target: TimelineTarget) -> Bool {
        if case .accepted(let acceptance) = fact { return target.isMatched(by: acceptance) }
        return false
    }
}

extension Fact {
    /// Of the device's presence, or of the gateway's.
    var isPresence: Bool {
        switch self {
        case .attached, .detached, .takenOver, .wentOffline, .tokenChanged, .started, .stopped, .factsLost: true
        case .accepted, .sent, .ended, .gapSent, .acknowledged, .stubDue, .noToken, .stubRequested, .stubAnswered,
            .stubWithdrawn:
            false
        }
    }

    var isAcknowledgement: Bool {
        if case .acknowledged = self { return true }
        return false
    }

    func concerns(_ seq: Seq) -> Bool {
        switch self {
        case .accepted(let acceptance): acceptance.seq == seq
        case .sent(let other, _, _), .ended(let other, _), .stubWithdrawn(let other): other == seq
        case .gapSent(let gap): gap.upTo >= seq
        case .acknowledged(let upTo), .stubDue(let upTo), .noToken(let upTo): upTo >= seq
        case .stubRequested(let kind, let upTo), .stubAnswered(let kind, let upTo, _):
            kind == .own ? upTo == seq : upTo >= seq
        case .tokenChanged, .attached, .detached, .takenOver, .wentOffline, .started, .stopped, .factsLost: false
        }
    }

    func ends(_ seq: Seq) -> Bool {
        switch self {
        case .ended(let other, _): other == seq
        case .acknowledged(let upTo): upTo >= seq
        case .accepted, .sent, .gapSent, .stubDue, .noToken, .stubRequested, .stubAnswered, .stubWithdrawn,
            .tokenChanged, .attached, .detached, .takenOver, .wentOffline, .started, .stopped, .factsLost:
            false
        }
    }
}
