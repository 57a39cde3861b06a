package import FerryCore

/// Where a device was, followed from fact to fact.
package struct PresenceTrack: Hashable, Sendable {
    /// The session that is on, and since when.
    package var session: (id: SessionID, since: Instant)? { sessionID.map { ($0, since) } }
    private var sessionID: SessionID?
    private var since = Instant.distantPast
    /// Since when the device has no session; nil while it has one, and when the facts do not tell.
    package private(set) var awaySince: Instant?
    /// How the last session ended.
    package private(set) var departure: String?
    /// When it last acknowledged anything.
    package private(set) var acknowledgedAt: Instant?

    package init() {}

    mutating func take(_ timed: TimedFact) {
        switch timed.fact {
        case .attached(let attachment):
            sessionID = attachment.session
            since = timed.at
            awaySince = nil
            departure = nil
            acknowledgedAt = nil
        case .detached(let session, let departure, let code):
            // An older session's end says nothing of the one that is on.
            guard sessionID == nil || sessionID == session else { return }
            leave(timed.at, code == 0 ? departure.text : "the gateway closed the connection with code \(code)")
        case .stopped: leave(timed.at, "the gateway was stopped")
        case .started: if sessionID != nil { leave(timed.at, "the gateway went down and was started again") }
        case .acknowledged: acknowledgedAt = timed.at
        case .accepted, .sent, .ended, .gapSent, .stubDue, .noToken, .stubRequested, .stubAnswered, .stubWithdrawn,
            .tokenChanged, .takenOver, .wentOffline, .factsLost, .broadcastPlaced, .broadcastOver:
            break
        }
    }

    private mutating func leave(_ at: Instant, _ why: String) {
        guard sessionID != nil || awaySince == nil else { return }
        sessionID = nil
        awaySince = at
        departure = why
    }

    /// A sentence part on how the device was, such as `the device was offline since …`.
    var wasText: String {
        if let session { return "the device was attached in session \(session.id.text) since \(session.since.utcText)" }
        guard let awaySince else { return "the device was not attached" }
        return "the device had been away since \(awaySince.utcText)\(departure.map { " (\($0))" } ?? "")"
    }

    /// A sentence on how the device is.
    func sentence(_ view: DeviceView) -> String {
        let why = awaySince.map { " since \($0.utcText)\(departure.map { ": \($0)" } ?? "")" } ?? ""
        switch view.presence {
        case .attached(let id):
            let since = sessionID == id ? " since \(since.utcText)" : ""
            return "The device is attached in session \(id.text)\(since)."
        case .grace(let until):
            return "The device's connection is lost\(why); it counts as online until \(until.utcText)."
        case .offline: return "The device is offline\(why)."
        case .restored:
            return "The device has not come back since the gateway's start\(awaySince == nil ? "" : "; away\(why)")."
        }
    }
}
