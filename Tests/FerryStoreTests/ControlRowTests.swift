private import FerryCore
private import FerryStore
private import Synchronization
internal import Testing

/// Control rows through journal, retirement, tables and crashes, against a dictionary.
struct ControlRowTests {
    /// A shard that has nothing else.
    private final class RowShard {
        private let store: SteppedStore
        private let inbox = ModelShard.Inbox()
        private var journal = ControlJournal()
        private var pending: [UInt64: [ControlRow]] = [:]
        private var ticket: UInt64 = 0
        /// What is on disk.
        private(set) var synced: [ControlName: [UInt8]] = [:]
        private(set) var retired: UInt32 = 0
        private var found: (rows: [ControlRow], isEnd: Bool)?
        /// Keys that the store was asked to hold for this shard alone; nothing may remain of them in memory.
        var journalBytes: Int { journal.bytes }

        init(_ store: SteppedStore, _ recovery: Recovery, synced: [ControlName: [UInt8]]) throws {
            self.store = store
            self.synced = synced
            for (row, segment) in recovery.controlRows where segment != 0 { journal.restore(row, segment: segment) }
            let inbox = inbox
            try store.start(sinks: [{ inbox.post($0) }])
        }

        func put(_ rows: [ControlRow]) {
            ticket += 1
            var writer = ByteWriter()
            RecordCodec.append(.controlRows(rows), to: &writer)
            pending[ticket] = rows
            store.submit([.append(ticket: ticket, records: writer.bytes, highest: [])], from: 0)
        }

        func settle() {
            repeat { store.step() } while pump()
        }

        private func pump() -> Bool {
            let events = inbox.drain()
            for event in events {
                switch event {
                case .committed(let ticket, let segment, _):
                    for row in pending.removeValue(forKey: ticket) ?? [] {
                        synced[row.name] = row.value
                        journal.note(row, segment: segment)
                    }
                case .segmentRetiring(let segment):
                    var remains = SegmentRemains()
                    remains.controlRows = journal.tell(upTo: segment)
                    store.submit([.remains(segment: segment, remains, isLast: true)], from: 0)
                case .segmentRetired(let segment):
                    retired = segment
                    journal.forgetTold()
                case .controlRows(_, let rows, let isEnd): found = (rows, isEnd)
                default: break
                }
            }
            return !events.isEmpty
        }

        /// All rows of a queue, read in pieces.
        func queue(_ partition: Partition, limit: Int) -> [ControlRow] {
            var rows: [ControlRow] = []
            var after: [UInt8]?
            while true {
                store.submit([.readControl(ticket: 0, .receipt, partition, after: after, limit: limit)], from: 0)
                settle()
                guard let found else { return rows }
                self.found = nil
                let piece = journal.over(
                    found.rows, .receipt, partition, after: after, isEnd: found.isEnd, limit: limit)
                #expect(piece.rows.count <= limit)
                rows += piece.rows
                guard let next = piece.next else { return rows }
                after = next
            }
        }
    }

    private static func row(
        _ table: ControlTable, _ number: UInt64, in partition: Int = 3, value: [UInt8]?
    ) -> ControlRow {
        var key = ByteWriter()
        key.uint64(number)
        return ControlRow(table, Partition(index: partition), key: key.bytes, value: value)
    }

    @Test(arguments: Backing.allCases, [1, 2, 3, 4] as [UInt64])
    func `What was put and not taken away is found by every start, whatever went to the tables`(
        backing: Backing, seed: UInt64
    ) throws {
        var random = SeededGenerator(seed)
        let fixture = Fixture(backing, segmentBytes: 8_192, keptSegments: 1)
        var synced: [ControlName: [UInt8]] = [:]
        var nextReceipt: UInt64 = 0
        var openReceipts: [UInt64] = []
        for _ in 0..<4 {
            let store = try fixture.open()
            let recovery = store.takeRecovery()
            var found: [ControlName: [UInt8]] = [:]
            for (row, _) in recovery.controlRows where !row.table.isQueue { found[row.name] = row.value }
            #expect(found == synced.filter { $0.key.row(nil)?.table.isQueue == false })
            let shard = try RowShard(store, recovery, synced: synced)
            for round in 0..<120 as Range<UInt64> {
                var rows: [ControlRow] = []
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let value = [UInt8](repeating: UInt8(round), count: .random(in: 0...200, using: &random))
                    let key = UInt64.random(in: 0..<40, using: &random)
                    let isPut = Bool.random(using: &random)
                    rows.append(Self.row(.alias, key, value: isPut ? value : nil))
                }
                nextReceipt += 1
                openReceipts.append(nextReceipt)
                rows.append(Self.row(.receipt, nextReceipt, value: [UInt8](repeating: 7, count: 100)))
                if openReceipts.count > 20 {
                    let place = Int.random(in: 0..<openReceipts.count, using: &random)
                    rows.append(Self.row(.receipt, openReceipts.remove(at: place), value: nil))
                }
                shard.put(rows)
                if round % 3 == 0 { shard.settle() }
            }
            shard.settle()
            #expect(shard.retired > 0)
            synced = shard.synced
            let limit = Int.random(in: 1...7, using: &random)
            let queue = shard.queue(Partition(index: 3), limit: limit)
            #expect(queue.map(\.key) == openReceipts.sorted().map { Self.row(.receipt, $0, value: nil).key })
            #expect(shard.queue(Partition(index: 4), limit: limit).isEmpty)
            if backing == .memory { fixture.crash(.kept) }
        }
    }

    @Test func `A queue's row that comes and goes before its segment leaves nothing in memory`() throws {
        let fixture = Fixture()
        let store = try fixture.open()
        let shard = try RowShard(store, store.takeRecovery(), synced: [:])
        for number in 0..<100 as Range<UInt64> {
            shard.put([Self.row(.receipt, number, value: [1, 2, 3])])
            shard.settle()
            shard.put([Self.row(.receipt, number, value: nil)])
            shard.settle()
        }
        #expect(shard.journalBytes == 0)
        // Another row's end must be told to the tables all the same: they may have it.
        shard.put([Self.row(.alias, 1, value: nil)])
        shard.settle()
        #expect(shard.journalBytes > 0)
    }

    @Test func `A piece of a queue of any length is no larger than it was asked for, and all pieces are the queue`() {
        var journal = ControlJournal()
        let partition = Partition(index: 3)
        for number in (0..<3_000 as Range<UInt64>).shuffled() {
            journal.note(Self.row(.receipt, number, value: [1, 2, 3]), segment: 1)
            journal.note(Self.row(.receipt, number, in: 4, value: [4]), segment: 1)
        }
        for number in 500..<1_000 as Range<UInt64> {
            journal.note(Self.row(.receipt, number, value: nil), segment: 1)
        }
        // Of these the tables have rows, which the journal hides or replaces or lets through.
        let found = (2_900..<3_100 as Range<UInt64>).map { Self.row(.receipt, $0, value: [9]) }
        var keys: [[UInt8]] = []
        var after: [UInt8]?
        repeat {
            let rest = found.filter { row in after.map { $0.lexicographicallyPrecedes(row.key) } ?? true }
            let piece = journal.over(
                Array(rest.prefix(70)), .receipt, partition, after: after, isEnd: rest.count <= 70, limit: 70)
            #expect(piece.rows.count <= 70)
            keys += piece.rows.map(\.key)
            after = piece.next
        } while after != nil
        let expected = (0..<500).map { UInt64($0) } + (1_000..<3_100).map { UInt64($0) }
        #expect(keys == expected.map { Self.row(.receipt, $0, value: nil).key })
        // By weight as well, but never none.
        let few = journal.over([], .receipt, partition, after: nil, isEnd: true, limit: 70, bytes: 7)
        #expect(few.rows.count == 2 && few.next == few.rows.last?.key)
        #expect(journal.over([], .receipt, partition, after: nil, isEnd: true, limit: 70, bytes: 0).rows.count == 1)
        for number in 0..<3_000 as Range<UInt64> {
            if !(500..<1_000).contains(number) { journal.note(Self.row(.receipt, number, value: nil), segment: 1) }
            journal.note(Self.row(.receipt, number, in: 4, value: nil), segment: 1)
        }
        #expect(journal.bytes == 0 && journal.count == 0)
    }

    @Test func `What counts as readable is read again, and what does not is not`() {
        for (key, value) in [
            (ControlRow.keyBytes, ControlRow.valueBytes), (ControlRow.keyBytes + 1, 0), (1, ControlRow.valueBytes + 1),
        ] {
            let row = ControlRow(
                .alias, Partition(index: 1), key: [UInt8](repeating: 7, count: key),
                value: [UInt8](repeating: 8, count: value))
            var writer = ByteWriter()
            RecordCodec.append(.controlRows([row]), to: &writer)
            let read = writer.bytes.withUnsafeBytes { RecordCodec.body(of: $0).flatMap { RecordCodec.decode($0) } }
            #expect((read == .controlRows([row])) == row.isReadable)
            #expect(row.isReadable == (key == ControlRow.keyBytes))
        }
    }

    /// The disk refuses a record, and takes the next, which was asked for in the belief that the first would be there.
    @Test func `What was asked for without knowing of a refusal is refused`() throws {
        let fixture = Fixture()
        let store = try fixture.open()
        _ = store.takeRecovery()
        let inbox = ModelShard.Inbox()
        let other = ModelShard.Inbox()
        try store.start(sinks: [{ inbox.post($0) }, { other.post($0) }])
        func append(_ ticket: UInt64, knows: UInt64, from shard: Int = 0) {
            var writer = ByteWriter()
            RecordCodec.append(.controlRows([Self.row(.alias, ticket, value: [1])]), to: &writer)
            store.submit([.append(ticket: ticket, records: writer.bytes, highest: [], knows: knows)], from: shard)
        }
        func outcomes(_ inbox: ModelShard.Inbox) -> [String] {
            inbox.drain().compactMap { event in
                switch event {
                case .committed(let ticket, _, _): "\(ticket)"
                case .refused(let ticket, _): "not \(ticket)"
                default: nil
                }
            }
        }
        append(1, knows: 0)
        store.step()
        var faults = MemoryDisk.Faults()
        faults.writes = 2
        fixture.disk.inject(faults)
        append(2, knows: 0)
        append(3, knows: 0)
        store.step()
        fixture.disk.inject(MemoryDisk.Faults())
        append(4, knows: 0)
        append(5, knows: 0, from: 1)
        store.step()
        append(6, knows: 2)
        append(7, knows: 2)
        store.step()
        #expect(outcomes(inbox) == ["1", "not 2", "not 3", "not 4", "6", "7"])
        #expect(outcomes(other) == ["5"])
        fixture.crash(.lost)
        let keys = try fixture.open().takeRecovery().controlRows.map(\.row.key)
        #expect(keys == [1, 6, 7, 5].sorted().map { Self.row(.alias, $0, value: nil).key })
    }
}
