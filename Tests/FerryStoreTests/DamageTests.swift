internal import FerryCore
internal import FerryStore
internal import Testing

/// What recovery makes of a journal that is not as it was written.
struct DamageTests {
    /// A small journal in memory, and where it was whole: the state after each append with the byte at which it ends.
    private struct History {
        var fixture: Fixture
        var states: [(end: Int, state: ModelShard.State)] = []
        /// The end of what was written, appends and the empty batch of a clean close.
        var end = 0
        static let file = "journal-0000000001.seg"
    }

    private func history(appends: Int = 12, closes: Bool = false) throws -> History {
        let fixture = Fixture(segmentBytes: 16_384)
        var history = History(fixture: fixture)
        let store = try fixture.open()
        _ = store.takeRecovery()
        let shard = ModelShard(store)
        try store.start(sinks: [shard.sink])
        history.states.append((64, shard.state))
        func add(_ records: [Record]) {
            shard.append(records)
            settle(store, shard)
            let bytes = fixture.disk.contents(History.file)
            let end = (bytes.lastIndex { $0 != 0 } ?? 0) + 1
            history.states.append(((end + 7) / 8 * 8, shard.state))
        }
        add(Sample.registration(1).map { [.deviceRegistered($0)] } ?? [])
        for seq in 1...UInt64(appends) {
            switch seq % 4 {
            case 3: add([.acknowledged(cid: Sample.cid(1), upTo: Seq(seq - 2))])
            case 0: add([.settled(cid: Sample.cid(1), seq: Seq(seq - 2), state: .expired)])
            default:
                add([
                    .messageAccepted(Sample.message(1, seq: seq, payload: 9)),
                    .stubSettled(cid: Sample.cid(1), upTo: Seq(seq), outcome: .accepted),
                ])
            }
        }
        if closes { store.close() }
        let bytes = fixture.disk.contents(History.file)
        history.end = (bytes.lastIndex { $0 != 0 } ?? 0) + 1
        return history
    }

    @Test func `A journal cut at any byte holds what was whole before the cut`() throws {
        let history = try history()
        for cut in 64...history.end {
            let fixture = history.fixture.copy()
            fixture.disk.tamper(History.file) { $0.removeLast($0.count - min(cut, $0.count)) }
            let wanted = history.states.filter { $0.end <= (cut + 7) / 8 * 8 }
            // The last bytes of a batch may be padding, which is nothing to lose.
            let states = [wanted.last?.state, wanted.dropLast().last?.state].compactMap { $0 }
            let store = try fixture.open()
            try expectRecovered(store, store.takeRecovery(), isOneOf: states)
        }
    }

    @Test func `A tail of zeros is dropped up to the last whole batch`() throws {
        let history = try history()
        for cut in stride(from: 64, through: history.end, by: 3) {
            let fixture = history.fixture.copy()
            fixture.disk.tamper(History.file) { bytes in
                for index in cut..<bytes.count { bytes[index] = 0 }
            }
            let store = try fixture.open()
            let states = history.states.filter { $0.end <= cut + 16 }.suffix(2).map(\.state)
            try expectRecovered(store, store.takeRecovery(), isOneOf: states)
        }
    }

    @Test func `A flipped byte is refused, or it is in the last batch and drops that`() throws {
        let history = try history()
        let last = history.states.count - 1
        let lastStart = history.states[last - 1].end
        var refused = 0
        for index in 0..<history.end {
            let fixture = history.fixture.copy()
            fixture.disk.tamper(History.file) { $0[index] ^= 0x10 }
            do {
                let store = try fixture.open()
                let states = index < lastStart ? [history.states[last].state] : history.states.suffix(2).map(\.state)
                // Padding between batches belongs to nobody.
                try expectRecovered(store, store.takeRecovery(), isOneOf: states)
                #expect(index >= lastStart || history.states.contains { (0..<8).contains($0.end - index) })
            } catch let failure as StoreFailure {
                refused += 1
                #expect(failure.kind == .corrupted)
                #expect(failure.description.contains(History.file), "\(failure)")
                #expect(failure.description.contains("--accept-loss"), "\(failure)")
                #expect(index < lastStart, "byte \(index) of \(history.end)")
            }
        }
        #expect(refused > lastStart * 9 / 10)
    }

    @Test func `After a clean close a flipped byte in the last records is refused as well`() throws {
        let history = try history(closes: true)
        let start = history.states[history.states.count - 2].end
        let end = history.states[history.states.count - 1].end
        for index in start..<end - 8 {
            let fixture = history.fixture.copy()
            fixture.disk.tamper(History.file) { $0[index] ^= 1 }
            #expect(throws: StoreFailure.self) { try fixture.open() }
        }
    }

    @Test func `What was dropped stays dropped when the power fails again`() throws {
        let history = try history()
        let fixture = history.fixture.copy()
        let cut = history.end - 12
        fixture.disk.tamper(History.file) { bytes in
            for index in cut..<bytes.count { bytes[index] = 0xff }
        }
        let wanted = history.states[history.states.count - 2].state
        for fate in [MemoryDisk.Fate.lost, .kept, .torn(7)] {
            let again = fixture.copy()
            _ = try again.open()
            again.crash(fate)
            let store = try again.open()
            try expectRecovered(store, store.takeRecovery(), isOneOf: [wanted])
        }
    }

    @Test func `A payload that looks like the journal's own bytes is a payload`() throws {
        let fixture = Fixture(segmentBytes: 16_384)
        let store = try fixture.open()
        _ = store.takeRecovery()
        let shard = ModelShard(store)
        try store.start(sinks: [shard.sink])
        shard.append(Sample.registration(1).map { [.deviceRegistered($0)] } ?? [])
        settle(store, shard)
        // Batch headers of a high number: a copied one, and one whose checksum a sender can compute.
        let stolen = Array(fixture.disk.contents(History.file)[64..<104])
        var forged = Array(stolen[..<36])
        forged[16] = 0x7f
        forged += checksum(forged)
        let before = shard.state
        var message = Sample.message(1, seq: 1)
        for shift in 0..<8 { message.payload += stolen + forged + [UInt8](repeating: 0, count: shift) }
        shard.append([.messageAccepted(message)])
        store.step()
        let end = (fixture.disk.contents(History.file).lastIndex { $0 != 0 } ?? 0) + 1
        fixture.disk.tamper(History.file) { $0[end - 1] ^= 1 }
        fixture.crash(.kept)
        let reopened = try fixture.open()
        try expectRecovered(reopened, reopened.takeRecovery(), isOneOf: [before])
    }

    /// CRC-32, bit by bit.
    private func checksum(_ bytes: [UInt8]) -> [UInt8] {
        var sum: UInt32 = .max
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum >> 1 ^ (sum & 1 == 1 ? 0xedb8_8320 : 0) }
        }
        return [24, 16, 8, 0].map { (shift: UInt32) in UInt8(truncatingIfNeeded: ~sum >> shift) }
    }

    @Test func `A missing segment is refused by name`() throws {
        let fixture = Fixture(segmentBytes: 4096, keptSegments: 10)
        var work = RandomWork(seed: 5)
        let store = try fixture.open()
        _ = store.takeRecovery()
        let shard = ModelShard(store)
        try store.start(sinks: [shard.sink])
        while try fixture.segments().count < 4 {
            shard.append(work.records(shard.state))
            settle(store, shard)
        }
        for name in try fixture.segments().dropLast() {
            let copy = fixture.copy()
            copy.disk.remove(name)
            let failure = #expect(throws: StoreFailure.self) { try copy.open() }
            #expect(failure?.description.contains(name) == true, "\(String(describing: failure))")
        }
    }

    @Test func `Accepting the loss keeps what can be read, begins a new epoch, and opens without a word the next time`()
        throws
    {
        var salvages = 0
        for seed in 1...30 as ClosedRange<UInt64> {
            let fixture = Fixture(segmentBytes: 4096, keptSegments: 10)
            var generator = SeededGenerator(seed)
            let store = try fixture.open()
            let epoch = store.takeRecovery().epoch
            let shard = ModelShard(store)
            try store.start(sinks: [shard.sink])
            shard.append((1...4).compactMap { Sample.registration($0).map { .deviceRegistered($0) } })
            settle(store, shard)
            let registered = fixture.disk.contents(History.file).lastIndex { $0 != 0 } ?? 0
            for seq in 1...40 as ClosedRange<UInt64> {
                shard.append([.messageAccepted(Sample.message(seq % 4 + 1, seq: seq, payload: 300))])
                settle(store, shard)
            }
            let names = try fixture.segments()
            let name = names[Int.random(in: 0..<names.count - 1, using: &generator)]
            if name != History.file, seed % 7 == 0 {
                fixture.disk.remove(name)
            } else {
                let whole = seed % 5 == 0 && name != History.file
                fixture.disk.tamper(name) { bytes in
                    for _ in 0..<3 {
                        let low = name == History.file ? registered + 8 : 0
                        bytes[Int.random(in: low..<3600, using: &generator)] ^= 0x55
                    }
                    if whole { bytes.removeLast(bytes.count / 2) }
                }
            }
            fixture.crash(.lost)
            guard (try? fixture.copy().open()) == nil else { continue }
            salvages += 1
            fixture.options.salvage = true
            let salvaged = try fixture.open()
            let recovery = salvaged.takeRecovery()
            #expect(recovery.epoch != epoch)
            let before = Summary(shard.state)
            let after = Summary(recovery)
            for (cid, kept) in after.kept { #expect(kept.allSatisfy { before.kept[cid]?.contains($0) == true }) }
            let lost = before.kept.values.joined().count - after.kept.values.joined().count
            #expect(lost >= 0 && lost <= 12, "\(lost) lost")
            fixture.options.salvage = false
            fixture.crash(.lost)
            let again = try fixture.open().takeRecovery()
            #expect(again.epoch == recovery.epoch)
            #expect(Summary(again) == after)
        }
        #expect(salvages > 20, "\(salvages)")
    }
}
