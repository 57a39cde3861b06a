internal import FerryCore

/// Picks from a device's facts, given in order of time, those that have to do with one message: its own from acceptance to
/// end, and the device's presence meanwhile. Whatever came to other messages is left out, however much it is, so that
/// the end of one that waited long is not missed.
package struct FactSelection: Sendable {
    package let target: TimelineTarget
    /// In order of time.
    package private(set) var facts: [TimedFact] = []
    /// The middle of a life of very many sessions was left out.
    package private(set) var isThinned = false
    private let limit: Int

    private var acceptance: Acceptance?
    private var stub: StubTrack?
    private var end: EndReason?
    private var isGapTold = false
    /// Its stream has begun anew since, after the loss of a part of the store: a `seq` is another message's from then on.
    private var isPast = false
    private var lastAcknowledgement: TimedFact?

    /// Presence that is told of the time before the acceptance.
    private static let before = 4

    /// - Parameter limit: of facts that are held at once; above it the middle goes. The default is the most that one
    ///   question may take of memory.
    package init(_ target: TimelineTarget, limit: Int = 100_000) {
        self.target = target
        self.limit = max(16, limit)
    }

    /// The message's acceptance was among the facts.
    package var isFound: Bool { acceptance != nil }

    /// No later fact can matter.
    package var isComplete: Bool { end == .acknowledged && stub?.isOpen(hasEnded: true) != true }

    package mutating func take(_ timed: TimedFact) {
        if let acceptance, case .accepted(let again) = timed.fact, again.isBroadcast || again.isNotedAgain,
            again.seq == acceptance.seq, again.taskID == acceptance.taskID
        {
            // Told to a device that was loaded anew, or once more at a start; the story goes on.
            isPast = false
        } else if timed.isAcceptance(of: target), case .accepted(let found) = timed.fact {
            facts = facts.filter(\.fact.isPresence).suffix(Self.before) + [timed]
            acceptance = found
            stub = StubTrack(found, at: timed.at)
            end = nil
            isGapTold = false
            isPast = false
        } else if timed.fact.isPresence {
            _ = stub?.take(timed.fact, at: timed.at, hasEnded: end != nil)
            // After its end, the device's comings and goings are another story.
            if end == nil { facts.append(timed) }
        } else if let acceptance, !isPast, concerns(timed, acceptance.seq) {
            facts.append(timed)
        }
        if case .acknowledged = timed.fact, end == nil, !isPast { lastAcknowledgement = timed }
        if facts.count > limit { thin() }
    }

    /// Whose message still waits wants to know since when nothing was acknowledged.
    package mutating func finish() {
        guard let acceptance, end == nil, let last = lastAcknowledgement, case .acknowledged(let upTo) = last.fact,
            upTo < acceptance.seq
        else { return }
        lastAcknowledgement = nil
        facts.insert(last, at: facts.firstIndex { $0.at > last.at } ?? facts.count)
    }

    private mutating func concerns(_ timed: TimedFact, _ seq: Seq) -> Bool {
        switch timed.fact {
        case .accepted(let other):
            if !other.isBroadcast, !other.isNotedAgain { isPast = other.seq <= seq }
            return false
        case .sent(let other, _, _):
            guard other == seq else { return false }
            // It had not ended after all: the gateway went down before that was on disk.
            if end != .acknowledged { end = nil }
            return true
        case .ended(let other, let reason):
            guard other == seq else { return false }
            end = end ?? reason
            return true
        case .acknowledged(let upTo):
            guard upTo >= seq, end == nil else { return false }
            end = .acknowledged
            return true
        case .gapSent(let gap):
            guard gap.upTo >= seq, !isGapTold, end != nil else { return false }
            isGapTold = true
            return true
        case .stubDue, .noToken, .stubRequested, .stubAnswered, .stubWithdrawn:
            return stub?.take(timed.fact, at: timed.at, hasEnded: end != nil) == true
        case .tokenChanged, .attached, .detached, .takenOver, .wentOffline, .started, .stopped, .factsLost,
            .broadcastPlaced, .broadcastOver:
            return false
        }
    }

    private mutating func thin() {
        let middle = facts.count / 4..<facts.count * 3 / 4
        var kept = Array(facts[..<middle.lowerBound])
        // Before the acceptance is found, only the latest matters.
        if acceptance == nil { kept = [] }
        for timed in facts[middle] where acceptance != nil && !timed.fact.canRecur { kept.append(timed) }
        facts = kept + facts[middle.upperBound...]
        isThinned = isThinned || acceptance != nil
    }

    /// Of facts in order of time.
    package static func select(_ facts: [TimedFact], target: TimelineTarget) -> [TimedFact] {
        var selection = FactSelection(target)
        for timed in facts { selection.take(timed) }
        selection.finish()
        return selection.facts
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
    package var isPresence: Bool {
        switch self {
        case .attached, .detached, .takenOver, .wentOffline, .tokenChanged, .started, .stopped, .factsLost: true
        case .accepted, .sent, .ended, .gapSent, .acknowledged, .stubDue, .noToken, .stubRequested, .stubAnswered,
            .stubWithdrawn, .broadcastPlaced, .broadcastOver:
            false
        }
    }

    /// What a device can cause as often as it likes while a message waits.
    fileprivate var canRecur: Bool {
        if case .sent = self { return true }
        return isPresence
    }
}
