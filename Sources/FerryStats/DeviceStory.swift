package import FerryCore

/// What happened to a device and its messages, as far as facts and the owner's view tell.
package struct DeviceStory: Sendable {
    package let view: DeviceView
    package let coverage: TimelineCoverage
    package let target: TimelineTarget?
    /// In order of acceptance; with a target at most one.
    package private(set) var messages: [MessageStory] = []
    /// What is of the device itself, in order of time.
    package private(set) var events: [TimedFact] = []
    /// Since when the device is as `view` says, as far as that is known.
    package private(set) var presence = PresenceTrack()
    /// Events were left out to keep to the limit.
    package private(set) var isThinned = false

    /// `facts` are in order of time. `isKept` is asked of the owner at the same moment as `view`.
    /// - Parameter limit: with a target, of the events that are told; the verdict is of all facts.
    package init(
        facts: [TimedFact], view: DeviceView, coverage: TimelineCoverage, target: TimelineTarget?, limit: Int = .max,
        isKept: (Seq) -> Bool
    ) {
        self.view = view
        self.coverage = coverage
        self.target = target
        for (order, timed) in facts.enumerated() {
            var placed = timed
            placed.order = order
            take(placed)
        }
        if let target {
            // Its own facts and the device's meanwhile, as one story.
            messages.removeAll { !target.isMatched(by: $0.acceptance) }
            messages = messages.suffix(1)
        }
        for index in messages.indices {
            let kept = isKept(messages[index].acceptance.seq)
            messages[index].conclude(view, presence, isKept: kept)
        }
        if target != nil { thin(to: limit) }
    }

    /// A message's beginning and end say the most, and its own events more than the device's meanwhile.
    private mutating func thin(to limit: Int) {
        var room = max(1, limit)
        for index in messages.indices.reversed() {
            isThinned = messages[index].events.thin(to: room) || isThinned
            room -= messages[index].events.count
        }
        isThinned = events.thin(to: room) || isThinned
    }

    /// The last start that followed no orderly stop: facts of the moment before may be missing.
    private var crashSeenAt: Instant?
    private var hasStopped = true

    /// Messages whose end has not been told yet are a suffix of all, but for drops out of order.
    private var firstOpen = 0
    /// `seq` rises from here on. It begins anew only where an operator has accepted the loss of a part of the store.
    private var lineStart = 0
    /// Messages that a fact of a wake-up can still be about, rising. Each takes a few such facts at most, so that the
    /// story stays about as long as the facts that it is made of.
    private var stubsOpen: [Int] = []

    private mutating func take(_ timed: TimedFact) {
        let fact = timed.fact
        presence.take(timed)
        switch fact {
        case .accepted(let acceptance):
            if acceptance.isBroadcast || acceptance.isNotedAgain {
                takeInPlace(acceptance, timed)
                return
            }
            if let last = messages.last, acceptance.seq <= last.acceptance.seq {
                lineStart = messages.count
                firstOpen = messages.count
                stubsOpen = []
            }
            messages.append(MessageStory(acceptance, timed, wasOffline: presence.awaySince))
            if messages[messages.count - 1].isStubOpen { stubsOpen.append(messages.count - 1) }
        case .sent(let seq, _, _):
            guard let index = index(of: seq) else { return }
            messages[index].tell(timed)
            if messages[index].reason == nil { firstOpen = min(firstOpen, index) }
        case .ended(let seq, let reason):
            if let index = index(of: seq) {
                messages[index].tell(timed)
                messages[index].end(reason, timed, presence)
            }
        case .acknowledged(let upTo):
            var index = firstOpen
            while index < messages.count, messages[index].acceptance.seq <= upTo {
                if messages[index].reason == nil {
                    messages[index].events.append(timed)
                    messages[index].end(.acknowledged, timed, presence)
                }
                index += 1
            }
            firstOpen = index
            if target == nil { events.append(timed) }
        case .stubDue(let upTo), .noToken(let upTo), .stubRequested(.standard, let upTo),
            .stubAnswered(.standard, let upTo, _):
            tellStubs(timed, upTo)
            if target == nil { events.append(timed) }
        case .stubRequested(.own, let seq), .stubAnswered(.own, let seq, _), .stubWithdrawn(let seq):
            if let index = index(of: seq) { messages[index].takeStub(timed) }
        case .gapSent(let gap):
            for index in messages.indices.reversed().prefix(1_000)
            where messages[index].isGapOwed && messages[index].acceptance.seq <= gap.upTo {
                messages[index].events.append(timed)
                messages[index].isGapOwed = false
            }
            events.append(timed)
        case .started:
            if !hasStopped { crashSeenAt = timed.at }
            hasStopped = false
            tellStubs(timed, Seq(.max))
            events.append(timed)
        case .stopped:
            hasStopped = true
            events.append(timed)
        case .tokenChanged, .attached, .detached, .takenOver, .wentOffline, .factsLost: events.append(timed)
        // They are of all devices; this one's part in it is told by its own facts.
        case .broadcastPlaced, .broadcastOver: break
        }
    }

    /// A broadcast is told of whenever the device has come into memory anew, some messages once more at a start.
    private mutating func takeInPlace(_ acceptance: Acceptance, _ timed: TimedFact) {
        guard index(of: acceptance.seq) == nil else { return }
        var place = messages.count
        while place > lineStart, messages[place - 1].acceptance.seq > acceptance.seq { place -= 1 }
        messages.insert(MessageStory(acceptance, timed, wasOffline: presence.awaySince), at: place)
        for index in stubsOpen.indices where stubsOpen[index] >= place { stubsOpen[index] += 1 }
        if messages[place].isStubOpen {
            stubsOpen.insert(place, at: stubsOpen.firstIndex { $0 > place } ?? stubsOpen.endIndex)
        }
        firstOpen = min(firstOpen, place)
    }

    private mutating func tellStubs(_ timed: TimedFact, _ upTo: Seq) {
        for index in stubsOpen where messages[index].acceptance.seq <= upTo { messages[index].takeStub(timed) }
        stubsOpen.removeAll { !messages[$0].isStubOpen }
    }

    private func index(of seq: Seq) -> Int? {
        var low = lineStart
        var high = messages.count
        while low < high {
            let middle = (low + high) / 2
            if messages[middle].acceptance.seq < seq { low = middle + 1 } else { high = middle }
        }
        return low < messages.count && messages[low].acceptance.seq == seq ? low : nil
    }

    /// One or two sentences that answer the question.
    package var verdict: String {
        if let target { return messages.last?.verdict ?? notFound(target) }
        var counts: [(name: String, count: Int)] = []
        for state in DeliveryState.allCases {
            let count = messages.filter { $0.state == state }.count
            if count > 0 { counts.append(("\(state)", count)) }
        }
        let unknown = messages.filter { $0.state == nil }.count
        if unknown > 0 { counts.append(("of unknown end", unknown)) }
        let summary = counts.map { "\($0.count) \($0.name)" }.joined(separator: ", ")
        let found =
            messages.isEmpty
            ? "The log tells of no message to this device"
            : "\(messages.count) message\(messages.count == 1 ? "" : "s") in the log: \(summary)"
        return "\(found). \(presence.sentence(view)) \(view.keptCount) kept.\(coverageText)"
    }

    private func notFound(_ target: TimelineTarget) -> String {
        let name =
            switch target {
            case .message: "message"
            case .task: "task"
            }
        if coverage.isOff {
            return "The timeline log is switched off (timelineBytes), so nothing is known of this \(name). "
                + presence.sentence(view)
        }
        let never = "was never accepted for this device"
        let age =
            coverage.hasAgedOut
            ? "Either it \(never), or it has aged out"
            : coverage.isPartial
                ? "Either it \(never), or the part of the log that cannot be read tells of it"
                : "It \(never), as far as the log tells"
        let crash =
            crashSeenAt.map {
                " Facts of the last moment before a crash may be missing, and the gateway was started at \($0.utcText) without "
                    + "having been stopped; \(view.keptCount) messages are kept for the device."
            } ?? ""
        return "Nothing is known of this \(name). \(age).\(coverageText)\(crash)"
    }

    private var coverageText: String {
        if coverage.isOff { return " The timeline log is switched off." }
        var text = coverage.from.map { " The log reaches back to \($0.utcText)." } ?? " The log is empty."
        if coverage.factsLost > 0 { text += " \(coverage.factsLost) facts were lost to a full or slow disk." }
        if coverage.isPartial { text += " A part of it could not be read." }
        return text
    }
}

extension [TimedFact] {
    /// Takes from the middle what is above `limit`; whether anything was.
    fileprivate mutating func thin(to limit: Int) -> Bool {
        guard count > limit else { return false }
        removeSubrange((limit / 2)..<(count - (limit - limit / 2)))
        return true
    }
}
