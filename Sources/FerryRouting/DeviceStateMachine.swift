package import FerryCore

/// The owner's view of one device: is it there, what is kept for it, what is on its way, is its owner to be woken.
///
/// It promises:
/// 1. every message that was synced is kept until exactly one `.end`;
/// 2. entries are offered by `next` in order of `seq`, at most a window of them unacknowledged;
/// 3. a message in flight in a live session is neither expired nor dropped;
/// 4. `wasOffline` is set exactly when the device was offline while the message was kept, or a stub was asked for it;
/// 5. a message whose strategy begins with the wake-up channel is handed to it once, and before the answer, or
///    `handOverTime`, nothing behind it is offered;
/// 6. a stub is asked for only while the device has no live session and, but for live-only messages, is offline; once a
///    message, and at most one default stub at a time.
///
/// It does not do: I/O, journalling, encoding, knowing connections. A driver performs the actions in order.
package struct DeviceStateMachine: Hashable, Sendable {
    /// Shared by all devices; passed in at each event so that it costs no memory here.
    package typealias Policy = DeliveryPolicy

    /// Everything up to here is delivered or dropped.
    package internal(set) var acknowledged: Seq
    /// What an idle device does not have: none or one. An array, as that is a reference with the meaning of a value.
    var work: ContiguousArray<DeviceWork> = []
    package internal(set) var presence = Presence.offline
    package internal(set) var hasToken: Bool
    /// Limits of the last session's window. No window is granted that has more messages than this type holds.
    var messageLimit: Int16 = 1
    var byteLimit: Int32 = 1

    enum DefaultStub: Hashable, Sendable, BitwiseCopyable {
        case idle
        case inFlight
        case coolingDown(until: Instant)
    }

    package init(acknowledged: Seq, gap: Gap?, hasToken: Bool) {
        self.acknowledged = acknowledged
        self.hasToken = hasToken
        if let gap { gaps = [gap] }
    }

    /// All that was dropped and is not acknowledged past, as one.
    package var gap: Gap? { Self.sum(gaps) }

    /// The part of it that is the device's own: what its row holds.
    package var ownGap: Gap? { Self.sum(gaps.filter { !$0.isShared }) }

    private static func sum(_ gaps: [Gap]) -> Gap? {
        guard var all = gaps.last else { return nil }
        for gap in gaps.dropLast() { all.add(gap) }
        return all
    }

    /// So many messages are put back.
    package mutating func willRestore(_ count: Int) {
        if count > 0 { log.reserve(count) }
    }

    /// Puts back a message found at opening. In order of `seq`, before any event.
    package mutating func restore(_ message: KeptMessage) {
        log.append(message)
        guard !message.isHandingOver else {
            handOverUntil = .distantPast
            return
        }
        earliestExpiry = min(earliestExpiry, message.isLiveOnly ? .distantPast : message.expiresAt)
    }

    /// After the last `restore`: what is due waits for `wait` from `now`. What was live only ends at the first `.timePassed`.
    package mutating func finishRestoring(now: Instant, wait: Duration) {
        presence = .restored(until: now + wait)
    }

    /// Handles one event. Actions are appended in the order in which they must be performed.
    package mutating func handle(
        _ event: DeviceEvent, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        switch event {
        case .messageSynced(let message): keep(message, now: now, policy: policy, actions: &actions)
        case .attached(let session, let lastSeq, let limit, let bytes, let continues):
            let bound = continues ? window.ackBound : .zero
            attach(
                session, lastSeq: lastSeq, limit: limit, bytes: bytes, bound: bound, now: now, policy: policy,
                actions: &actions)
        case .detached(let session, let end): detach(session, end, now: now, policy: policy, actions: &actions)
        case .acknowledged(let seq): acknowledge(seq, actions: &actions)
        case .sent(let seq): didSend(seq)
        case .dropSynced:
            unsyncedDrops -= unsyncedDrops > 0 ? 1 : 0
            if unsyncedDrops == 0 { unsyncedFrom = Seq(.max) }
            if case .attached = presence { actions.append(.transmit) }
        case .dueSynced:
            unsyncedDue -= unsyncedDue > 0 ? 1 : 0
            requestDueStubs(now: now, actions: &actions)
        case .stubAnswered(let plan): stubAnswered(plan, now: now, policy: policy)
        case .handOverAnswered(let seq, let isAccepted):
            handOverAnswered(seq, isAccepted: isAccepted, now: now, policy: policy, actions: &actions)
        case .stubWithdrawn(let seq): withdrawStub(seq, now: now, policy: policy, actions: &actions)
        case .wakeWanted(let seq): wantWake(seq, now: now, actions: &actions)
        case .tokenChanged(let has): changeToken(has, now: now, actions: &actions)
        case .broadcastEnded(let seq): endBroadcast(seq, now: now, actions: &actions)
        case .broadcastMissed(let seq):
            noteMissed(seq)
            if case .attached = presence { actions.append(.transmit) }
        case .takenBack(let seq, let reason): takeBack(seq, reason, actions: &actions)
        case .unreadable(let seq):
            giveUp(seq, .unreadable, actions: &actions)
            if case .attached = presence { actions.append(.transmit) }
        case .kindNotTaken(let seq): giveUp(seq, .kindNotTaken, actions: &actions)
        case .timePassed: timePassed(now: now, policy: policy, actions: &actions)
        }
        endWork()
    }

    /// When `.timePassed` is wanted next, if at all.
    package var deadline: Instant? {
        var earliest = Instant.distantFuture
        switch presence {
        case .grace(let until), .restored(let until): earliest = until
        case .offline, .attached: break
        }
        if case .coolingDown(let until) = defaultStub { earliest = min(earliest, until) }
        if !log.isEmpty { earliest = min(earliest, min(earliestExpiry, handOverUntil)) }
        return earliest == .distantFuture ? nil : earliest
    }

    /// No message up to here wants a stub any more. Conservative: what is settled behind one that is not does not count. Of
    /// broadcasts it says nothing: who is to be woken for them is known elsewhere.
    package var stubsSettledUpTo: Seq {
        var last = acknowledged
        for index in 0..<log.count where !log[index].isShared {
            switch log[index].stub {
            case .settled, .notWanted: last = log[index].seq
            case .none, .due, .requested, .noToken: return last
            }
        }
        return last
    }

    /// The last message of its own for which a stub is due or was asked for.
    package var stubsDueUpTo: Seq {
        for index in stride(from: log.count - 1, through: 0, by: -1) where !log[index].isShared {
            switch log[index].stub {
            case .due, .requested: if !log[index].isHandingOver { return log[index].seq }
            case .none, .settled, .noToken, .notWanted: continue
            }
        }
        return .zero
    }

    /// Whether the message is kept and has not ended.
    package func isKept(_ seq: Seq) -> Bool { position(of: seq) != nil }

    func position(of seq: Seq) -> Int? {
        guard seq > .zero else { return nil }
        let index = log.firstIndex(after: Seq(seq.rawValue - 1))
        return index < log.count && log[index].seq == seq ? index : nil
    }

    /// Whether what `init` makes of the device's record, and of the broadcasts that it is told of, serves as well as this.
    package var isAtRest: Bool {
        presence == .offline && log.ownCount == 0 && unsyncedDrops == 0 && unsyncedDue == 0 && defaultStub == .idle
            // A broadcast whose time is over has not ended here yet.
            && (log.isEmpty || earliestExpiry == .distantFuture)
    }

    // MARK: - Presence

    mutating func attach(
        _ session: SessionID, lastSeq: Seq?, limit: Int32, bytes: Int32, bound: Seq, now: Instant, policy: Policy,
        actions: inout [DeviceAction]
    ) {
        if isGraceOver(now: now) { for index in 0..<log.count { log[index].wasOffline = true } }
        // What the app has is delivered, before anything of it could expire.
        if let lastSeq { settleAcknowledged(lastSeq, actions: &actions) }
        endLiveOnly(actions: &actions)
        if case .attached(let older) = presence, older != session { actions.append(.takeOver(older)) }
        window = AckWindow(
            messageLimit: limit, byteLimit: bytes, acknowledged: acknowledged, ackBound: bound)
        presence = .attached(session)
        findEarliestExpiry()
        expire(now: now, actions: &actions)
        enforceCap(policy, actions: &actions)
        actions.append(.transmit)
    }

    mutating func detach(
        _ session: SessionID, _ end: SessionEnd, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        guard presence == .attached(session) else { return }
        endLiveOnly(actions: &actions)
        switch end {
        case .lost:
            presence = .grace(until: now + policy.reattachGrace)
            rewind()
            enforceCap(policy, actions: &actions)
        case .bye:
            becomeOffline(now: now, policy: policy, actions: &actions)
            rewind()
        case .background:
            // The connection stays and its acks count, so the window keeps what was sent.
            becomeOffline(now: now, policy: policy, actions: &actions)
        }
    }

    /// Live-only messages end with their session, or with the restart that it did not outlive.
    mutating func endLiveOnly(actions: inout [DeviceAction]) {
        for message in log.removeAll(where: { $0.isLiveOnly && !$0.isHandingOver }) {
            endLiveOnly(message, .liveSessionEnded, actions: &actions)
        }
    }

    /// The grace is over and `.timePassed` is late, by a tick or by a stall of the whole process: whoever comes now was offline.
    package func isGraceOver(now: Instant) -> Bool {
        if case .grace(let until) = presence { until <= now } else { false }
    }

    /// The send cursor goes back to the ack cursor.
    mutating func rewind() {
        window = AckWindow(
            messageLimit: Int32(messageLimit), byteLimit: byteLimit, acknowledged: acknowledged)
        findEarliestExpiry()
    }

    mutating func becomeOffline(now: Instant, policy: Policy, actions: inout [DeviceAction]) {
        presence = .offline
        for index in 0..<log.count { log[index].wasOffline = true }
        findEarliestExpiry()
        expire(now: now, actions: &actions)
        // What was in flight was exempt until the session's end.
        enforceCap(policy, actions: &actions)
        markDue(actions: &actions)
        requestDueStubs(now: now, actions: &actions)
    }

    // MARK: - Time

    mutating func timePassed(now: Instant, policy: Policy, actions: inout [DeviceAction]) {
        // More than the cap can only be there after a restart, when drops were on their way to the disk.
        enforceCap(policy, actions: &actions)
        handOversInTime(now: now, policy: policy, actions: &actions)
        expire(now: now, actions: &actions)
        switch presence {
        case .grace(let until), .restored(let until):
            if until <= now { becomeOffline(now: now, policy: policy, actions: &actions) }
        case .offline, .attached: break
        }
        if case .coolingDown(let until) = defaultStub, until <= now {
            defaultStub = .idle
            requestDueStubs(now: now, actions: &actions)
        }
    }

    mutating func expire(now: Instant, actions: inout [DeviceAction]) {
        guard earliestExpiry <= now else { return }
        if case .attached = presence {} else { endLiveOnly(actions: &actions) }
        let expired = log.removeAll(from: firstDroppable) {
            !$0.isLiveOnly && !$0.isHandingOver && $0.expiresAt <= now
        }
        for message in expired { drop(message, .ttlRanOut, actions: &actions) }
        findEarliestExpiry()
        if case .attached = presence { actions.append(.transmit) }
    }

    /// What is in flight has no expiry; it gets it back when its session ends.
    mutating func findEarliestExpiry() {
        earliestExpiry = .distantFuture
        for index in firstDroppable..<max(firstDroppable, log.count)
        where !log[index].isLiveOnly && !log[index].isHandingOver {
            earliestExpiry = min(earliestExpiry, log[index].expiresAt)
        }
    }
}
