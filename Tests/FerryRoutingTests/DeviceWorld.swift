internal import FerryCore
internal import FerryRouting
internal import FerryTestSupport

/// A device's machine with the driver, journal and wake-up channel around it, and the naive model beside it.
struct DeviceWorld: Hashable {
    enum Step: Hashable {
        case event(DeviceEvent)
        /// What `next` offers goes to the connection.
        case transmit
        /// Time goes on and nobody tells the machine yet.
        case wait(milliseconds: Int64)
        /// A push comes that the device's caps may refuse.
        case offer(KeptMessage)
        /// The record of the first one that was taken is on disk.
        case syncTaken
        /// It is not, and will not be.
        case loseTaken
    }

    var machine: DeviceStateMachine
    var model: DeviceModel
    var now = Instant(milliseconds: 1_000)
    let policy: DeliveryPolicy
    /// Taken under `CapPolicy.refuse` and on their way to the disk.
    private(set) var taken: [KeptMessage] = []
    private(set) var takenCount = 0
    /// How many messages got a `seq` so far.
    var drawn: Int { max(model.messages.count, takenCount + model.messages.count(where: \.isShared)) }
    private var pending = PendingMessages()
    /// Actions of the last step; not part of what a state is.
    private var trace = Trace()

    private struct Trace: Hashable {
        var actions: [DeviceAction] = []
        static func == (left: Self, right: Self) -> Bool { true }
        func hash(into hasher: inout Hasher) {}
    }

    var lastActions: [DeviceAction] { trace.actions }

    init(policy: DeliveryPolicy, hasToken: Bool, acknowledged: Seq = .zero) {
        self.policy = policy
        machine = DeviceStateMachine(acknowledged: acknowledged, gap: nil, hasToken: hasToken)
        model = DeviceModel(acknowledged: acknowledged, hasToken: hasToken)
    }

    mutating func perform(_ step: Step) throws(Violation) {
        switch step {
        case .wait(let milliseconds):
            now.milliseconds += milliseconds
            try checkState()
        case .event(let event): try handle(event)
        case .offer(let message): try offer(message)
        case .syncTaken: try handle(.messageSynced(removeTaken()))
        case .loseTaken: _ = removeTaken()
        case .transmit:
            switch machine.next(now: now) {
            case .message(let message)?:
                try handle(.sent(message.seq))
            case .gap(let gap)?:
                model.untold -= Int(gap.count)
                try Violation.unless(model.untold >= 0, "more drops were told to one session than there were")
                try handle(.sent(gap.upTo))
            case nil: throw Violation("nothing to transmit")
            }
        }
    }

    private mutating func removeTaken() -> KeptMessage {
        let message = taken.removeFirst()
        pending.remove(bytes: Int(message.payloadBytes))
        return message
    }

    private mutating func offer(_ message: KeptMessage) throws(Violation) {
        let bytes = Int(message.payloadBytes)
        let exceeded = machine.exceededCap(
            bytes: bytes, isLiveOnly: message.isLiveOnly, pending: pending, policy: policy)
        let all = model.own.map(\.kept) + taken
        let total = all.reduce(bytes) { $0 + Int($1.payloadBytes) }
        let expected: CapExceeded? =
            if all.isEmpty || (message.isLiveOnly && !model.isAttached) {
                nil
            } else if all.count >= policy.messageCap.value {
                .messages(policy.messageCap)
            } else if total > policy.byteCap.value { .bytes(policy.byteCap) } else { nil }
        try Violation.unless(exceeded == expected, "a message that would exceed a cap, and no other, is refused by it")
        guard exceeded == nil else { return }
        taken.append(message)
        takenCount += 1
        pending.add(bytes: bytes)
        guard !message.isLiveOnly else { return }
        try Violation.unless(all.count < policy.messageCap.value, "more is taken than the cap allows")
    }

    private mutating func handle(_ event: DeviceEvent) throws(Violation) {
        let before = model
        let beyond =
            if case .acknowledged(let seq) = event { before.isAttached && seq > before.ackBound } else { false }
        try DeviceExpress.check(event, at: machine, now: now, policy: policy)
        var actions: [DeviceAction] = []
        machine.handle(event, now: now, policy: policy, actions: &actions)
        model.handle(event, now: now, policy: policy)
        trace.actions = actions
        if case .attached = event { model.untold = Int(machine.gap?.count ?? 0) }

        try Violation.unless(actions.contains(.refuseAck) == beyond, "an ack is refused exactly when it was not sent")
        try Violation.unless(
            actions.contains(.recordAcknowledged(model.acknowledged)) == (model.acknowledged > before.acknowledged),
            "the acknowledged position is journalled exactly when it rises")
        try checkTakeover(event, before: before, actions: actions)
        try checkEnds(before: before, actions: actions)
        for action in actions { try follow(action) }
        try checkState()
    }

    private func checkTakeover(_ event: DeviceEvent, before: DeviceModel, actions: [DeviceAction]) throws(Violation) {
        var expected: [DeviceAction] = []
        if case .attached(let newer, _, _, _, _) = event, case .attached(let older) = before.presence, older != newer {
            expected = [.takeOver(older)]
        }
        let told = actions.filter { if case .takeOver = $0 { true } else { false } }
        try Violation.unless(told == expected, "a takeover closes the older session and only that")
    }

    /// The messages that ended in this step, each once, in the state that the model says.
    private func checkEnds(before: DeviceModel, actions: [DeviceAction]) throws(Violation) {
        var ended: [Seq: DeliveryState] = [:]
        for case .end(let message, let reason) in actions {
            try Violation.unless(ended[message.seq] == nil, "message \(message.seq) ended twice in one step")
            ended[message.seq] = reason.state
        }
        for (index, message) in model.messages.enumerated() {
            let wasKept = index >= before.messages.count || before.messages[index].isKept
            let expected = wasKept && !message.isMissed ? message.end : nil
            try Violation.unless(
                ended.removeValue(forKey: message.seq) == expected,
                "message \(message.seq): the end is \(expected.map { "\($0)" } ?? "not due")")
        }
        try Violation.unless(ended.isEmpty, "unknown messages ended")
    }

    // MARK: - The driver's part

    private mutating func follow(_ action: DeviceAction) throws(Violation) {
        switch action {
        case .recordStubsDue: model.unsyncedDue += 1
        case .requestStub(.own(let message)): try ask(message)
        case .requestStub(.standard(let upTo, let badge, let expiresAt)):
            try ask(upTo: upTo, badge: badge, expiresAt: expiresAt)
        case .recordAcknowledged, .end, .recordNoToken, .takeOver, .transmit, .refuseAck: break
        }
    }

    private mutating func ask(_ message: KeptMessage) throws(Violation) {
        guard let index = model.messages.firstIndex(where: { $0.seq == message.seq }) else {
            throw Violation("a stub for an unknown message")
        }
        let known = model.messages[index]
        try Violation.unless(known.kept.hasOwnAlert, "an own stub for a message without an alert of its own")
        try Violation.unless(!known.isStubAsked, "a second stub for message \(message.seq)")
        guard !message.route.handsOver else {
            try Violation.unless(known.isKept && known.isHandingOver, "a message is handed over that has ended")
            model.messages[index].isStubAsked = true
            return model.outstanding.append(.own(message))
        }
        try Violation.unless(model.hasToken, "a stub without a token")
        if known.kept.isLiveOnly {
            try Violation.unless(known.end == .expired, "a stub for a live-only message that did not expire")
        } else {
            try Violation.unless(known.isKept, "a stub for a message that has ended")
            try checkMayAsk()
            model.messages[index].wasOffline = true
        }
        model.messages[index].isStubAsked = true
        if !known.kept.isLiveOnly { model.outstanding.append(.own(message)) }
    }

    private mutating func ask(upTo: Seq, badge: Int, expiresAt: Instant) throws(Violation) {
        try checkMayAsk()
        try Violation.unless(!isDefaultStubOut, "a second default stub while one is out")
        try Violation.unless(model.coolingUntil == nil, "a default stub within the cool-down")
        try Violation.unless(badge == model.shown.count, "the badge is the number of kept messages")
        let owed = model.messages.indices.filter { index in
            let message = model.messages[index]
            return message.isKept && (!message.isShared || message.isWakeWanted) && !message.kept.hasOwnAlert
                && !message.isStubAsked
        }
        try Violation.unless(!owed.isEmpty, "a default stub that stands for no message")
        try Violation.unless(owed.last.map { model.messages[$0].seq } == upTo, "a default stub stands for all")
        try Violation.unless(
            owed.map { model.messages[$0].kept.expiresAt }.max() == expiresAt, "it expires with the latest of them")
        for index in owed {
            model.messages[index].isStubAsked = true
            model.messages[index].wasOffline = true
        }
        model.outstanding.append(.standard(upTo: upTo, badge: badge, expiresAt: expiresAt))
    }

    private func checkMayAsk() throws(Violation) {
        try Violation.unless(model.presence == .offline, "a stub for a device that is not offline")
        try Violation.unless(model.hasToken, "a stub without a token")
        try Violation.unless(model.unsyncedDue == 0, "a stub before the record that it is due is on disk")
    }

    private var isDefaultStubOut: Bool {
        model.outstanding.contains { if case .standard = $0 { true } else { false } }
    }
}

// MARK: - Invariants of a state

extension DeviceWorld {
    private func checkState() throws(Violation) {
        try Violation.unless(machine.presence == model.presence, "presence is \(model.presence)")
        try Violation.unless(machine.acknowledged == model.acknowledged, "acknowledged is \(model.acknowledged)")
        try checkLog()
        try checkGap()
        try checkWindow()
        try checkNext()
        try checkStubsOwed()
        try checkDeadline()
        if machine.isAtRest {
            try Violation.unless(
                model.own.isEmpty && machine.presence == .offline && machine.deadline == nil
                    && !isDefaultStubOut && model.unsyncedDue == 0 && model.unsyncedDrops == 0,
                "at rest, but something is under way")
        }
    }

    private func checkLog() throws(Violation) {
        let kept = model.kept
        let log = (0..<machine.log.count).map { machine.log[$0] }
        try Violation.unless(log.map(\.seq) == kept.map(\.seq), "the log is \(kept.map(\.seq)), not \(log.map(\.seq))")
        try Violation.unless(
            machine.log.bytes == model.ownBytes && machine.log.ownCount == model.own.count,
            "the log's bytes are the sum of the device's own messages")
        try Violation.unless(
            log.map(\.wasOffline) == kept.map(\.wasOffline), "offline flags are \(kept.map(\.wasOffline))")
    }

    private func checkGap() throws(Violation) {
        try Violation.unless(
            machine.gap?.upTo == model.missing.max(), "the gap reaches to \(model.missing.max()?.rawValue ?? 0)")
        guard let gap = machine.gap else { return }
        try Violation.unless(gap.count >= model.missing.count, "the gap counts at least what is missing")
        try Violation.unless(!model.kept.contains { $0.seq == gap.upTo }, "a gap stands where no message does")
    }

    private func checkWindow() throws(Violation) {
        guard model.isAttached else { return }
        let window = machine.window
        let inFlight = model.inFlight
        try Violation.unless(window.sent == model.sent, "sent is \(model.sent)")
        try Violation.unless(window.inFlight <= window.messageLimit, "more in flight than the window holds")
        try Violation.unless(window.inFlight >= inFlight.count, "an entry in flight is not counted")
        let bytes = inFlight.reduce(0) { $0 + Int($1.kept.payloadBytes) }
        try Violation.unless(Int(window.inFlightBytes) == bytes, "bytes in flight are \(bytes)")
        try Violation.unless(bytes <= window.byteLimit || inFlight.count == 1, "more bytes in flight than allowed")
        if !inFlight.isEmpty || model.missing.contains(where: { $0 <= model.sent }) { return }
        try Violation.unless(window.inFlight == 0, "the window counts what is not in flight")
    }

    private func checkNext() throws(Violation) {
        let unsent = model.kept.first { $0.seq > model.sent }
        let untold = model.missing.filter { $0 > model.sent }
        switch machine.next(now: now) {
        case .message(let message)?:
            try Violation.unless(model.isAttached, "an entry without a session")
            try Violation.unless(message.seq == unsent?.seq, "next is the first that was not sent")
            try Violation.unless(message.isLiveOnly || message.expiresAt > now, "an expired message is offered")
            try Violation.unless(
                !model.kept.contains { $0.isHandingOver && $0.seq <= message.seq },
                "a message is offered that the wake-up channel has, or one behind it")
            try Violation.unless(
                model.unsyncedFrom.map { message.seq < $0 } ?? true, "a message behind a drop that is not on disk")
            try Violation.unless(
                untold.filter { !model.missingShared.contains($0) }.max().map { $0 > message.seq } ?? true,
                "a message before the gap")
            try Violation.unless(
                !untold.contains { $0 < message.seq && model.missingShared.contains($0) },
                "a message before the gap of a broadcast")
        case .gap(let gap)?:
            try Violation.unless(model.isAttached, "an entry without a session")
            try Violation.unless(untold.contains(gap.upTo), "a gap that is not missing or was told")
            try Violation.unless(unsent.map { gap.upTo < $0.seq } ?? true, "a gap before its place")
            try Violation.unless(model.unsyncedDrops == 0, "a gap is told before its drops are on disk")
        case nil:
            guard model.isAttached, unsent != nil || !untold.isEmpty else { return }
            let bytes = Int64(unsent?.kept.payloadBytes ?? 0)
            let isFull =
                machine.window.inFlight > 0
                && (machine.window.inFlight >= model.windowMessages
                    || Int64(machine.window.inFlightBytes) + bytes > Int64(model.windowBytes))
            let isOver = unsent.map { !$0.kept.isLiveOnly && $0.kept.expiresAt <= now } ?? false
            let waitsForDisk = model.unsyncedDrops > 0
            let isWithChannel = unsent?.isHandingOver ?? false
            try Violation.unless(
                isFull || isOver || waitsForDisk || isWithChannel, "an entry may go, and none is offered")
        }
        let upcoming = machine.upcoming(count: 8, bytes: 1 << 20).map(\.seq)
        let unsentSeqs = model.isAttached ? model.own.map(\.seq).filter { $0 > model.sent } : []
        try Violation.unless(upcoming == Array(unsentSeqs.prefix(upcoming.count)), "read ahead is in order")
    }

    /// No stub that could be asked for is forgotten.
    private func checkStubsOwed() throws(Violation) {
        guard model.presence == .offline, model.hasToken, model.unsyncedDue == 0 else { return }
        for message in model.waking where !message.isStubAsked {
            let waits = !message.kept.hasOwnAlert && (isDefaultStubOut || model.coolingUntil != nil)
            try Violation.unless(waits, "the stub for message \(message.seq) is forgotten")
        }
    }

    /// Whenever `.timePassed` would do something, the deadline has said so; once it was told, the deadline lies ahead.
    private func checkDeadline() throws(Violation) {
        for ahead in [0, 1_000, 3_000, 1_000_000] as [Int64] {
            let then = Instant(milliseconds: now.milliseconds + ahead)
            var other = machine
            var actions: [DeviceAction] = []
            other.handle(.timePassed, now: then, policy: policy, actions: &actions)
            let acted = other.presence != machine.presence || actions.contains { $0 != .transmit }
            let deadline = machine.deadline ?? .distantFuture
            try Violation.unless(!acted || deadline <= then, "the deadline misses what happens at \(then.milliseconds)")
            try Violation.unless((other.deadline ?? .distantFuture) > then, "the deadline stays behind")
        }
    }
}
