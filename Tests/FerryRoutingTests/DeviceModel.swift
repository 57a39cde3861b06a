internal import FerryCore
internal import FerryRouting
internal import FerryTestSupport

/// What a device's stream must do, said the slow and plain way: every message ever accepted stays in one list, and each
/// question is answered by looking at all of them.
struct DeviceModel: Hashable {
    struct Message: Hashable {
        let kept: KeptMessage
        var end: DeliveryState?
        var wasOffline: Bool
        var isStubAsked = false
        /// A broadcast whose time is over.
        var isOver = false
        /// A broadcast that the machine was told of as missed: it was never in its log.
        var isMissed = false
        /// A broadcast whose turn to wake has come.
        var isWakeWanted = false
        /// The wake-up channel has it, and has not answered.
        var isHandingOver = false

        var seq: Seq { kept.seq }
        var isKept: Bool { end == nil }
        var isShared: Bool { kept.isShared }
    }

    var messages: [Message] = []
    var presence = Presence.offline
    var acknowledged: Seq
    /// Highest `seq` sent on the connection.
    var ackBound: Seq
    /// The connection of the last session is still there, in the background.
    var isInBackground = false
    var sent: Seq
    /// Dropped, kept before, and not acknowledged past.
    var missing: Set<Seq> = []
    /// How many drops this session's stream has not told yet.
    var untold = 0
    var hasToken: Bool
    var unsyncedDrops = 0
    /// The first of them.
    var unsyncedFrom: Seq?
    var unsyncedDue = 0
    var windowMessages: Int32 = 1
    var windowBytes: Int32 = 1
    /// The stub requests that the wake-up channel has not answered.
    var outstanding: [StubPlan] = []
    var coolingUntil: Instant?
    var handOverUntil: Instant?

    init(acknowledged: Seq = .zero, hasToken: Bool) {
        self.acknowledged = acknowledged
        self.hasToken = hasToken
        sent = acknowledged
        ackBound = acknowledged
    }

    var kept: [Message] { messages.filter(\.isKept) }
    /// What a stub shows the number of.
    var shown: [Message] { kept.filter { !$0.isShared || !$0.kept.isLiveOnly } }
    /// What a stub may be asked for.
    var waking: [Message] { kept.filter { !$0.isShared || $0.isWakeWanted } }
    /// Without broadcasts.
    var own: [Message] { kept.filter { !$0.isShared } }
    var ownBytes: Int { own.reduce(0) { $0 + Int($1.kept.payloadBytes) } }
    /// Missing broadcasts: each is told of before anything behind it.
    var missingShared: Set<Seq> { missing.intersection(messages.filter(\.isShared).map(\.seq)) }
    var isAttached: Bool { if case .attached = presence { true } else { false } }
    /// Messages that a live session has and has not acknowledged.
    var inFlight: [Message] { isAttached ? kept.filter { $0.seq <= sent } : [] }

    // MARK: - Events

    mutating func handle(_ event: DeviceEvent, now: Instant, policy: DeliveryPolicy) {
        switch event {
        case .messageSynced(let message): accept(message, now: now, policy: policy)
        case .attached(let session, let lastSeq, let messages, let bytes, let continues):
            if case .grace(let until) = presence, until <= now {
                for index in self.messages.indices where self.messages[index].isKept {
                    self.messages[index].wasOffline = true
                }
            }
            if let lastSeq { acknowledge(lastSeq) }
            if !continues { ackBound = acknowledged }
            isInBackground = false
            endLiveOnly()
            presence = .attached(session)
            (windowMessages, windowBytes) = (messages, bytes)
            rewind()
            expire(now)
            enforceCap(policy)
        case .detached(let session, let end):
            guard presence == .attached(session) else { return }
            endLiveOnly()
            switch end {
            case .lost:
                presence = .grace(until: now + policy.reattachGrace)
                rewind()
                ackBound = acknowledged
                enforceCap(policy)
            case .bye:
                becomeOffline(now, policy)
                rewind()
                ackBound = acknowledged
            case .background:
                becomeOffline(now, policy)
                isInBackground = true
            }
        case .acknowledged(let seq): if seq <= ackBound { acknowledge(seq) }
        case .sent(let seq):
            sent = max(sent, seq)
            ackBound = max(ackBound, seq)
        case .dropSynced:
            unsyncedDrops -= 1
            if unsyncedDrops == 0 { unsyncedFrom = nil }
        case .dueSynced: unsyncedDue -= 1
        case .stubAnswered(let plan):
            if let index = outstanding.firstIndex(of: plan) { outstanding.remove(at: index) }
            if case .standard = plan { coolingUntil = now + policy.stubCooldown }
        case .handOverAnswered(let seq, let isAccepted):
            forget(seq)
            endHandOver(of: seq, isAccepted ? .handed : .failed, now: now, policy)
        case .stubWithdrawn(let seq) where messages.contains { $0.seq == seq && $0.kept.route.handsOver }:
            forget(seq)
            endHandOver(of: seq, .failed, now: now, policy)
        case .stubWithdrawn(let seq):
            outstanding.removeAll { if case .own(let message) = $0 { message.seq == seq } else { false } }
            if let index = messages.firstIndex(where: { $0.seq == seq }) { messages[index].isStubAsked = false }
        case .wakeWanted(let seq):
            guard hasToken || presence != .offline else { return }
            for index in messages.indices
            where messages[index].seq == seq && messages[index].isKept && !messages[index].kept.isLiveOnly {
                messages[index].isWakeWanted = true
            }
        case .tokenChanged(let has): hasToken = has
        case .broadcastEnded(let seq):
            for index in messages.indices where messages[index].seq == seq && !messages[index].kept.isLiveOnly {
                messages[index].isOver = true
            }
            expire(now)
        case .broadcastMissed(let seq):
            var message = Message(kept: DeviceScenario.Sort.shared.message(seq: seq.rawValue), wasOffline: true)
            message.end = .expired
            message.isMissed = true
            messages.append(message)
            missing.insert(seq)
            untold += 1
        case .takenBack(let seq, let reason):
            for index in messages.indices where messages[index].seq == seq && messages[index].isKept {
                messages[index].end = reason.state
            }
        case .unreadable(let seq):
            guard let index = messages.firstIndex(where: { $0.seq == seq && $0.isKept }),
                !inFlight.contains(messages[index])
            else { return }
            messages[index].end = .failed
        case .kindNotTaken(let seq):
            guard let index = messages.firstIndex(where: { $0.seq == seq && $0.isKept }),
                !inFlight.contains(messages[index])
            else { return }
            messages[index].end = .skipped
        case .timePassed:
            if let until = handOverUntil, until <= now {
                for message in messages where message.isHandingOver {
                    endHandOver(of: message.seq, .failed, now: now, policy)
                }
                handOverUntil = nil
            }
            expire(now)
            if case .grace(let until) = presence, until <= now { becomeOffline(now, policy) }
            if let until = coolingUntil, until <= now { coolingUntil = nil }
        }
    }

    private mutating func forget(_ seq: Seq) {
        outstanding.removeAll { if case .own(let message) = $0 { message.seq == seq } else { false } }
    }

    private mutating func endHandOver(of seq: Seq, _ state: DeliveryState, now: Instant, _ policy: DeliveryPolicy) {
        guard let index = messages.firstIndex(where: { $0.seq == seq && $0.isHandingOver && $0.isKept }) else { return }
        messages[index].isHandingOver = false
        if state == .handed || messages[index].kept.route == .wakeOnly {
            messages[index].end = state
        } else if messages[index].kept.isLiveOnly, !isAttached {
            messages[index].end = .expired
        }
        if !messages.contains(where: { $0.isHandingOver && $0.isKept }) { handOverUntil = nil }
        expire(now)
        enforceCap(policy)
    }

    private mutating func accept(_ message: KeptMessage, now: Instant, policy: DeliveryPolicy) {
        if message.route.handsOver {
            messages.append(Message(kept: message, wasOffline: true, isHandingOver: true))
            handOverUntil = min(handOverUntil ?? .distantFuture, now + policy.handOverTime)
            enforceCap(policy)
            return
        }
        messages.append(Message(kept: message, end: nil, wasOffline: presence == .offline))
        if message.isLiveOnly && !isAttached {
            messages[messages.count - 1].end = .expired
            return
        }
        enforceCap(policy)
    }

    private mutating func enforceCap(_ policy: DeliveryPolicy) {
        guard policy.capPolicy == .dropOldest else { return }
        while own.count > policy.messageCap.value || ownBytes > policy.byteCap.value {
            let exempt = inFlight
            guard let oldest = own.dropLast().first(where: { !exempt.contains($0) && !$0.isHandingOver }) else {
                return
            }
            drop(oldest.seq, .overflowed)
        }
    }

    private mutating func drop(_ seq: Seq, _ state: DeliveryState) {
        for index in messages.indices where messages[index].seq == seq {
            messages[index].end = state
            guard !messages[index].kept.isLiveOnly else { return }
            missing.insert(seq)
            untold += 1
            guard !messages[index].isShared else { return }
            unsyncedDrops += 1
            unsyncedFrom = min(unsyncedFrom ?? seq, seq)
        }
    }

    private mutating func acknowledge(_ seq: Seq) {
        guard seq > acknowledged else { return }
        for index in messages.indices where messages[index].isKept && messages[index].seq <= seq {
            messages[index].end = .delivered
        }
        if !messages.contains(where: { $0.isHandingOver && $0.isKept }) { handOverUntil = nil }
        missing = missing.filter { $0 > seq }
        acknowledged = seq
        sent = max(sent, seq)
        ackBound = max(ackBound, seq)
    }

    private mutating func endLiveOnly() {
        for index in messages.indices
        where messages[index].isKept && messages[index].kept.isLiveOnly && !messages[index].isHandingOver {
            messages[index].end = .expired
        }
    }

    private mutating func expire(_ now: Instant) {
        let exempt = inFlight
        for message in kept
        where !message.kept.isLiveOnly && (message.isOver || message.kept.expiresAt <= now)
            && !exempt.contains(message) && !message.isHandingOver
        {
            drop(message.seq, .expired)
        }
    }

    private mutating func becomeOffline(_ now: Instant, _ policy: DeliveryPolicy) {
        presence = .offline
        for index in messages.indices where messages[index].isKept { messages[index].wasOffline = true }
        expire(now)
        enforceCap(policy)
    }

    private mutating func rewind() { sent = acknowledged }
}
