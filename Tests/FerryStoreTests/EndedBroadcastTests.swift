@testable internal import FerryStore
internal import FerryCore
internal import Testing

/// Broadcasts that are over. A backend may send one each second for a week: a start took 24 KiB for each, and the tables kept
/// all with their payloads.
struct EndedBroadcastTests {
    private static let ended = 2_500
    private static let firstLive = 10_000

    /// Ended ones, then two that are live.
    private func fill(_ fixture: Fixture) throws -> SteppedStore {
        let store = try fixture.open()
        _ = store.takeRecovery()
        let shard = ModelShard(store)
        try store.start(sinks: [shard.sink])
        for number in 1...Self.ended {
            try post(number, ttl: 10, shard)
            if number % 50 == 0 { settle(store, shard) }
        }
        for number in Self.firstLive...(Self.firstLive + 1) { try post(number, ttl: 1 << 40, shard) }
        settle(store, shard)
        return store
    }

    private func post(_ number: Int, ttl: Int64, _ shard: ModelShard) throws {
        let broadcast = try #require(
            Sample.broadcast(UInt64(number), payload: 40, at: Int64(number), ttl: ttl))
        let place = (partition: Partition(index: 0), seq: Seq(UInt64(number)))
        shard.append([
            .broadcastAccepted(broadcast),
            .broadcastPlaced(BroadcastPlacement(task: broadcast.taskID.value, places: [place])),
        ])
    }

    /// All in the journal, or nearly all in the tables.
    @Test(arguments: [1 << 24, 65_536])
    func `A start finds the newest thousand that are over, without payload, and all that are live`(
        segmentBytes: Int
    ) throws {
        let fixture = Fixture(segmentBytes: segmentBytes, keptSegments: 0)
        try fill(fixture).close()
        let recovery = try fixture.copy().open().takeRecovery()
        let over = recovery.broadcasts.filter(\.isOver)
        #expect(over.count == 1_000)
        let newest = (1...Self.ended).suffix(1_000)
        #expect(over.map { Int($0.broadcast.taskID.value.low) } == Array(newest))
        #expect(over.allSatisfy { $0.broadcast.payload.isEmpty })
        #expect(over.allSatisfy { $0.places[0] == Seq($0.broadcast.taskID.value.low) })
        let live = recovery.broadcasts.filter { !$0.isOver }
        #expect(live.map { $0.broadcast.payload.count } == [40, 40])
        #expect(recovery.highest[0] == Seq(UInt64(Self.firstLive + 1)))
    }

    @Test func `The tables keep little more of what is over than a start would find`() throws {
        let fixture = Fixture(segmentBytes: 65_536, keptSegments: 0)
        try fill(fixture).close()
        #expect(try fixture.segments().count < 4)
        var contents = 0
        var payloads = 0
        var places = 0
        try fixture.tables.scan(.broadcasts) { key, value throws(StoreFailure) in
            switch BroadcastRow.read(key: key, value: value) {
            case .content(let broadcast):
                contents += 1
                payloads += broadcast.payload.count
            case .places: places += 1
            case .stopped: Issue.record("none was stopped")
            case nil: Issue.record("a row that cannot be read")
            }
            return true
        }
        // What the last retirement brought is looked through by the next.
        let ofOneSegment = 65_536 / 100
        #expect(contents > 900 && contents <= 1_000 + ofOneSegment)
        #expect(places <= contents)
        #expect(payloads <= ofOneSegment * 40)
    }
}
