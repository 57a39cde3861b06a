package import FerryCore

/// What happened to a device, told to its `DeviceStateMachine`.
package enum DeviceEvent: Hashable, Sendable {
    /// A message is on disk. Its `seq` is above all earlier ones of the device.
    case messageSynced(KeptMessage)
    /// A session began. `lastSeq` is what its client has handed to the app, nil where that number does not count here.
    /// `continues`: on the connection of the session before it.
    case attached(SessionID, lastSeq: Seq?, window: Int32, windowBytes: Int32, continues: Bool)
    case detached(SessionID, SessionEnd)
    case acknowledged(Seq)
    /// The next entry in order went to the session's connection.
    case sent(Seq)
    /// The record of one dropped message (expired or overflowed, and not live only) is on disk.
    case dropSynced
    /// The record that stubs are due is on disk.
    case dueSynced
    /// The wake-up channel answered for the default stub, or for one message's own alert.
    case stubAnswered(StubPlan)
    case tokenChanged(hasToken: Bool)
    /// The store cannot give this message any more.
    case unreadable(Seq)
    case timePassed
}

/// A wake-up to be asked for.
package enum StubPlan: Hashable, Sendable {
    /// The default text, for all messages up to `upTo`; expires when the latest of them does.
    case standard(upTo: Seq, badge: Int, expiresAt: Instant)
    /// The message's own alert.
    case own(KeptMessage)
}

/// What the driver must do, in order.
package enum DeviceAction: Hashable, Sendable {
    /// Journal that everything up to here is acknowledged.
    case recordAcknowledged(Seq)
    /// The message has reached this terminal state. Journal it unless it was delivered; count it; forget its table row.
    case end(KeptMessage, DeliveryState)
    /// Journal that stubs are due up to here; answer with `.dueSynced`.
    case recordStubsDue(upTo: Seq)
    /// Journal that no stub can be sent for what is kept up to here.
    case recordNoToken(upTo: Seq)
    case requestStub(StubPlan)
    /// Close the older session's connection.
    case takeOver(SessionID)
    /// There may be something to send: see `next`.
    case transmit
    /// The peer acknowledged what it was never sent: close its connection.
    case refuseAck
}

/// The owner's view of one device: is it there, what is kept for it, what is on its way, is its owner to be woken.
///
/// It promises:
/// 1. every message that was synced is kept until exactly one `.end`;
/// 2. entries are offered by `next` in order of `seq`, at most a window of them unacknowledged;
/// 3. a message in flight in a live session is neither expired nor dropped;
/// 4. `wasOffline` is set exactly when the device was offline while the message was kept, or a stub was asked for it;
/// 5. a stub is asked for only while the device has no live session and, but for live-only messages, is offline; once a
///    message, and at most one default stub at a time.
///
/// It does not do: I/O, journalling, encoding, knowing connections. A driver performs the actions in order.
package struct DeviceStateMachine: Hashable, Sendable {
    /// Shared by all devices; passed in at each event so that it costs no memory here.
    package typealias Policy = DeliveryPolicy

    package private(set) var presence = Presence.offline
    package private(set) var log = MessageLog()
    /// What was dropped and is not acknowledged past, by place in the stream. Only the last can still grow, and only until it
    /// is sent; so there are at most one more than a window has entries.
    private var gaps: [Gap]
    package private(set) var window: AckWindow
    package private(set) var hasToken: Bool
    /// Drops in `gaps` whose records are not on disk yet; until then no gap may be told (P1).
    private var unsyncedDrops: UInt32 = 0
    /// The record that stubs are due is not on disk yet; until then none is asked for (P1).
    private var unsyncedDue: UInt32 = 0
    private var defaultStub = DefaultStub.idle
    /// No message expires before this; exact after each look at all of them.
    private var earliestExpiry = Instant.distantFuture

    private enum DefaultStub: Hashable, Sendable, BitwiseCopyable {
        case idle
        case inFlight
        case coolingDown(until: Instant)
    }

    package init(acknowledged: Seq, gap: Gap?, hasToken: Bool) {
        window = AckWindow(messageLimit: 1, byteLimit: 1, acknowledged: acknowledged)
        gaps = gap.map { [$0] } ?? []
        self.hasToken = hasToken
    }

    package var acknowledged: Seq { window.acknowledged }

    /// All that was dropped and is not acknowledged past, as one.
    package var gap: Gap? {
        guard var all = gaps.last else { return nil }
        for gap in gaps.dropLast() { all.add(gap) }
        return all
    }

    /// Puts back a message found at opening. In order of `seq`, before any event.
    package mutating func restore(_ message: KeptMessage) {
        log.append(message)
        earliestExpiry = min(earliestExpiry, message.isLiveOnly ? .distantPast : message.expiresAt)
    }

    /// After the last `restore`: the device counts as lost at `now`, so that what is due waits for the grace. What was live
    /// only ends at the first `.timePassed`.
    package mutating func finishRestoring(now: Instant, policy: Policy) {
        presence = .grace(until: now + policy.reattachGrace)
    }

    /// Handles one event. Actions are appended in the order in which they must be performed.
    package mutating func handle(
        _ event: DeviceEvent, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        switch event {
        case .messageSynced(let message): keep(message, now: now, policy: policy, actions: &actions)
        case .attached(let session, let lastSeq, let limit, let bytes, let continues):
            let bound = continues ? window.ackBound : .zero
            attach(session, lastSeq: lastSeq, limit: limit, bytes: bytes, bound: bound, now: now, actions: &actions)
        case .detached(let session, let end): detach(session, end, now: now, policy: policy, actions: &actions)
        case .acknowledged(let seq): acknowledge(seq, actions: &actions)
        case .sent(let seq): didSend(seq)
        case .dropSynced:
            unsyncedDrops -= unsyncedDrops > 0 ? 1 : 0
            if case .attached = presence { actions.append(.transmit) }
        case .dueSynced:
            unsyncedDue -= unsyncedDue > 0 ? 1 : 0
            requestDueStubs(now: now, actions: &actions)
        case .stubAnswered(let plan): stubAnswered(plan, now: now, policy: policy)
        case .tokenChanged(let has): changeToken(has, now: now, actions: &actions)
        case .unreadable(let seq): giveUp(seq, actions: &actions)
        case .timePassed: timePassed(now: now, policy: policy, actions: &actions)
        }
    }

    /// When `.timePassed` is wanted next, if at all.
    package var deadline: Instant? {
        var earliest = Instant.distantFuture
        if case .grace(let until) = presence { earliest = until }
        if case .coolingDown(let until) = defaultStub { earliest = min(earliest, until) }
        if !log.isEmpty { earliest = min(earliest, earliestExpiry) }
        return earliest == .distantFuture ? nil : earliest
    }

    /// No message up to here wants a stub any more. Conservative: what is settled behind one that is not does not count.
    package var stubsSettledUpTo: Seq {
        var last = window.acknowledged
        for index in 0..<log.count {
            switch log[index].stub {
            case .settled, .noToken, .notWanted: last = log[index].seq
            case .none, .due, .requested: return last
            }
        }
        return last
    }

    /// The last message for which a stub is due or was asked for.
    package var stubsDueUpTo: Seq {
        for index in stride(from: log.count - 1, through: 0, by: -1) {
            switch log[index].stub {
            case .due, .requested: return log[index].seq
            case .none, .settled, .noToken, .notWanted: continue
            }
        }
        return .zero
    }

    /// Whether the message is kept and has not ended.
    package func isKept(_ seq: Seq) -> Bool { position(of: seq) != nil }

    private func position(of seq: Seq) -> Int? {
        guard seq > .zero else { return nil }
        let index = log.firstIndex(after: Seq(seq.rawValue - 1))
        return index < log.count && log[index].seq == seq ? index : nil
    }

    /// Whether what `init` makes of the device's record serves as well as this.
    package var isAtRest: Bool {
        presence == .offline && log.isEmpty && unsyncedDrops == 0 && unsyncedDue == 0 && defaultStub == .idle
    }

    // MARK: - Sending

    /// What stands next in the stream.
    package enum Entry: Hashable, Sendable {
        case message(KeptMessage)
        case gap(Gap)
    }

    /// The next entry that may go to the session now; nil when there is none, no session, or no room in the window, and when
    /// it has expired and `.timePassed` is late.
    package func next(now: Instant) -> Entry? {
        let entry = next(after: window.sent, ahead: 0, aheadBytes: 0)
        if case .message(let message)? = entry, !message.isLiveOnly, message.expiresAt <= now { return nil }
        return entry
    }

    /// The messages that follow, for one read of the store: at most `count`, at most `bytes` after the first, none behind an
    /// untold gap, and only what the window has room for.
    package func upcoming(count: Int, bytes: Int) -> [KeptMessage] {
        var found: [KeptMessage] = []
        var cursor = window.sent
        var total = 0
        while found.count < count,
            case .message(let message)? = next(after: cursor, ahead: found.count, aheadBytes: total)
        {
            if !found.isEmpty && total + Int(message.payloadBytes) > bytes { break }
            found.append(message)
            total += Int(message.payloadBytes)
            cursor = message.seq
        }
        return found
    }

    private func next(after seq: Seq, ahead: Int, aheadBytes: Int) -> Entry? {
        guard case .attached = presence else { return nil }
        let index = log.firstIndex(after: seq)
        let message = index < log.count ? log[index] : nil
        let bytes = message?.payloadBytes ?? 0
        if Int(window.inFlight) + ahead > 0 {
            guard Int(window.inFlight) + ahead < Int(window.messageLimit) else { return nil }
            guard Int(window.inFlightBytes) + aheadBytes + Int(bytes) <= Int(window.byteLimit) else { return nil }
        }
        if let gap = gaps.first(where: { $0.upTo > seq }), message.map({ gap.upTo < $0.seq }) ?? true {
            return unsyncedDrops == 0 ? .gap(gap) : nil
        }
        return message.map { .message($0) }
    }

    private mutating func didSend(_ seq: Seq) {
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

    private mutating func keep(
        _ message: KeptMessage, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        var message = message
        // As it comes it says how it was at acceptance; the device may have come back while the record was synced.
        message.wasOffline = message.wasOffline || !presence.isOnline
        if case .attached = presence {
            if message.stub != .notWanted { message.stub = .none }
        } else if message.isLiveOnly {
            endLiveOnly(message, actions: &actions)
            return
        }
        log.append(message)
        if !message.isLiveOnly { earliestExpiry = min(earliestExpiry, message.expiresAt) }
        enforceCap(policy, actions: &actions)
        switch presence {
        case .attached: actions.append(.transmit)
        case .grace: break
        case .offline:
            switch message.stub {
            case .none, .noToken: markDue(actions: &actions)
            case .due, .requested, .settled, .notWanted: break
            }
            // While a default stub is out or cooling down, only an own alert has something to ask for.
            if message.hasOwnAlert || defaultStub == .idle { requestDueStubs(now: now, actions: &actions) }
        }
    }

    /// Live only and no live session: over at once; its own alert, if it has one, goes out for the moment.
    private mutating func endLiveOnly(_ message: KeptMessage, actions: inout [DeviceAction]) {
        if message.hasOwnAlert && hasToken && message.stub != .settled { actions.append(.requestStub(.own(message))) }
        actions.append(.end(message, .expired))
    }

    private mutating func enforceCap(_ policy: Policy, actions: inout [DeviceAction]) {
        while log.count > max(1, policy.messageCap) || (log.bytes > policy.byteCap && log.count > 1) {
            let oldestUnsent = firstDroppable
            // The newest stays: what was just accepted is not what the cap is there to drop.
            guard oldestUnsent < log.count - 1 else { return }
            drop(at: oldestUnsent, .overflowed, actions: &actions)
        }
    }

    /// The first message that is not in flight in a live session.
    private var firstDroppable: Int {
        guard case .attached = presence else { return 0 }
        return log.firstIndex(after: window.sent)
    }

    private mutating func drop(at index: Int, _ state: DeliveryState, actions: inout [DeviceAction]) {
        let message = log.remove(at: index)
        actions.append(.end(message, state))
        guard !message.isLiveOnly else { return }
        // What is on its way keeps its count, so that no session is told of one drop twice.
        if let last = gaps.last, last.upTo > window.sent || last.upTo > message.seq {
            gaps[gaps.count - 1].add(message.seq, state)
        } else {
            var gap = Gap(upTo: message.seq)
            gap.add(message.seq, state)
            gaps.append(gap)
        }
        unsyncedDrops = unsyncedDrops == .max ? .max : unsyncedDrops + 1
    }

    private mutating func giveUp(_ seq: Seq, actions: inout [DeviceAction]) {
        guard let index = position(of: seq), index >= firstDroppable else { return }
        actions.append(.end(log.remove(at: index), .failed))
        if case .attached = presence { actions.append(.transmit) }
    }

    // MARK: - Presence

    private mutating func attach(
        _ session: SessionID, lastSeq: Seq?, limit: Int32, bytes: Int32, bound: Seq, now: Instant,
        actions: inout [DeviceAction]
    ) {
        // What the app has is delivered, before anything of it could expire.
        if let lastSeq { settleAcknowledged(lastSeq, actions: &actions) }
        endLiveOnly(actions: &actions)
        if case .attached(let older) = presence, older != session { actions.append(.takeOver(older)) }
        window = AckWindow(
            messageLimit: limit, byteLimit: bytes, acknowledged: window.acknowledged, ackBound: bound)
        presence = .attached(session)
        findEarliestExpiry()
        expire(now: now, actions: &actions)
        actions.append(.transmit)
    }

    private mutating func detach(
        _ session: SessionID, _ end: SessionEnd, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        guard presence == .attached(session) else { return }
        endLiveOnly(actions: &actions)
        switch end {
        case .lost:
            presence = .grace(until: now + policy.reattachGrace)
            rewind()
        case .bye:
            becomeOffline(now: now, actions: &actions)
            rewind()
        case .background:
            // The connection stays and its acks count, so the window keeps what was sent.
            becomeOffline(now: now, actions: &actions)
        }
    }

    /// Live-only messages end with their session, or with the restart that it did not outlive.
    private mutating func endLiveOnly(actions: inout [DeviceAction]) {
        var index = 0
        while index < log.count {
            if log[index].isLiveOnly {
                endLiveOnly(log.remove(at: index), actions: &actions)
            } else {
                index += 1
            }
        }
    }

    /// The send cursor goes back to the ack cursor.
    private mutating func rewind() {
        window = AckWindow(
            messageLimit: window.messageLimit, byteLimit: window.byteLimit, acknowledged: window.acknowledged)
        findEarliestExpiry()
    }

    private mutating func becomeOffline(now: Instant, actions: inout [DeviceAction]) {
        presence = .offline
        for index in 0..<log.count { log[index].wasOffline = true }
        findEarliestExpiry()
        expire(now: now, actions: &actions)
        markDue(actions: &actions)
        requestDueStubs(now: now, actions: &actions)
    }

    // MARK: - Acknowledgement

    private mutating func acknowledge(_ seq: Seq, actions: inout [DeviceAction]) {
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

    private mutating func settleAcknowledged(_ seq: Seq, actions: inout [DeviceAction]) {
        guard seq > window.acknowledged else { return }
        while let gap = gaps.first, gap.upTo <= seq {
            if gap.upTo <= window.sent { window.release(bytes: 0) }
            gaps.removeFirst()
        }
        while let first = log.first, first.seq <= seq, let message = log.removeFirst() {
            if message.seq <= window.sent { window.release(bytes: message.payloadBytes) }
            actions.append(.end(message, .delivered))
        }
        window.didAcknowledge(seq)
        actions.append(.recordAcknowledged(seq))
    }

    // MARK: - Time

    private mutating func timePassed(now: Instant, policy: Policy, actions: inout [DeviceAction]) {
        expire(now: now, actions: &actions)
        if case .grace(let until) = presence, until <= now { becomeOffline(now: now, actions: &actions) }
        if case .coolingDown(let until) = defaultStub, until <= now {
            defaultStub = .idle
            requestDueStubs(now: now, actions: &actions)
        }
    }

    private mutating func expire(now: Instant, actions: inout [DeviceAction]) {
        guard earliestExpiry <= now else { return }
        if case .attached = presence {} else { endLiveOnly(actions: &actions) }
        var index = firstDroppable
        while index < log.count {
            if !log[index].isLiveOnly && log[index].expiresAt <= now {
                drop(at: index, .expired, actions: &actions)
            } else {
                index += 1
            }
        }
        findEarliestExpiry()
        if case .attached = presence { actions.append(.transmit) }
    }

    /// What is in flight has no expiry; it gets it back when its session ends.
    private mutating func findEarliestExpiry() {
        earliestExpiry = .distantFuture
        for index in firstDroppable..<max(firstDroppable, log.count) where !log[index].isLiveOnly {
            earliestExpiry = min(earliestExpiry, log[index].expiresAt)
        }
    }

    // MARK: - Stubs

    /// What waits for want of a token is due with the first one.
    private mutating func changeToken(_ has: Bool, now: Instant, actions: inout [DeviceAction]) {
        let hadToken = hasToken
        hasToken = has
        guard has, !hadToken, presence == .offline else { return }
        markDue(actions: &actions)
        requestDueStubs(now: now, actions: &actions)
    }

    /// Every message that has had no stub gets one due, or the note that there is no token.
    private mutating func markDue(actions: inout [DeviceAction]) {
        var last: Seq?
        for index in 0..<log.count {
            switch log[index].stub {
            case .none: log[index].stub = hasToken ? .due : .noToken
            case .noToken where hasToken: log[index].stub = .due
            case .due, .requested, .settled, .noToken, .notWanted: continue
            }
            last = log[index].seq
        }
        guard let last else { return }
        if hasToken {
            unsyncedDue = unsyncedDue == .max ? .max : unsyncedDue + 1
            actions.append(.recordStubsDue(upTo: last))
        } else {
            actions.append(.recordNoToken(upTo: last))
        }
    }

    private mutating func requestDueStubs(now: Instant, actions: inout [DeviceAction]) {
        guard presence == .offline, unsyncedDue == 0, hasToken else { return }
        var standard: (upTo: Seq, expiresAt: Instant)?
        for index in 0..<log.count where log[index].stub == .due {
            let message = log[index]
            if message.hasOwnAlert {
                log[index].stub = .requested
                log[index].wasOffline = true
                actions.append(.requestStub(.own(message)))
            } else if defaultStub == .idle {
                log[index].stub = .requested
                log[index].wasOffline = true
                standard = (message.seq, max(standard?.expiresAt ?? message.expiresAt, message.expiresAt))
            }
        }
        guard let standard else { return }
        defaultStub = .inFlight
        actions.append(
            .requestStub(.standard(upTo: standard.upTo, badge: log.count, expiresAt: standard.expiresAt)))
    }

    private mutating func stubAnswered(_ plan: StubPlan, now: Instant, policy: Policy) {
        switch plan {
        case .own(let message):
            if let index = position(of: message.seq) { log[index].stub = .settled }
        case .standard(let upTo, _, _):
            for index in 0..<log.firstIndex(after: upTo)
            where log[index].stub == .requested && !log[index].hasOwnAlert {
                log[index].stub = .settled
            }
            defaultStub = .coolingDown(until: now + policy.stubCooldown)
        }
    }
}
