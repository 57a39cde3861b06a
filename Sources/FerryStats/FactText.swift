package import FerryCore

/// How facts are called and told in answers.
extension Fact {
    /// One word, stable: part of the API.
    package var name: String {
        switch self {
        case .accepted: "accepted"
        case .sent(_, _, let isOffLine): isOffLine ? "flushed" : "sent"
        case .ended(_, let reason): "\(reason.state)"
        case .gapSent: "gap_sent"
        case .acknowledged: "acknowledged"
        case .stubDue: "stub_due"
        case .noToken: "no_token"
        case .stubRequested: "stub_requested"
        case .stubAnswered(_, _, .accepted): "stub_accepted"
        case .stubAnswered(_, _, .refused): "stub_refused"
        case .stubWithdrawn: "stub_withdrawn"
        case .tokenChanged: "token_changed"
        case .attached: "attached"
        case .detached: "detached"
        case .takenOver: "taken_over"
        case .wentOffline: "offline"
        case .started: "gateway_started"
        case .stopped: "gateway_stopped"
        case .factsLost: "facts_lost"
        case .broadcastPlaced: "broadcast_placed"
        case .broadcastOver: "broadcast_over"
        }
    }

    /// What there is to say beside the name. `at` is the time of the fact.
    package func text(at: Instant) -> String {
        switch self {
        case .accepted(let acceptance): return acceptance.text(syncedAt: at)
        case .sent(let seq, let session, let isOffLine):
            return "seq \(seq) in session \(session.text), offLine=\(isOffLine)"
        case .ended(let seq, let reason): return "seq \(seq): \(reason.text)"
        case .gapSent(let gap):
            return "told that up to seq \(gap.upTo) \(gap.expired) expired and \(gap.overflowed) overflowed"
        case .acknowledged(let upTo): return "everything up to seq \(upTo)"
        case .stubDue(let upTo): return "for what is kept up to seq \(upTo)"
        case .noToken(let upTo): return "no stub for what is kept up to seq \(upTo): the device has no push token"
        case .stubRequested(let kind, let upTo): return kind.text(upTo)
        case .stubAnswered(let kind, let upTo, .accepted): return kind.text(upTo)
        case .stubAnswered(let kind, let upTo, .refused(let reason)): return "\(kind.text(upTo)): \(reason)"
        case .stubWithdrawn(let seq): return "the device came back before the alert of seq \(seq) was asked for"
        case .tokenChanged(let hasToken): return hasToken ? "the device has a push token" : "the push token is gone"
        case .attached(let attachment): return attachment.text
        case .detached(let session, let departure, let code):
            let closed = code == 0 ? "" : "; closed by the gateway with code \(code)"
            return "session \(session.text): \(departure.text)\(closed)"
        case .takenOver(let session): return "session \(session.text): a newer session of the device took over"
        case .wentOffline: return "the device counts as offline"
        case .started: return "the gateway was started"
        case .stopped: return "the gateway was stopped"
        case .factsLost(let count): return "\(count) facts were not written"
        case .broadcastPlaced(let targets): return "accepted for \(targets) devices"
        case .broadcastOver(let reason, let targets): return "over for \(targets) devices: \(reason.text)"
        }
    }
}

extension EndReason {
    /// A sentence part for people.
    package var text: String {
        switch self {
        case .acknowledged: "the device acknowledged it"
        case .ttlRanOut: "its ttl ran out"
        case .noLiveSession: "it was live only, and the device had no live session"
        case .liveSessionEnded: "it was live only, and the session ended before the device acknowledged it"
        case .countCap: "the device had more kept messages than its cap, and this was the oldest unsent"
        case .byteCap: "the device had more kept bytes than its cap, and this was the oldest unsent message"
        case .unreadable: "the store could not read it any more"
        case .taskStopped: "its sender stopped the task before the device had acknowledged it"
        case .kindNotTaken: "the device's client does not take this kind of content"
        case .handedOver: "the wake-up channel took it, where its strategy ends"
        case .handOverRefused: "the wake-up channel refused it, and its strategy has no other way"
        case .handOverUnanswered: "the wake-up channel did not answer in time, and its strategy has no other way"
        case .deviceRemoved: "the device was removed"
        case .deviceBlocked: "the device was blocked"
        case .deviceFull: "the device kept as much as it may, and was to take no more"
        case .tokenMissing: "the device had no push token, and its strategy needs one"
        case .windowOver: "the time in which it may be shown was over"
        case .filtered: "its sender's filter passes over the device"
        case .deviceUnreadable: "what is known of the device could not be read"
        case .turnTooLate: "the push had no more time when the device's turn came"
        }
    }

    /// One word, stable: part of the API.
    package var name: String {
        switch self {
        case .acknowledged: "acknowledged"
        case .ttlRanOut: "ttl"
        case .noLiveSession: "no_live_session"
        case .liveSessionEnded: "live_session_ended"
        case .countCap: "message_cap"
        case .byteCap: "byte_cap"
        case .unreadable: "unreadable"
        case .taskStopped: "task_stopped"
        case .kindNotTaken: "kind_not_taken"
        case .handedOver: "handed_over"
        case .handOverRefused: "hand_over_refused"
        case .handOverUnanswered: "hand_over_unanswered"
        case .deviceRemoved: "device_removed"
        case .deviceBlocked: "device_blocked"
        case .deviceFull: "device_full"
        case .tokenMissing: "no_device_token"
        case .windowOver: "duration_over"
        case .filtered: "filtered"
        case .deviceUnreadable: "device_unreadable"
        case .turnTooLate: "turn_too_late"
        }
    }
}

extension Acceptance {
    func text(syncedAt: Instant) -> String {
        let life = isLiveOnly ? "live only" : "ttl \((expiresAt - acceptedAt).shortText)"
        var text = "seq \(seq), \(payloadBytes) bytes, \(life), the device was \(wasOnline ? "online" : "offline")"
        if isBroadcast {
            text += " when its turn came"
            return text + "; a broadcast, \((syncedAt - acceptedAt).shortText) after it was accepted for all devices"
        }
        if hasOwnAlert { text += ", with an alert of its own" }
        switch stub {
        case .none, .notWanted: break
        case .due: text += ", a stub was due"
        case .noToken: text += ", without a push token"
        }
        if isNotedAgain { return text + "; noted again at a start" }
        return text + "; on disk after \((syncedAt - acceptedAt).shortText)"
    }
}

extension StubKind {
    func text(_ upTo: Seq) -> String {
        switch self {
        case .standard: "the default stub, for what is kept up to seq \(upTo)"
        case .own: "the sender's alert of seq \(upTo)"
        }
    }
}

extension Departure {
    var text: String {
        switch self {
        case .lost: "the connection was lost"
        case .background: "the app went to the background"
        case .bye: "the client said good-bye"
        }
    }
}

extension Attachment {
    var peerText: String {
        let octets = [24, 16, 8, 0].map { (shift: UInt32) in String(peerAddress >> shift & 255) }
        return octets.joined(separator: ".") + ":\(peerPort)"
    }

    var text: String {
        let how =
            switch way {
            case .login: "session \(session.text) from \(peerText)"
            case .foreground: "session \(session.text): the app came to the foreground, from \(peerText)"
            }
        guard let lastSeq, lastSeq > .zero else { return how }
        return "\(how); it has everything up to seq \(lastSeq)"
    }
}

extension SessionID {
    /// Short and without a meaning of its own.
    package var text: String { String(rawValue, radix: 16) }
}
