internal import FerryCore
internal import FerryStore
internal import Testing

/// A shard asks for appends without waiting for the answers to the ones before.
struct StaleAppendTests {
    /// A row that counted an acknowledgement was on disk without it, behind a refused append: the next life took back an end,
    /// of whatever reason.
    @Test func `What was made without knowing of a refusal is refused too, and what was made with it is not`() throws {
        let fixture = Fixture()
        let store = try fixture.open()
        _ = store.takeRecovery()
        let inbox = ModelShard.Inbox()
        let other = ModelShard.Inbox()
        try store.start(sinks: [{ inbox.post($0) }, { other.post($0) }])
        let registration = try #require(Sample.registration(1))
        append(1, .deviceRegistered(registration), store)
        store.step()
        #expect(inbox.drain().map(Answer.init) == [.committed(1)])
        var faults = MemoryDisk.Faults()
        faults.writes = 2
        fixture.disk.inject(faults)
        append(2, .messageAccepted(Sample.message(1, seq: 1)), store)
        store.step()
        #expect(inbox.drain().map(Answer.init) == [.refused(2)])
        fixture.disk.inject(MemoryDisk.Faults())
        // Under way before the shard could know.
        append(3, .messageAccepted(Sample.message(1, seq: 2)), store)
        append(4, .messageAccepted(Sample.message(1, seq: 3)), store)
        append(5, .messageAccepted(Sample.message(1, seq: 4)), store, knows: 2)
        append(1, .deviceSeen(cid: registration.cid, at: Instant(milliseconds: 9)), store, shard: 1)
        store.step()
        #expect(inbox.drain().map(Answer.init) == [.refused(3), .refused(4), .committed(5)])
        #expect(other.drain().map(Answer.init) == [.committed(1)], "another shard's do not build on it")
        append(6, .messageAccepted(Sample.message(1, seq: 5)), store, knows: 2)
        store.step()
        #expect(inbox.drain().map(Answer.init) == [.committed(6)])
        fixture.crash(.kept)
        let recovery = try fixture.open().takeRecovery()
        #expect(recovery.devices.flatMap { $0.kept.map(\.seq) } == [Seq(4), Seq(5)])
    }

    private enum Answer: Equatable {
        case committed(UInt64)
        case refused(UInt64)
        case other

        init(_ event: StoreEvent) {
            self =
                switch event {
                case .committed(let ticket, _, _): .committed(ticket)
                case .refused(let ticket, _): .refused(ticket)
                default: .other
                }
        }
    }

    private func append(
        _ ticket: UInt64, _ record: Record, _ store: SteppedStore, knows: UInt64 = 0, shard: Int = 0
    ) {
        var writer = ByteWriter()
        RecordCodec.append(record, to: &writer)
        store.submit([.append(ticket: ticket, records: writer.bytes, highest: [], knows: knows)], from: shard)
    }
}
