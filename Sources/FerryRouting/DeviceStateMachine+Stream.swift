package import FerryCore

/// The stream to a device: what is kept, what is next, what is dropped, what is acknowledged.
extension DeviceStateMachine {
    // MARK: - Sending

    /// What stands next in the stream.
    package enum Entry: Hashable, Sendable {
        case message(KeptMessage)
        case gap(Gap)
    }

    /// The next entry that may go to the session now; nil when there is none, no session, or no room in the window, and when
    /// it has expired and `.timePassed` is late.
    package func next(now: Instant) -> Entry? {
        let window = window
        let entry = next(after: window.sent, in: window, ahead: 0, aheadBytes: 0)
        if case .message(let message)? = entry, !message.isLiveOnly, message.expiresAt <= now { return nil }
        return entry
    }

    /// The messages that follow, for one read of the store: at most `count`, at most `bytes` after the first, none behind an
    /// untold gap, and only what the window has room for.
    package func upcoming(count: Int, bytes: Int) -> [KeptMessage] {
        var found: [KeptMessage] = []
        let window = window
        var cursor = window.sent
        var passed = 0
        var total = 0
        while found.count < count,
            case .message(let message)? = next(after: cursor, in: window, ahead: passed, aheadBytes: total)
        {
            if !found.isEmpty && total + Int(message.payloadBytes) > bytes { break }
            // A broadcast's content is at hand.
            if !message.isShared { found.append(message) }
            passed += 1
            total += Int(message.payloadBytes)
            cursor = message.seq
        }
        return found
    }

    func next(after seq: Seq, in window: AckWindow, ahead: Int, aheadBytes: Int) -> Entry? {
        guard case .attached = presence else { return nil }
        let index = log.firstIndex(after: seq)
        let message = index < log.count ? log[index] : nil
        if let gap = gaps.first(where: { $0.upTo > seq }), message.map({ gap.upTo < $0.seq }) ?? true {
            guard unsyncedDrops == 0, window.hasRoom(for: 0, ahead: ahead, aheadBytes: aheadBytes) else { return nil }
            return .gap(gap)
        }
        guard let message, message.seq < unsyncedFrom, !message.isHandingOver,
            window.hasRoom(for: message.payloadBytes, ahead: ahead, aheadBytes: aheadBytes)
        else { return nil }
        return .message(message)
    }

    /// `.sent`, which has no action and changes no deadline.
    package mutating func didSend(_ seq: Seq) {
        guard case .attached = presence else { return }
        if gaps.contains(where: { $0.upTo == seq }) {
            window.didSend(seq, bytes: 0)
            return
        }
        let index = log.firstIndex(after: window.sent)
        guard index < log.count, log[index].seq == seq else { return }
        window.didSend(seq, bytes: log[index].payloadBytes)
    }

    // MARK: - Keeping

    mutating func keep(
        _ message: KeptMessage, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        var message = message
        // As it comes it says how it was at acceptance; the device may have come back while the record was synced.
        message.wasOffline = message.wasOffline || !presence.isOnline
        guard !message.isHandingOver else { return handOver(message, now: now, policy: policy, actions: &actions) }
        if case .attached = presence {
            if message.stub != .notWanted { message.stub = .none }
        } else if message.isLiveOnly {
            endLiveOnly(message, .noLiveSession, actions: &actions)
            return
        }
        log.append(message)
        if !message.isLiveOnly { earliestExpiry = min(earliestExpiry, message.expiresAt) }
        enforceCap(policy, actions: &actions)
        switch presence {
        case .attached: actions.append(.transmit)
        case .grace, .restored: break
        case .offline:
            switch message.stub {
            case .none: markDue(actions: &actions)
            case .noToken: if hasToken { markDue(actions: &actions) }
            case .due, .requested, .settled, .notWanted: break
            }
            // While a default stub is out or cooling down, only an own alert has something to ask for.
            if message.hasOwnAlert || defaultStub == .idle { requestDueStubs(now: now, actions: &actions) }
        }
    }

    /// Live only and no live session: over at once; its own alert, if it has one, goes out for the moment.
    mutating func endLiveOnly(_ message: KeptMessage, _ reason: EndReason, actions: inout [DeviceAction]) {
        if message.hasOwnAlert && hasToken && message.stub != .settled && message.stub != .notWanted {
            actions.append(.requestStub(.own(message)))
        }
        actions.append(.end(message, reason))
    }

    mutating func enforceCap(_ policy: Policy, actions: inout [DeviceAction]) {
        guard policy.capPolicy == .dropOldest else { return }
        while log.ownCount > policy.messageCap.value || (log.bytes > policy.byteCap.value && log.ownCount > 1) {
            guard let oldestUnsent = oldestDroppable else { return }
            let isOverCount = log.ownCount > policy.messageCap.value
            drop(log.remove(at: oldestUnsent), isOverCount ? .countCap : .byteCap, actions: &actions)
        }
    }

    /// The device's own message that makes room first. The newest stays: what was just accepted is not what the cap is there
    /// to drop. Broadcasts have no part in it.
    private var oldestDroppable: Int? {
        var oldest = firstDroppable
        var newest = log.count - 1
        if log.sharedCount > 0 || handOverUntil != .distantFuture {
            while oldest < log.count, log[oldest].isShared || log[oldest].isHandingOver { oldest += 1 }
            while newest >= 0, log[newest].isShared { newest -= 1 }
        }
        return oldest < newest ? oldest : nil
    }

    /// The first message that is not in flight in a live session.
    var firstDroppable: Int {
        guard case .attached = presence else { return 0 }
        return log.firstIndex(after: window.sent)
    }

    /// `message` has left the log.
    mutating func drop(_ message: KeptMessage, _ reason: EndReason, actions: inout [DeviceAction]) {
        let state = reason.state
        actions.append(.end(message, reason))
        guard message.isMissedWhenDropped else { return }
        guard !message.isShared else { return noteMissed(message.seq) }
        // What is on its way keeps its count, so that no session is told of one drop twice.
        if let last = gaps.lastIndex(where: { !$0.isShared }),
            gaps[last].upTo > window.sent || gaps[last].upTo > message.seq
        {
            // The gap moves; on disk it is still where it was, and nothing may pass it there either.
            unsyncedFrom = min(unsyncedFrom, gaps[last].upTo)
            var gap = gaps.remove(at: last)
            gap.add(message.seq, state)
            place(gap)
        } else {
            var gap = Gap(upTo: message.seq)
            gap.add(message.seq, state)
            place(gap)
        }
        unsyncedDrops = unsyncedDrops == .max ? .max : unsyncedDrops + 1
        unsyncedFrom = min(unsyncedFrom, message.seq)
    }

    /// Gaps are in order of their places, and no two are at one.
    private mutating func place(_ gap: Gap) {
        let index = gaps.firstIndex { $0.upTo >= gap.upTo } ?? gaps.count
        if index < gaps.count, gaps[index].upTo == gap.upTo {
            gaps[index].add(gap)
            gaps[index].isShared = gaps[index].isShared && gap.isShared
        } else {
            gaps.insert(gap, at: index)
        }
    }

    /// A broadcast is missing. Its gap moves past nothing that can be acknowledged: after a crash only broadcasts above what
    /// is acknowledged are told of again. So it is taken into the gap before it only where nothing stands between.
    mutating func noteMissed(_ seq: Seq) {
        guard seq > acknowledged else { return }
        let index = gaps.firstIndex { $0.upTo >= seq } ?? gaps.count
        if index > 0, gaps[index - 1].isShared, gaps[index - 1].upTo > window.sent,
            index == gaps.count || gaps[index].upTo > seq
        {
            let first = log.firstIndex(after: gaps[index - 1].upTo)
            if first == log.count || log[first].seq > seq {
                gaps[index - 1].add(seq, .expired)
                return
            }
        }
        place(Gap(upTo: seq, expired: 1, isShared: true))
    }

    /// In flight it is exempt, as any other message, until its ack or the session's end.
    mutating func endBroadcast(_ seq: Seq, now: Instant, actions: inout [DeviceAction]) {
        guard let index = position(of: seq), log[index].isShared, !log[index].isLiveOnly else { return }
        log[index].expiresAt = .distantPast
        findEarliestExpiry()
        expire(now: now, actions: &actions)
    }

    /// What is in flight ends too: a late ack of it is only an ack. The device may have it, which nobody can change.
    mutating func takeBack(_ seq: Seq, _ reason: EndReason, actions: inout [DeviceAction]) {
        guard let index = position(of: seq) else { return }
        let message = log.remove(at: index)
        if message.seq <= window.sent { window.release(bytes: message.payloadBytes) }
        actions.append(.end(message, reason))
        findEarliestExpiry()
        if case .attached = presence { actions.append(.transmit) }
    }

    /// It leaves the stream before it was sent, and nobody is told of a gap: there is nothing to wait for.
    mutating func giveUp(_ seq: Seq, _ reason: EndReason, actions: inout [DeviceAction]) {
        guard let index = position(of: seq), index >= firstDroppable else { return }
        actions.append(.end(log.remove(at: index), reason))
    }

    // MARK: - Acknowledgement

    mutating func acknowledge(_ seq: Seq, actions: inout [DeviceAction]) {
        switch window.verdict(on: seq) {
        case .fresh:
            settleAcknowledged(seq, actions: &actions)
            if case .attached = presence { actions.append(.transmit) }
        case .stale: break
        case .beyondSent:
            // Without a session this machine may have been made anew since the entry was sent; the next login says the same.
            if case .attached = presence { actions.append(.refuseAck) }
        }
    }

    mutating func settleAcknowledged(_ seq: Seq, actions: inout [DeviceAction]) {
        guard seq > acknowledged else { return }
        // It is put together from its parts at each look: once is enough.
        var window = window
        while let gap = gaps.first, gap.upTo <= seq {
            if gap.upTo <= window.sent { window.release(bytes: 0) }
            gaps.removeFirst()
        }
        while let first = log.first, first.seq <= seq, let message = log.removeFirst() {
            if message.seq <= window.sent { window.release(bytes: message.payloadBytes) }
            actions.append(.end(message, .acknowledged))
        }
        window.didAcknowledge(seq)
        self.window = window
        noteHandOvers()
        actions.append(.recordAcknowledged(seq))
    }
}
