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
        if !isRetired { faults.appliesBefore = 1 }
        fixture.tables.inject(faults)
        store.step()
        store.step()
        fixture.crash(.kept, keeping: .max)
        let recovery = try fixture.open().takeRecovery()
        let device = try #require(recovery.devices.first { $0.record.cid == first.cid })
        #expect(device.kept.map(\.seq) == (isRetired ? [] : [Seq(1)]))
        #expect((device.record.gap?.count ?? 0) == (isRetired ? 1 : 0))
    }

    private func append(_ records: [Record], _ store: SteppedStore) {
        var writer = ByteWriter()
        for record in records { RecordCodec.append(record, to: &writer) }
        store.submit([.append(ticket: 1, records: writer.bytes, highest: [])], from: 0)
        store.step()
    }
}
