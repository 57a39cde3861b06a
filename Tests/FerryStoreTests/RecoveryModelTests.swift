internal import FerryCore
internal import FerryStore
internal import Testing

/// A recovery against the naive model, over many histories.
struct RecoveryModelTests {
    @Test(arguments: Backing.allCases)
    func `A restart finds exactly what was committed`(backing: Backing) throws {
        for seed in 1...(backing == .memory ? 12 as UInt64 : 1) {
            let fixture = Fixture(backing, segmentBytes: 8192)
            var work = RandomWork(seed: seed)
            var state = ModelShard.State()
            var messages: [AcceptedMessage] = []
            for _ in 0..<4 {
                let store = try fixture.open()
                let recovery = store.takeRecovery()
                let shard = ModelShard(store)
                shard.adopt(recovery, messages: messages)
                shard.adoptQuiet(state.devices.values.map(\.record))
                try store.start(sinks: [shard.sink])
                for _ in 0..<150 {
                    shard.append(work.records(shard.state))
                    if Int.random(in: 0..<4, using: &work.generator) == 0 { settle(store, shard) }
                }
                settle(store, shard)
                state = shard.state
                messages = state.devices.values.flatMap { $0.kept.map(\.message) }
                if Bool.random(using: &work.generator) { store.close() }
                if backing == .memory { fixture.crash(.torn(seed)) }
            }
            let store = try fixture.open()
            try expectRecovered(store, store.takeRecovery(), isOneOf: [state])
            #expect(fixture.reports.all.isEmpty)
        }
    }

    @Test func `A power cut at any time loses nothing that was answered and invents nothing`() throws {
        for seed in 1...40 as ClosedRange<UInt64> {
            let fixture = Fixture(segmentBytes: 8192)
            var work = RandomWork(seed: seed)
            let store = try fixture.open()
            _ = store.takeRecovery()
            let shard = ModelShard(store)
            try store.start(sinks: [shard.sink])
            var faults = MemoryTables.Faults()
            fixture.tables.inject(faults)
            for _ in 0..<Int.random(in: 20...300, using: &work.generator) {
                shard.append(work.records(shard.state))
                if Int.random(in: 0..<5, using: &work.generator) == 0 { store.step() }
                if Int.random(in: 0..<5, using: &work.generator) == 0 { shard.pump() }
                if seed % 3 == 0, Int.random(in: 0..<30, using: &work.generator) == 0 {
                    // A retirement that breaks off between its rows and its end.
                    faults.writesBefore = Int.random(in: 0...3, using: &work.generator)
                    fixture.tables.inject(faults)
                }
            }
            let states = shard.unanswered.map(\.before) + [shard.state]
            for fate in [MemoryDisk.Fate.lost, .kept, .torn(seed)] {
                let after = fixture.copy(fate)
                let reopened = try after.open()
                try expectRecovered(reopened, reopened.takeRecovery(), isOneOf: states)
            }
        }
    }
}
