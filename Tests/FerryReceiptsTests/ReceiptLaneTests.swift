internal import FerryCore
internal import FerryReceipts
private import FerryTestSupport
internal import Testing

/// A lane beside a disk that forgets nothing and a channel that answers when it likes.
@Suite struct ReceiptLaneTests {
    /// The lane, the rows on disk, and what a naive reader would say of them.
    private struct World: Hashable {
        var lane = ReceiptLane()
        var disk: [UInt64: [UInt8]] = [:]
        var record = ReceiptLaneRecord()
        /// Asked to be written, in order.
        var writing: [[ReceiptEntry]] = []
        var reading: UInt64?
        var outgoing: [ReceiptEntry] = []
        var made: UInt64 = 0
        var told: [UInt64] = []
        var lost: UInt64 = 0

        static let limit: UInt64 = 8 * 18

        /// A receipt whose number is its time.
        static func row(_ number: UInt64) -> [UInt8] {
            Receipt.presence(
                PresenceChange(
                    cid: CID(Identifier128(high: 0, low: number)), isOnline: true,
                    at: Instant(milliseconds: Int64(number)), session: number)
            ).bytes
        }

        static func number(_ entry: ReceiptEntry) -> UInt64 {
            Receipt(entry.row).map { UInt64($0.at.milliseconds) } ?? 0
        }

        mutating func add(_ count: UInt64, limit: UInt64) {
            let rows = (1...count).map { Self.row(made + $0) }
            made += count
            let (added, dropped) = lane.add(rows, limit: limit)
            lost += count - UInt64(added.count) + UInt64(dropped.count)
            for number in dropped { disk[number] = nil }
            if !added.isEmpty { writing.append(added) }
        }

        mutating func sync() {
            guard !writing.isEmpty else { return }
            let entries = writing.removeFirst()
            for entry in entries { disk[entry.number] = entry.row }
            record = lane.record
            lane.synced(entries)
        }

        mutating func refuse(limit: UInt64) {
            guard !writing.isEmpty else { return }
            let entries = writing.removeFirst()
            lane.refused(entries)
            let (added, dropped) = lane.add(entries.map(\.row), limit: limit)
            lost += UInt64(entries.count - added.count + dropped.count)
            for number in dropped { disk[number] = nil }
            if !added.isEmpty { writing.append(added) }
        }

        mutating func pump() {
            let (entries, dropped) = lane.nextBatch(oldest: .distantPast)
            for number in dropped { disk[number] = nil }
            lost += UInt64(dropped.count)
            if !entries.isEmpty { outgoing = entries }
            if let after = lane.startReading() { reading = after }
            record = lane.record
        }

        mutating func read(limit: Int) {
            guard let after = reading else { return }
            reading = nil
            let all = disk.keys.filter { $0 > after }.sorted()
            let part = all.prefix(limit)
            lane.read(
                part.map { ReceiptEntry(number: $0, row: disk[$0] ?? []) },
                upTo: part.count == all.count ? nil : part.last)
            record = lane.record
        }

        mutating func answer(_ progress: ReceiptProgress) {
            guard !outgoing.isEmpty else { return }
            if progress == .taken {
                told += outgoing.map(Self.number)
            } else {
                lost += UInt64(outgoing.count)
            }
            for number in lane.finished(progress) { disk[number] = nil }
            outgoing = []
            record = lane.record
        }

        /// What is not on disk is gone; the gateway starts again.
        mutating func crash() {
            lost += writing.reduce(0) { $0 + UInt64($1.count) }
            writing = []
            reading = nil
            outgoing = []
            lane = ReceiptLane(restoring: record)
        }

        func check() throws(Violation) {
            if let first = disk.keys.min() {
                try Violation.unless(record.first <= first, "a restart would begin behind receipt \(first)")
            }
            try Violation.unless(record.next > disk.keys.max() ?? 0, "a number would be given again")
        }

        /// Lets everything go out.
        mutating func drain() {
            while !writing.isEmpty { sync() }
            for _ in 0..<10_000 {
                pump()
                read(limit: 2)
                answer(.taken)
                if disk.isEmpty, lane.isEmpty { return }
            }
        }
    }

    @Test func `whatever happens in whatever order, no receipt that is on disk stays there`() {
        var random = SplitMix(seed: 1)
        for seed in Effort.seeds(400) {
            var world = World()
            random = SplitMix(seed: seed)
            let limit: UInt64 = seed % 3 == 0 ? 200 : 1 << 20
            for step in 0..<200 {
                switch Int.random(in: 0..<9, using: &random) {
                case 0, 1: world.add(UInt64.random(in: 1...5, using: &random), limit: limit)
                case 2, 3: world.sync()
                case 4: world.pump()
                case 5: world.read(limit: Int.random(in: 1...4, using: &random))
                case 6: world.answer(.taken)
                case 7: if Bool.random(using: &random) { world.refuse(limit: limit) } else { world.answer(.tooOld) }
                default: if step % 7 == 0 { world.crash() }
                }
                do throws(Violation) { try world.check() } catch {
                    Issue.record("seed \(seed), step \(step): \(error)")
                }
            }
            world.drain()
            #expect(world.disk.isEmpty && world.lane.isEmpty, "seed \(seed)")
            // Every receipt was told or is known as lost; repeats come from crashes only.
            #expect(Set(world.told).count + Int(world.lost) >= Int(world.made), "seed \(seed)")
            #expect(world.lane.record.count == 0 && world.lane.record.bytes == 0)
            #expect(world.lane.memoryBytes == 0)
        }
    }

    @Test func `without crashes and refusals each receipt is told once, in order`() {
        for seed in Effort.seeds(200) {
            var world = World()
            var random = SplitMix(seed: seed)
            for _ in 0..<200 {
                switch Int.random(in: 0..<6, using: &random) {
                case 0, 1: world.add(UInt64.random(in: 1...5, using: &random), limit: 1 << 20)
                case 2: world.sync()
                case 3: world.pump()
                case 4: world.read(limit: Int.random(in: 1...4, using: &random))
                default: world.answer(.taken)
                }
            }
            world.drain()
            #expect(world.told == Array(1...max(1, world.made)), "seed \(seed)")
        }
    }

    @Test func `memory holds a window, and the rest comes from the disk in order`() {
        var world = World()
        let row = World.row(1).count
        let count = UInt64(3 * ReceiptPolicy.readyBytes / row)
        while world.made < count { world.add(1_000, limit: 1 << 30) }
        while !world.writing.isEmpty { world.sync() }
        #expect(world.lane.memoryBytes <= ReceiptPolicy.readyBytes)
        var most = 0
        while !world.lane.isEmpty {
            world.pump()
            world.read(limit: 500)
            most = max(most, world.lane.memoryBytes)
            world.answer(.taken)
        }
        #expect(world.told == Array(1...world.made))
        #expect(most <= ReceiptPolicy.readBytes + ReceiptPolicy.batchBytes)
    }

    @Test func `a full lane gives up its oldest, counts them, and keeps to its limit`() {
        var world = World()
        let row = UInt64(World.row(1).count)
        for _ in 0..<50 {
            world.add(4, limit: row * 10)
            world.sync()
            #expect(world.lane.record.bytes <= row * 10)
        }
        #expect(world.lane.record.dropped == 190)
        world.drain()
        #expect(world.told == Array(191...200))
    }

    @Test func `a look at the disk that finds only what is gone goes on behind it`() {
        var lane = ReceiptLane()
        let rows = (1...40_000).map { World.row($0) }
        lane.synced(lane.add(rows, limit: 1 << 30).added)
        while !lane.nextBatch(oldest: .distantPast).entries.isEmpty { _ = lane.finished(.taken) }
        let first = lane.startReading()
        lane.read([], upTo: first.map { $0 + 10 })
        #expect(lane.startReading() == first.map { $0 + 10 })
        lane.read([], upTo: nil)
        #expect(lane.startReading() == nil && lane.isEmpty)
    }

    @Test func `what is too old does not go out`() {
        var world = World()
        world.add(10, limit: 1 << 20)
        world.sync()
        let (entries, dropped) = world.lane.nextBatch(oldest: Instant(milliseconds: 6))
        #expect(entries.map(World.number) == Array(6...10))
        #expect(dropped == Array(1...5) && world.lane.record.dropped == 5)
    }

    @Test func `a batch is bounded in lines and in bytes`() {
        var world = World()
        world.add(3_000, limit: 1 << 30)
        world.sync()
        #expect(world.lane.nextBatch(oldest: .distantPast).entries.count == ReceiptPolicy.batchLines)
        var wide = ReceiptLane()
        let name = MessageName(
            taskID: TaskID(Identifier128(high: 1, low: 1), monthDay: 101, kind: .single),
            messageID: MessageID(Identifier128(high: 1, low: 1)),
            callback: [UInt8](repeating: 0x61, count: MessageName.callbackBytes))
        let row = Receipt.ended(
            EndedMessage(
                cid: CID(Identifier128(high: 1, low: 1)), name: name, reason: .acknowledged, at: .distantFuture)
        ).bytes
        wide.synced(wide.add(Array(repeating: row, count: 60), limit: 1 << 30).added)
        let bytes = wide.nextBatch(oldest: .distantPast).entries.reduce(0) { $0 + $1.row.count }
        #expect(bytes <= ReceiptPolicy.batchBytes && bytes > ReceiptPolicy.batchBytes - row.count)
    }

    @Test func `a row that cannot be read is dropped instead of holding up the rest`() {
        var lane = ReceiptLane()
        lane.synced(lane.add([[1, 2, 3], World.row(2)], limit: 1 << 20).added)
        let (entries, dropped) = lane.nextBatch(oldest: .distantPast)
        #expect(entries.map(\.number) == [2] && dropped == [1])
    }

    @Test func `a lane's record is read as it was written, and no part of it is one`() {
        var lane = ReceiptLane()
        lane.synced(lane.add([World.row(1), World.row(2)], limit: 1 << 20).added)
        lane.delayed(failures: 3, until: Instant(milliseconds: 77))
        let bytes = lane.record.encoded
        #expect(ReceiptLaneRecord(bytes) == lane.record)
        for count in 0..<bytes.count { #expect(ReceiptLaneRecord(Array(bytes.prefix(count))) == nil) }
        #expect(ReceiptLaneRecord(bytes + [0]) == nil)
    }
}
