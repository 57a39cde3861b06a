internal import FerryCore
internal import FerryStore

/// What a busy gateway writes, by chance: registrations, messages, broadcasts, acknowledgements, drops, stubs.
struct RandomWork {
    var generator: SeededGenerator
    let devices: UInt64
    var now: Int64 = 1_000_000

    init(seed: UInt64, devices: UInt64 = 6) {
        generator = SeededGenerator(seed)
        self.devices = devices
    }

    /// One append's records for the state that they change.
    mutating func records(_ state: ModelShard.State) -> [Record] {
        now += 1
        let number = UInt64.random(in: 1...devices, using: &generator)
        let cid = Sample.cid(number)
        guard let device = state.devices[cid] else {
            guard var registration = Sample.registration(number, at: now) else { return [] }
            registration.acknowledged = state.highest[Partition(of: cid).index] ?? .zero
            return [.deviceRegistered(registration)]
        }
        let kept = device.kept.map(\.message.seq)
        switch Int.random(in: 0..<24, using: &generator) {
        case 0: return [.pushTokenChanged(cid: cid, token: Sample.token(UInt8(now & 255)), at: at)]
        case 1: return [.deviceSeen(cid: cid, at: at)]
        case 2: return [.apiTokenRevoked(digest: Array("\(now)".utf8), expiresAt: .distantFuture)]
        case 3...6:
            guard let upTo = kept.randomElement(using: &generator) else { return [] }
            return [.acknowledged(cid: cid, upTo: upTo)]
        case 7:
            // A gap is acknowledged like a message.
            guard let gap = device.record.gap, kept.first.map({ $0 > gap.upTo }) ?? true else { return [] }
            return [.acknowledged(cid: cid, upTo: gap.upTo)]
        case 8, 9:
            guard let seq = kept.randomElement(using: &generator) else { return [] }
            let states: [DeliveryState] = [.expired, .overflowed, .revoked, .handed]
            let isLiveOnly = device.kept.contains { $0.message.seq == seq && $0.message.isLiveOnly }
            let state = states.randomElement(using: &generator) ?? .expired
            return [.settled(cid: cid, seq: seq, state: state, isTold: !isLiveOnly)]
        case 10:
            guard let upTo = kept.last else { return [] }
            return [.stubDue(cid: cid, upTo: upTo)]
        case 11:
            guard let upTo = kept.last else { return [] }
            return [.stubSettled(cid: cid, upTo: upTo, outcome: .accepted)]
        case 20: return Sample.broadcast(UInt64(now), at: now, ttl: 1 << 40).map { [.broadcastAccepted($0)] } ?? []
        case 21: return places(state)
        case 22:
            let live = state.broadcasts.keys.filter { !state.stopped.contains($0) }.sorted()
            return live.randomElement(using: &generator).map { [.broadcastStopped(task: $0)] } ?? []
        case 23:
            guard Int.random(in: 0..<4, using: &generator) == 0 else { return accepts(state, cid, number) }
            return [.deviceRemoved(cid: cid, at: at)]
        default: return accepts(state, cid, number)
        }
    }

    /// A broadcast's places in the partitions of some devices, and in some where nobody is.
    private mutating func places(_ state: ModelShard.State) -> [Record] {
        let unplaced = state.broadcasts.keys.filter { state.places[$0] == nil }.sorted()
        guard let task = unplaced.randomElement(using: &generator) else { return [] }
        let partitions = Set(
            (1...devices + 3).map { Partition(of: Sample.cid($0)).index }.filter { _ in
                Int.random(in: 0..<4, using: &generator) > 0
            })
        let places = partitions.sorted().map {
            (partition: Partition(index: $0), seq: (state.highest[$0] ?? .zero).next)
        }
        return [.broadcastPlaced(BroadcastPlacement(task: task, places: places))]
    }

    private var at: Instant { Instant(milliseconds: now) }

    /// One to three messages for one device, atomically.
    private mutating func accepts(_ state: ModelShard.State, _ cid: CID, _ number: UInt64) -> [Record] {
        var seq = state.highest[Partition(of: cid).index]?.rawValue ?? 0
        return (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            seq += UInt64.random(in: 1...3, using: &generator)
            let key = RequestKey(key: Identifier128(high: number, low: seq), content: Identifier128(high: 1, low: seq))
            let stub = StubNeed.allCases.randomElement(using: &generator) ?? .due
            if Int.random(in: 0..<4, using: &generator) == 0 {
                return .messageAccepted(
                    Sample.reference(
                        number, seq: seq, payload: UInt32.random(in: 1...70_000, using: &generator), at: now,
                        stub: stub, hasAlert: Bool.random(using: &generator)))
            }
            let request = Bool.random(using: &generator) ? key : nil
            let alert = OwnAlert(body: Array("{}".utf8), collapseID: nil, isBackground: false)
            return .messageAccepted(
                Sample.message(
                    number, seq: seq, payload: Int.random(in: 0...300, using: &generator), at: now,
                    ttl: Bool.random(using: &generator) ? 60_000 : Int64.random(in: 0...1, using: &generator),
                    stub: stub, request: request, alert: Bool.random(using: &generator) ? alert : nil))
        }
    }
}
