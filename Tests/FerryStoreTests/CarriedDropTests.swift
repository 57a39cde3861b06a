internal import FerryCore
internal import FerryStore
internal import Testing

/// Drops that the disk refused to record go into their device's row when the segment with the messages retires.
struct CarriedDropTests {
    /// The row reached the disk by itself while the tables did not take the segment's end, and then the power went. The
    /// message, found in the segment again, was kept at the place of the gap that counted it, and the gap was acknowledged
    /// with it, with all that it had to tell.
    @Test(arguments: [false, true])
    func `A row that counts a refused drop is on disk exactly when the message is not`(isRetired: Bool) throws {
        let fixture = Fixture(segmentBytes: 4_096, keptSegments: 1)
        let store = try fixture.open()
        _ = store.takeRecovery()
        let inbox = ModelShard.Inbox()
        try store.start(sinks: [{ inbox.post($0) }])
        let first = try #require(Sample.registration(1))
        let second = try #require(Sample.registration(2))
        append([.deviceRegistered(first), .deviceRegistered(second)], store)
        append([.messageAccepted(Sample.message(1, seq: 1))], store)
        var seq: UInt64 = 1
        while !inbox.drain().contains(where: { if case .segmentRetiring(1) = $0 { true } else { false } }) {
            seq += 1
            try #require(seq < 50, "no segment retires")
            append([.messageAccepted(Sample.message(2, seq: seq, payload: 1_000))], store)
        }
        var remains = SegmentRemains()
        var carrying = DeviceRecord(registration: first)
        carrying.gap = Gap(upTo: Seq(1))
        carrying.gap?.add(Seq(1), .expired)
        remains.carryingDevices = [carrying]
        remains.devices = [DeviceRecord(registration: second)]
        store.submit([.remains(segment: 1, remains, isLast: true)], from: 0)
        var faults = MemoryTables.Faults()
        if !isRetired { faults.writesBefore = 0 }
        fixture.tables.inject(faults)
        store.step()
        store.step()
        fixture.crash(.kept, keeping: .max)
        let recovery = try fixture.open().takeRecovery()
        let device = try #require(recovery.devices.first { $0.record.cid == first.cid })
        #expect(device.kept.map(\.seq) == (isRetired ? [] : [Seq(1)]))
        #expect((device.record.gap?.count ?? 0) == (isRetired ? 1 : 0))
    }

    /// The row of a device says which drops it counts by a place in the journal. It named a segment that could not be begun;
    /// the next life began at an earlier number, and what was dropped there was taken for counted, and never told.
    @Test func `A drop counts though the life before could not begin a segment`() throws {
        let fixture = Fixture(segmentBytes: 4_096, keptSegments: 2)
        let registration = try #require(Sample.registration(1))
        let device = DeviceRecord(registration: registration)
        var store = try fixture.open()
        _ = store.takeRecovery()
        try store.start(sinks: [{ _ in }])
        append([.deviceRegistered(registration)], store)
        for seq in 1...12 as ClosedRange<UInt64> {
            append([.messageAccepted(Sample.message(1, seq: seq, payload: 1_000))], store)
        }
        fixture.crash(.kept)
        // A life that retires a segment while nothing can be written.
        store = try fixture.open()
        _ = store.takeRecovery()
        let inbox = ModelShard.Inbox()
        try store.start(sinks: [{ inbox.post($0) }])
        store.step()
        try #require(inbox.drain().contains { if case .segmentRetiring(1) = $0 { true } else { false } })
        var faults = MemoryDisk.Faults()
        faults.writes = 2
        fixture.disk.inject(faults)
        append([.deviceSeen(cid: registration.cid, at: Instant(milliseconds: 9))], store)
        #expect(inbox.drain().contains { if case .refused = $0 { true } else { false } })
        var remains = SegmentRemains()
        remains.devices = [device]
        store.submit([.remains(segment: 1, remains, isLast: true)], from: 0)
        store.step()
        store.step()
        #expect(inbox.drain().contains { if case .segmentRetired(1) = $0 { true } else { false } })
        fixture.crash(.lost)
        store = try fixture.open()
        _ = store.takeRecovery()
        try store.start(sinks: [{ _ in }])
        append([.settled(cid: registration.cid, seq: Seq(12), state: .expired)], store)
        fixture.crash(.kept)
        let found = try fixture.open().takeRecovery().devices.first { $0.record.cid == registration.cid }
        #expect(found?.record.gap?.count == 1)
    }

    private func append(_ records: [Record], _ store: SteppedStore) {
        var writer = ByteWriter()
        for record in records { RecordCodec.append(record, to: &writer) }
        store.submit([.append(ticket: 1, records: writer.bytes, highest: [], knows: 0)], from: 0)
        store.step()
    }
}
