package import FerryCore

/// What happened to one message.
package struct MessageStory: Sendable {
    package let acceptance: Acceptance
    /// The message's own, in order of time, the acceptance first.
    package var events: [TimedFact]
    /// nil when its end is not known: it is not kept any more, and the fact that tells why was lost.
    package private(set) var state: DeliveryState?
    /// nil while it is kept, and when its end is not known.
    package private(set) var reason: EndReason?
    /// What became of it and why, in plain English.
    package private(set) var verdict = ""

    private let syncedAt: Instant
    /// Since when the device was away as the message came.
    private let awayBefore: Instant?
    private var endedAt: Instant?
    private var presenceAtEnd = PresenceTrack()
    private var sends: [(at: Instant, session: SessionID, isOffLine: Bool)] = []
    private var stub: StubTrack
    /// It was dropped, and the gap that tells so was not sent yet.
    var isGapOwed = false

    init(_ acceptance: Acceptance, _ timed: TimedFact, wasOffline: Instant?) {
        self.acceptance = acceptance
        events = [timed]
        stub = StubTrack(acceptance, at: timed.at)
        syncedAt = timed.at
        awayBefore = wasOffline
    }

    /// A fact of a wake-up can still be about it.
    var isStubOpen: Bool { stub.isOpen(hasEnded: reason != nil) && (reason == nil || !acceptance.hasOwnAlert) }

    /// Takes a fact of a wake-up, or of the gateway's start, if it is about this message.
    mutating func takeStub(_ timed: TimedFact) {
        if stub.take(timed.fact, at: timed.at, hasEnded: reason != nil) { events.append(timed) }
    }

    mutating func tell(_ timed: TimedFact) {
        events.append(timed)
        guard case .sent(_, let session, let isOffLine) = timed.fact else { return }
        sends.append((timed.at, session, isOffLine))
        if reason != nil, reason != .acknowledged { reopen() }
    }

    /// It is there after all: the gateway went down before its end was on disk.
    private mutating func reopen() {
        reason = nil
        state = nil
        endedAt = nil
        isGapOwed = false
    }

    /// The first end counts: a terminal state never changes.
    mutating func end(_ reason: EndReason, _ timed: TimedFact, _ presence: PresenceTrack) {
        guard self.reason == nil else { return }
        self.reason = reason
        state = reason.state
        endedAt = timed.at
        presenceAtEnd = presence
        isGapOwed = !acceptance.isLiveOnly && (state == .expired || state == .overflowed)
    }

    /// After the last fact: what the owner says of it decides where the facts are silent.
    mutating func conclude(_ view: DeviceView, _ presence: PresenceTrack, isKept: Bool) {
        if isKept, reason != .acknowledged { reopen() }
        if let reason, let endedAt {
            verdict = endText(reason, endedAt)
        } else if isKept {
            state = .kept
            verdict = keptText(view, presence)
        } else if acceptance.seq <= view.acknowledged {
            state = .delivered
            reason = .acknowledged
            verdict =
                "Delivered: the device has acknowledged everything up to seq \(view.acknowledged). When it "
                + "acknowledged this message is not known, because that fact was lost."
        } else {
            verdict =
                "It has ended, but the facts of its end were lost: it is not kept any more, and the device has not "
                + "acknowledged it. Its ttl \(acceptance.expiresAt <= view.now ? "has run out" : "has not run out")."
        }
    }

    // MARK: - Sentences

    private func endText(_ reason: EndReason, _ at: Instant) -> String {
        let age = (at - acceptance.acceptedAt).shortText
        switch reason {
        case .acknowledged:
            var text = "Delivered: the device acknowledged it at \(at.utcText), \(age) after its acceptance."
            if let last = sends.last {
                text += " It was sent in session \(last.session.text) at \(last.at.utcText), offLine=\(last.isOffLine)."
                if last.isOffLine, let awayBefore, !acceptance.wasOnline {
                    text += " Until then it was kept, since the device had been away since \(awayBefore.utcText)."
                }
                if sends.count > 1 {
                    text += " It was sent \(sends.count) times: earlier sessions ended without an ack."
                }
            }
            return text
        case .ttlRanOut:
            let life = (acceptance.expiresAt - acceptance.acceptedAt).shortText
            var text = "Expired: its ttl of \(life) ran out at \(acceptance.expiresAt.utcText); "
            text += sends.isEmpty ? "it was never sent, and " : "it was sent \(sends.count) times without an ack, and "
            return text + presenceAtEnd.wasText + "." + stub.sentence(hasEnded: true)
        case .noLiveSession:
            return "Expired at once: it was live only (ttl 0 or -1), and the device had no live session at "
                + "\(at.utcText); \(presenceAtEnd.wasText)." + stub.sentence(hasEnded: true)
        case .liveSessionEnded:
            let sent = sends.isEmpty ? "it could be sent" : "the device acknowledged it"
            return "Expired: it was live only (ttl 0 or -1), and its session ended before \(sent); it expired at "
                + "\(at.utcText), \(age) after its acceptance."
        case .countCap, .byteCap:
            let cap = reason == .countCap ? "kept messages (messageCap)" : "kept bytes (byteCap)"
            return
                "Dropped: newer messages came, the device's cap of \(cap) was reached at \(at.utcText), and this was "
                + "the oldest unsent; \(presenceAtEnd.wasText)."
        case .unreadable:
            return "Failed: the store could not read its content at \(at.utcText); the gateway's log says why."
        case .taskStopped:
            let sent =
                sends.isEmpty
                ? "it was never sent" : "it was sent \(sends.count) times, so that the device may have it all the same"
            return "Revoked: its sender stopped the task before the device had acknowledged it; \(sent), and "
                + presenceAtEnd.wasText + "." + stub.sentence(hasEnded: true)
        case .kindNotTaken:
            return "Skipped: it is a notification or a revoke, and the client that attached does not take those; its "
                + "turn came at \(at.utcText)."
        case .handedOver:
            return
                "Handed over: the wake-up channel took it at \(at.utcText), \(age) after its acceptance; its strategy "
                + "(2 or 4) ends there." + stub.sentence(hasEnded: true)
        case .handOverRefused:
            return "Failed: the wake-up channel refused it at \(at.utcText), and its strategy (2) has no other way."
                + stub.sentence(hasEnded: true)
        case .handOverUnanswered:
            return "Failed: the wake-up channel had not answered at \(at.utcText), and its strategy (2) has no other "
                + "way; whether it took the message is not known." + stub.sentence(hasEnded: true)
        case .deviceRemoved: return "Skipped: the device was removed at \(at.utcText)."
        case .deviceBlocked:
            return "Skipped: the device was blocked when it was pushed, at \(at.utcText); nothing was sent."
        case .deviceFull:
            return "Skipped: when the device's turn came, at \(at.utcText), it kept as much as it may, and capPolicy "
                + "is to refuse."
        case .tokenMissing:
            return "Skipped: when the device's turn came, at \(at.utcText), it had no push token, which the push's "
                + "strategy needs."
        case .windowOver:
            return "Expired: when the device's turn came, at \(at.utcText), the time in which it may be shown was "
                + "over."
        case .filtered:
            return "Skipped: when the device's turn came, at \(at.utcText), the sender's filter passed it over."
        case .deviceUnreadable:
            return "Failed: the store could not read what is known of the device, the last time at \(at.utcText); the "
                + "gateway's log says why."
        case .turnTooLate:
            return "Expired: the push had no more time when the device's turn came, at \(at.utcText)."
        }
    }

    private func keptText(_ view: DeviceView, _ presence: PresenceTrack) -> String {
        let expiry =
            acceptance.isLiveOnly
            ? " It is live only and ends with the session." : " It expires at \(acceptance.expiresAt.utcText)."
        switch view.presence {
        case .attached(let session):
            if acceptance.seq <= view.sentUpTo, let last = sends.last {
                return "Kept: it was sent in session \(session.text) at \(last.at.utcText), and the device has not "
                    + "acknowledged it since. While that session lasts it does not expire."
            }
            let silence = presence.acknowledgedAt.map { "since \($0.utcText)" } ?? "in this session"
            return "Kept: it waits in the window. The device is attached in session \(session.text), and has "
                + "acknowledged nothing \(silence), or takes what is before it slowly.\(expiry)"
        case .grace, .offline, .restored:
            let sent =
                sends.isEmpty
                ? ""
                : " It was sent \(sends.count) times, the last at \(sends[sends.count - 1].at.utcText), without an ack."
            return "Kept: \(presence.sentence(view))\(sent)" + stub.sentence(hasEnded: false) + expiry
        }
    }
}
