internal import FerryCore

/// How far the wake-up for one message came. The first answer settles it: what is asked for afterwards is for later
/// messages, also where it names everything up to a `seq` behind this one's.
struct StubTrack: Sendable {
    private enum Step: Sendable { case nothing, due, noToken, requested, accepted, refused(String), withdrawn }

    private let seq: Seq
    private let hasOwnAlert: Bool
    private let isWanted: Bool
    private var step: Step
    private var at: Instant
    /// A request whose answer went down with the process is made again.
    private var isAskedAnew = false

    init(_ acceptance: Acceptance, at: Instant) {
        seq = acceptance.seq
        hasOwnAlert = acceptance.hasOwnAlert
        isWanted = acceptance.stub != .notWanted
        self.at = at
        step =
            switch acceptance.stub {
            case .none, .notWanted: .nothing
            case .due: .due
            case .noToken: .noToken
            }
    }

    /// Whether a later fact can still be about it.
    func isOpen(hasEnded: Bool) -> Bool {
        guard isWanted else { return false }
        switch step {
        case .accepted, .refused: return false
        case .requested: return true
        case .nothing, .due, .noToken, .withdrawn: return !hasEnded || hasOwnAlert
        }
    }

    /// Whether the fact is about this message's stub; it is taken when it is.
    mutating func take(_ fact: Fact, at: Instant, hasEnded: Bool) -> Bool {
        if case .started = fact { isAskedAnew = true }
        guard isOpen(hasEnded: hasEnded), let next = next(fact, hasEnded: hasEnded) else { return false }
        step = next
        self.at = at
        isAskedAnew = false
        return true
    }

    private func next(_ fact: Fact, hasEnded: Bool) -> Step? {
        switch (fact, step) {
        case (.stubDue(let upTo), .nothing), (.stubDue(let upTo), .noToken):
            return upTo >= seq && !hasEnded ? .due : nil
        case (.noToken(let upTo), .nothing): return upTo >= seq && !hasEnded ? .noToken : nil
        case (.stubRequested(let kind, let upTo), _):
            if case .requested = step, !isAskedAnew { return nil }
            return isMeant(kind, upTo) ? .requested : nil
        case (.stubAnswered(let kind, let upTo, let verdict), _):
            guard isMeant(kind, upTo) else { return nil }
            switch verdict {
            case .accepted: return .accepted
            case .refused(let reason): return .refused(reason)
            }
        case (.stubWithdrawn(let other), _): return other == seq ? .withdrawn : nil
        case (.stubDue, _), (.noToken, _), (.accepted, _), (.sent, _), (.ended, _), (.gapSent, _), (.acknowledged, _),
            (.tokenChanged, _), (.attached, _), (.detached, _), (.takenOver, _), (.wentOffline, _), (.started, _),
            (.stopped, _), (.factsLost, _), (.broadcastPlaced, _), (.broadcastOver, _):
            return nil
        }
    }

    private func isMeant(_ kind: StubKind, _ upTo: Seq) -> Bool {
        switch kind {
        case .own: hasOwnAlert && upTo == seq
        case .standard: !hasOwnAlert && upTo >= seq
        }
    }

    /// With a space before it; empty when there is nothing to say.
    func sentence(hasEnded: Bool) -> String {
        guard isWanted else { return " No stub was wanted: it is live only without an alert of its own." }
        switch step {
        case .nothing: return hasEnded ? "" : " No stub is due yet."
        case .due:
            return hasEnded
                ? " A stub was due and had not been asked for."
                : " A stub is due and waits for its turn (stubCooldownMs)."
        case .noToken: return " No stub was sent: the device has no push token."
        case .requested: return " A stub was asked for at \(at.utcText) and is not answered yet."
        case .accepted: return " The stub was accepted at \(at.utcText)."
        case .refused(let reason): return " The stub was refused at \(at.utcText): \(reason)."
        case .withdrawn: return " Its stub was taken back: the device came back first."
        }
    }
}
