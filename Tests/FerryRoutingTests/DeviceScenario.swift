internal import FerryCore
internal import FerryRouting
internal import FerryTestSupport

/// Which events a search or a walk may use, and how many.
struct DeviceScenario: Sendable, CustomStringConvertible {
    /// One sort of message.
    enum Sort: Hashable, Sendable, CaseIterable {
        case short, long, liveOnly, ownAlert, liveOnlyWithAlert
        /// Of broadcasts.
        case shared, sharedLiveOnly
        /// By strategies 2 and 4.
        case wakeOnly, wakeFirst, wakeFirstLiveOnly

        var route: DeliveryRoute {
            switch self {
            case .wakeOnly: .wakeOnly
            case .wakeFirst, .wakeFirstLiveOnly: .wakeFirst
            case .short, .long, .liveOnly, .ownAlert, .liveOnlyWithAlert, .shared, .sharedLiveOnly: .ownFirst
            }
        }

        var isShared: Bool { self == .shared || self == .sharedLiveOnly }

        /// A broadcast.
        func message(seq: UInt64) -> KeptMessage {
            KeptMessage(
                seq: Seq(seq), expiresAt: .distantFuture, location: RecordLocation(segment: 0, offset: 1, length: 0),
                payloadBytes: 100, isLiveOnly: self == .sharedLiveOnly, hasOwnAlert: false, wasOffline: false,
                stub: .notWanted, isShared: true)
        }

        func message(seq: UInt64, now: Instant, bytes: UInt32, stub: KeptMessage.Stub) -> KeptMessage {
            if isShared { return message(seq: seq) }
            let isLiveOnly = self == .liveOnly || self == .liveOnlyWithAlert || self == .wakeFirstLiveOnly
            return KeptMessage(
                seq: Seq(seq), expiresAt: now + .milliseconds(isLiveOnly ? 0 : self == .short ? 1_000 : 100_000),
                location: RecordLocation(segment: 1, offset: 0, length: 0), payloadBytes: bytes, isLiveOnly: isLiveOnly,
                hasOwnAlert: self == .ownAlert || self == .liveOnlyWithAlert || route.handsOver, wasOffline: false,
                stub: self == .liveOnly ? .notWanted : route.handsOver ? .due : stub, route: route)
        }
    }

    var description: String
    var sorts: [Sort]
    var messages: Int
    var cap = 2
    var byteCap = 1_000
    var capPolicy = CapPolicy.dropOldest
    var sessions: [UInt64] = [1]
    var windows: [Int32] = [2]
    var windowBytes: Int32 = 250
    var ends: [SessionEnd] = SessionEnd.allCases
    var hasToken = true
    var changesToken = false
    /// How often a second may pass.
    var waits: Int64 = 2
    /// Whether a message may carry the presence of a moment before.
    var hasLateAccepts = false
    var acknowledges = true
    /// Whether senders take messages back.
    var takesBack = false
    /// Whether broadcasts wake.
    var wakes = false

    var policy: DeliveryPolicy {
        var policy = DeliveryPolicy()
        policy.messageCap = Cap(cap)
        policy.byteCap = Cap(byteCap)
        policy.capPolicy = capPolicy
        policy.reattachGrace = .seconds(1)
        policy.stubCooldown = .seconds(1)
        policy.handOverTime = .seconds(1)
        return policy
    }

    var world: DeviceWorld { DeviceWorld(policy: policy, hasToken: hasToken) }

    /// All that may happen in a state.
    func steps(_ world: DeviceWorld) -> [DeviceWorld.Step] {
        var steps: [DeviceWorld.Step] =
            switch capPolicy {
            case .dropOldest: accepts(world).map { .event(.messageSynced($0)) }
            case .refuse: accepts(world).map { $0.isShared ? .event(.messageSynced($0)) : .offer($0) }
            }
        steps += broadcasts(world)
        if !world.taken.isEmpty { steps += [.syncTaken, .loseTaken] }
        let model = world.model
        if world.machine.next(now: world.now) != nil { steps.append(.transmit) }
        let highest = model.messages.last?.seq ?? .zero
        for session in sessions {
            for window in windows {
                var positions: [Seq?] = [nil, model.acknowledged]
                if acknowledges {
                    for seq in [highest] + model.kept.prefix(1).map(\.seq) where !positions.contains(seq) {
                        positions.append(seq)
                    }
                }
                for position in positions {
                    for continues in model.isInBackground ? [false, true] : [false] {
                        steps.append(
                            .event(
                                .attached(
                                    SessionID(rawValue: session), lastSeq: position, window: window,
                                    windowBytes: windowBytes, continues: continues)))
                    }
                }
            }
            for end in ends { steps.append(.event(.detached(SessionID(rawValue: session), end))) }
        }
        if acknowledges {
            for seq in model.acknowledged.rawValue...(model.ackBound.rawValue + 1) {
                steps.append(.event(.acknowledged(Seq(seq))))
            }
        }
        if takesBack {
            steps += model.kept.filter { !$0.isHandingOver }.map { .event(.takenBack($0.seq, .taskStopped)) }
        }
        if let first = model.kept.first, acknowledges, !first.isHandingOver {
            steps += [.event(.unreadable(first.seq)), .event(.kindNotTaken(first.seq))]
        }
        if model.unsyncedDrops > 0 { steps.append(.event(.dropSynced)) }
        if model.unsyncedDue > 0 { steps.append(.event(.dueSynced)) }
        for plan in model.outstanding {
            guard case .own(let message) = plan, message.route.handsOver else {
                steps.append(.event(.stubAnswered(plan)))
                continue
            }
            steps += [true, false].map { .event(.handOverAnswered(message.seq, isAccepted: $0)) }
        }
        for case .own(let message) in model.outstanding where model.presence != .offline || message.route.handsOver {
            steps.append(.event(.stubWithdrawn(message.seq)))
        }
        if changesToken { steps.append(.event(.tokenChanged(hasToken: !model.hasToken))) }
        if world.now.milliseconds < 1_000 + waits * 1_000 { steps.append(.wait(milliseconds: 1_000)) }
        steps.append(.event(.timePassed))
        return steps
    }

    private func broadcasts(_ world: DeviceWorld) -> [DeviceWorld.Step] {
        guard sorts.contains(.shared) else { return [] }
        let count = world.drawn
        let live = world.model.kept.filter { $0.isShared && !$0.kept.isLiveOnly && !$0.isOver }
        var steps: [DeviceWorld.Step] = live.map { .event(.broadcastEnded($0.seq)) }
        if wakes { steps += live.filter { !$0.isWakeWanted }.map { .event(.wakeWanted($0.seq)) } }
        if count < messages, world.taken.isEmpty { steps.append(.event(.broadcastMissed(Seq(UInt64(count + 1) * 2)))) }
        return steps
    }

    private func accepts(_ world: DeviceWorld) -> [KeptMessage] {
        let model = world.model
        let count = world.drawn
        guard count < messages else { return [] }
        // Every other `seq` of the partition is another device's.
        let seq = UInt64(count + 1) * 2
        let usual: KeptMessage.Stub =
            model.presence != .offline ? .none : model.hasToken ? .due : .noToken
        let stubs: [KeptMessage.Stub] = hasLateAccepts ? [.none, .due, .noToken] : [usual]
        return sorts.filter { !$0.isShared || world.taken.isEmpty }.flatMap { sort in
            (sort.isShared ? [.notWanted] : stubs).map { sort.message(seq: seq, now: world.now, bytes: 100, stub: $0) }
        }
    }
}
