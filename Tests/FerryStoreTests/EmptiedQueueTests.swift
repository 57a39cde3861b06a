internal import CRocksDB
internal import FerryCore
internal import FerryStore
internal import Testing

/// Queues that are filled and emptied again and again. What was deleted lies in the way of whoever looks for what comes next,
/// until it is merged away: reads grew thirtyfold in forty rounds where they began at a queue's start.
struct EmptiedQueueTests {
    private static let rounds = 40
    private static let messages = 50

    @Test func `A queue emptied forty times is read without a step over what was deleted`() throws {
        let fixture = Fixture(.files, segmentBytes: 8192, keptSegments: 0)
        let store = try fixture.open()
        _ = store.takeRecovery()
        let shard = ModelShard(store)
        try store.start(sinks: [shard.sink])
        shard.append((1...2).compactMap { Sample.registration($0).map { .deviceRegistered($0) } })
        shard.append([.messageAccepted(Sample.message(2, seq: 1))])
        let steps = Steps()
        var seq: UInt64 = 1
        for _ in 0..<Self.rounds {
            let first = seq + 1
            for _ in 0..<Self.messages {
                seq += 1
                shard.append([.messageAccepted(Sample.message(1, seq: seq, payload: 200))])
                settle(store, shard)
            }
            let references = shard.references.filter { $0.cid == Sample.cid(1) && $0.seq >= Seq(first) }
            try #require(references.count == Self.messages)
            let last = try #require(references.map(\.location.segment).max())
            while shard.retired.last ?? 0 < last {
                shard.append([.deviceSeen(cid: Sample.cid(2), at: Instant(milliseconds: 9_000))])
                settle(store, shard)
            }
            _ = shard.takeAnswers()
            steps.begin()
            shard.read(references)
            settle(store, shard)
            #expect(steps.overDeleted == 0)
            guard case .messages(_, let messages)? = shard.takeAnswers().last else {
                Issue.record("no answer")
                return
            }
            #expect(messages.map(\.?.seq) == references.map(\.seq))
            shard.append([.acknowledged(cid: Sample.cid(1), upTo: Seq(seq))])
            settle(store, shard)
        }
        store.close()
        // A start reads all rows of the table. Runs of files are merged from time to time, and what is deleted goes with that.
        steps.begin()
        let found = try fixture.open().takeRecovery()
        #expect(found.devices.flatMap(\.kept).map(\.seq) == [Seq(1)])
        #expect(steps.overDeleted < Self.rounds * Self.messages / 2)
        #expect(steps.blocks > 0, "the engine counts nothing")
    }

    /// What the engine did on this thread since `begin`.
    private final class Steps {
        private let context = rocksdb_perfcontext_create()

        init() { rocksdb_set_perf_level(Int32(rocksdb_enable_count)) }

        deinit {
            rocksdb_set_perf_level(Int32(rocksdb_disable))
            rocksdb_perfcontext_destroy(context)
        }

        func begin() { rocksdb_perfcontext_reset(context) }

        var overDeleted: Int { Int(rocksdb_perfcontext_metric(context, Int32(rocksdb_internal_delete_skipped_count))) }
        var blocks: Int {
            Int(rocksdb_perfcontext_metric(context, Int32(rocksdb_block_read_count)))
                + Int(rocksdb_perfcontext_metric(context, Int32(rocksdb_block_cache_hit_count)))
        }
    }
}
