internal import FerryCore
internal import FerryStore

/// Values for the tests of this module.
enum Sample {
    static func cid(_ number: UInt64) -> CID { CID(Identifier128(high: 0xc1d, low: number)) }

    static func message(
        _ device: UInt64, seq: UInt64, payload: Int = 20, at: Int64 = 1_000, ttl: Int64 = 60_000,
        stub: StubNeed = .due, request: RequestKey? = nil, traits: MessageTraits = .none, alert: OwnAlert? = nil
    ) -> AcceptedMessage {
        AcceptedMessage(
            cid: cid(device), seq: Seq(seq), messageID: MessageID(Identifier128(high: device, low: seq)),
            taskID: TaskID(Identifier128(high: 9, low: seq), monthDay: 1231, kind: .single),
            acceptedAt: Instant(milliseconds: at), expiresAt: Instant(milliseconds: at + ttl), stub: stub,
            wasOnline: stub == .none, request: request, traits: traits, alert: alert,
            payload: (0..<payload).map { UInt8(truncatingIfNeeded: $0 &+ Int(seq)) })
    }

    /// A message whose content is its task's.
    static func reference(
        _ device: UInt64, seq: UInt64, payload: UInt32 = 20, at: Int64 = 1_000, ttl: Int64 = 60_000,
        stub: StubNeed = .due, hasAlert: Bool = false
    ) -> AcceptedMessage {
        let task = TaskID(Identifier128(high: 9, low: seq), monthDay: 1231, kind: .list)
        let request = RequestKey(task: task, cid: cid(device))
        return AcceptedMessage(
            cid: cid(device), seq: Seq(seq), messageID: request.messageID, taskID: task,
            acceptedAt: Instant(milliseconds: at), expiresAt: Instant(milliseconds: at + ttl), stub: stub,
            wasOnline: stub == .none, request: request, alert: nil, payload: [],
            reference: ContentReference(payloadBytes: payload, hasAlert: hasAlert))
    }

    static func registration(_ device: UInt64, at: Int64 = 500) -> DeviceRegistration? {
        AppID("app-1").map {
            DeviceRegistration(app: $0, cid: cid(device), generation: 3, at: Instant(milliseconds: at))
        }
    }

    static func broadcast(
        _ number: UInt64, payload: Int = 20, at: Int64 = 1_000, ttl: Int64 = 60_000
    ) -> AcceptedBroadcast? {
        AppID("app-1").map {
            AcceptedBroadcast(
                app: $0, taskID: TaskID(Identifier128(high: 8, low: number), monthDay: 1231, kind: .app),
                messageID: MessageID(Identifier128(high: 7, low: number)), acceptedAt: Instant(milliseconds: at),
                expiresAt: Instant(milliseconds: at + ttl),
                request: RequestKey(
                    key: Identifier128(high: 1 << 40, low: number), content: Identifier128(high: 2, low: number)),
                payload: (0..<payload).map { UInt8(truncatingIfNeeded: $0 &+ Int(number)) })
        }
    }

    static func token(_ fill: UInt8) -> PushToken? {
        PushToken(environment: .production, bytes: [UInt8](repeating: fill, count: 32))
    }

    static let traits: MessageTraits = {
        var traits = MessageTraits.none
        traits.kind = .notification
        traits.route = .wakeFirst
        traits.groupName = "spring"
        return traits
    }()

    /// At least one of every kind, with and without their optional parts.
    static let records: [Record] = {
        let request = RequestKey(key: Identifier128(high: 5, low: 6), content: Identifier128(high: 7, low: 8))
        let alert = OwnAlert(body: Array("{}".utf8), collapseID: "wöchentlich", isBackground: false)
        let silent = OwnAlert(body: Array("{\"aps\":{}}".utf8), collapseID: nil, isBackground: true)
        var records: [Record] = [
            .pushTokenChanged(cid: cid(1), token: token(0xab), at: Instant(milliseconds: 77)),
            .pushTokenChanged(cid: cid(1), token: nil, at: Instant(milliseconds: -77)),
            .deviceSeen(cid: cid(2), at: .distantFuture),
            .messageAccepted(message(1, seq: 1)),
            .messageAccepted(message(1, seq: .max, payload: 0, ttl: 0, stub: .notWanted)),
            .messageAccepted(message(1, seq: 300, payload: 300, stub: .none, request: request, alert: alert)),
            .messageAccepted(message(1, seq: 301, stub: .noToken, alert: silent)),
            .messageAccepted(message(1, seq: 304, request: request, traits: traits)),
            .messageAccepted(message(1, seq: 303, traits: traits, alert: alert)),
            .messageAccepted(reference(1, seq: 302)),
            .messageAccepted(reference(1, seq: 1 << 40, payload: 65_536, ttl: 0, stub: .none, hasAlert: true)),
            .acknowledged(cid: cid(1), upTo: Seq(7)),
            .stubDue(cid: cid(1), upTo: Seq(1 << 40)),
            .apiTokenRevoked(digest: [UInt8](repeating: 9, count: 32), expiresAt: .distantPast),
        ]
        if var registration = registration(1) {
            records.append(.deviceRegistered(registration))
            registration.acknowledged = Seq(300)
            records.append(.deviceRegistered(registration))
        }
        if let broadcast = broadcast(4) { records.append(.broadcastAccepted(broadcast)) }
        if var typed = broadcast(6) {
            typed.traits = traits
            records.append(.broadcastAccepted(typed))
        }
        if let liveOnly = broadcast(5, payload: 0, ttl: 0) { records.append(.broadcastAccepted(liveOnly)) }
        let task = Identifier128(high: 8, low: 4)
        let places: [(partition: Partition, seq: Seq)] = [0, 1, 200, 1_023].map {
            (Partition(index: $0), Seq(UInt64($0) + 1))
        }
        records.append(.broadcastPlaced(BroadcastPlacement(task: task, places: places)))
        records.append(.broadcastPlaced(BroadcastPlacement(task: task, places: [])))
        records.append(.broadcastExpired(task: task))
        records.append(.controlRows([]))
        records.append(
            .controlRows([
                ControlRow(.alias, Partition(index: 1_023), key: Array("名".utf8), value: [1]),
                ControlRow(.receipt, Partition(index: 0), key: [], value: []),
                ControlRow(.profile, Partition(index: 300), key: [0, 255], value: nil),
            ]))
        records.append(.broadcastStopped(task: task))
        for state in DeliveryState.allCases where state.isTerminal && state != .delivered {
            records.append(.settled(cid: cid(3), seq: Seq(4), state: state))
        }
        for outcome in StubOutcome.allCases {
            records.append(.stubSettled(cid: cid(3), upTo: Seq(4), outcome: outcome))
        }
        return records
    }()
}
