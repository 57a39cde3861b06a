internal import FerryCore
internal import FerryIO
internal import FerryStore
internal import Testing

/// The store on its threads.
struct EmbeddedStoreTests {
    /// Lets a test wait for events instead of time.
    private final class Bell: Sendable {
        let mailbox: Mailbox<Void>
        init() throws { mailbox = try Mailbox() }
    }

    private func open(_ fixture: Fixture) throws -> EmbeddedStore {
        switch fixture.backing {
        case .memory: try EmbeddedStore.inMemory(fixture.options, disk: fixture.disk, tables: fixture.tables)
        case .files: try EmbeddedStore.open(fixture.options)
        }
    }

    /// Runs `body` on an open store with a shard, and pumps the shard until `isDone`.
    private func run(
        _ fixture: Fixture, _ state: ModelShard?, _ body: (ModelShard) -> Void, until isDone: (ModelShard) -> Bool
    ) throws -> ModelShard {
        let store = try open(fixture)
        let shard = ModelShard(store)
        shard.adopt(
            store.takeRecovery(), messages: state?.state.devices.values.flatMap { $0.kept.map(\.message) } ?? [])
        if let state { shard.adoptQuiet(state.state.devices.values.map(\.record)) }
        let bell = try Bell()
        let sink = shard.sink
        try store.start(sinks: [
            { events in
                sink(events)
                bell.mailbox.post(())
            }
        ])
        body(shard)
        let poller = try Poller()
        try poller.add(bell.mailbox.descriptor, .readable, token: 0)
        var ticks: [Void] = []
        while !isDone(shard) {
            guard poller.wait(milliseconds: 20_000) > 0 else {
                Issue.record("the store fell silent")
                break
            }
            bell.mailbox.drain(into: &ticks)
            ticks.removeAll()
            shard.pump()
        }
        store.close()
        return shard
    }

    @Test(arguments: Backing.allCases)
    func `Threads commit, retire, read and close; a restart finds it all`(backing: Backing) throws {
        let fixture = Fixture(backing, segmentBytes: 16_384)
        fixture.options.batchPieces = 8
        var work = RandomWork(seed: 11)
        var shard: ModelShard?
        for _ in 0..<2 {
            let appendMany = { (shard: ModelShard) in
                for _ in 0..<400 {
                    shard.append(work.records(shard.state))
                    shard.pump()
                }
            }
            shard = try run(fixture, shard, appendMany) { $0.unanswered.isEmpty && !$0.retired.isEmpty }
        }
        let state = try #require(shard?.state)
        let store = try fixture.open()
        try expectRecovered(store, store.takeRecovery(), isOneOf: [state])
        #expect(fixture.reports.all.isEmpty, "\(fixture.reports.all)")
    }

    @Test func `Closing finishes what was submitted before`() throws {
        let fixture = Fixture()
        let store = try open(fixture)
        _ = store.takeRecovery()
        let shard = ModelShard(store)
        try store.start(sinks: [shard.sink])
        shard.append(Sample.registration(1).map { [.deviceRegistered($0)] } ?? [])
        for seq in 1...UInt64(50) { shard.append([.messageAccepted(Sample.message(1, seq: seq))]) }
        store.close()
        shard.pump()
        #expect(shard.unanswered.isEmpty)
        #expect(try fixture.open().takeRecovery().devices.first?.kept.count == 50)
    }

    @Test func `Closing does not wait for a disk that decides nothing`() throws {
        let fixture = Fixture()
        let store = try open(fixture)
        _ = store.takeRecovery()
        let shard = ModelShard(store)
        try store.start(sinks: [shard.sink])
        var faults = MemoryDisk.Faults()
        faults.syncs = .max
        fixture.disk.inject(faults)
        shard.append(Sample.registration(1).map { [.deviceRegistered($0)] } ?? [])
        store.close()
        shard.pump()
        #expect(shard.unanswered.count == 1)
    }

    @Test func `A store that was never started closes`() throws {
        let fixture = Fixture(.files)
        try open(fixture).close()
        _ = try fixture.open()
    }
}
