internal import FerryCore
internal import FerryStore
internal import Testing

/// The store's answers, the same for memory and files.
struct StoreTests {
    private func started(_ fixture: Fixture) throws -> (SteppedStore, ModelShard) {
        let store = try fixture.open()
        let shard = ModelShard(store)
        shard.adopt(store.takeRecovery(), messages: [])
        try store.start(sinks: [shard.sink])
        return (store, shard)
    }

    private func register(_ numbers: ClosedRange<UInt64>) -> [Record] {
        numbers.compactMap { Sample.registration($0).map { .deviceRegistered($0) } }
    }

    @Test(arguments: Backing.allCases)
    func `What was appended is read back, in the order of the references, nil for what is not there`(
        backing: Backing
    ) throws {
        let (store, shard) = try started(Fixture(backing))
        shard.append(register(1...2))
        for seq in 1...UInt64(5) { shard.append([.messageAccepted(Sample.message(seq % 2 + 1, seq: seq))]) }
        settle(store, shard)
        _ = shard.takeAnswers()
        var references = Array(shard.references.reversed())
        references.append(
            MessageReference(
                cid: Sample.cid(9), seq: Seq(1), location: RecordLocation(segment: 0, offset: 0, length: 0)))
        shard.read(references, ticket: 77)
        settle(store, shard)
        guard case .messages(77, let messages)? = shard.takeAnswers().last else {
            Issue.record("no answer")
            return
        }
        #expect(messages.map(\.?.seq) == references.dropLast().map(\.seq) + [nil])
        #expect(messages.first??.payload == Sample.message(2, seq: 5).payload)
    }

    @Test(arguments: Backing.allCases)
    func `Appends of several shards are answered in order, each to its shard`(backing: Backing) throws {
        let fixture = Fixture(backing)
        fixture.options.batchPieces = 4
        let store = try fixture.open()
        _ = store.takeRecovery()
        let shards = (0..<3).map { ModelShard(store, shard: $0) }
        try store.start(sinks: shards.map(\.sink))
        for round in 1...11 as ClosedRange<UInt64> {
            for shard in shards { shard.append(register(round...round)) }
        }
        settle(store, shards[0], shards[1], shards[2])
        var places: Set<UInt32> = []
        for shard in shards {
            let tickets = shard.takeAnswers().compactMap { event -> UInt64? in
                guard case .committed(let ticket, _, let offset) = event else { return nil }
                places.insert(offset)
                return ticket
            }
            #expect(tickets == Array(1...11))
        }
        #expect(places.count == 33)
    }

    @Test func `An append larger than a batch and than a segment goes alone`() throws {
        let fixture = Fixture(segmentBytes: 8192)
        fixture.options.batchBytes = 1000
        let (store, shard) = try started(fixture)
        shard.append(register(1...1))
        shard.append([.messageAccepted(Sample.message(1, seq: 1, payload: 20_000))])
        shard.append([.messageAccepted(Sample.message(1, seq: 2))])
        settle(store, shard)
        #expect(shard.unanswered.isEmpty)
        fixture.crash(.lost)
        let reopened = try fixture.open()
        try expectRecovered(reopened, reopened.takeRecovery(), isOneOf: [shard.state])
    }

    @Test(arguments: Backing.allCases)
    func `A device of the tables is loaded, an unknown one is not`(backing: Backing) throws {
        let fixture = Fixture(backing, segmentBytes: 4096, keptSegments: 0)
        let (store, shard) = try started(fixture)
        shard.append(register(1...3))
        while shard.retired.isEmpty {
            shard.append([.deviceSeen(cid: Sample.cid(3), at: Instant(milliseconds: 9_000))])
            settle(store, shard)
        }
        for number in [1, 9] as [UInt64] {
            shard.load(Sample.cid(number))
            settle(store, shard)
            guard case .device(let cid, let record)? = shard.takeAnswers().last else {
                Issue.record("no answer")
                return
            }
            #expect(cid == Sample.cid(number))
            #expect(record == shard.state.devices[cid]?.record)
        }
    }

    @Test(arguments: Backing.allCases)
    func `A segment retires when enough later ones are sealed, and what is kept of it moves to the tables`(
        backing: Backing
    ) throws {
        let fixture = Fixture(backing, segmentBytes: 4096, keptSegments: 2)
        let (store, shard) = try started(fixture)
        shard.append(register(1...3))
        var seq: UInt64 = 0
        while shard.retired.count < 3 {
            seq += 1
            shard.append([.messageAccepted(Sample.message(seq % 3 + 1, seq: seq, payload: 200))])
            settle(store, shard)
        }
        #expect(shard.retired == [1, 2, 3])
        #expect(try fixture.segments().count == 3)
        _ = shard.takeAnswers()
        let references = shard.references
        shard.read(references)
        settle(store, shard)
        guard case .messages(_, let messages)? = shard.takeAnswers().last else {
            Issue.record("no answer")
            return
        }
        #expect(messages.map(\.?.seq) == references.map(\.seq))
        #expect(messages.compactMap { $0 }.map(\.payload).allSatisfy { $0.count == 200 })
    }

    @Test(arguments: Backing.allCases)
    func `What is acknowledged while its segment retires does not come back`(backing: Backing) throws {
        let fixture = Fixture(backing, segmentBytes: 4096, keptSegments: 0)
        let (store, shard) = try started(fixture)
        shard.append(register(1...2))
        var seq: UInt64 = 0
        while shard.takeAnswers().allSatisfy({ if case .segmentRetiring = $0 { false } else { true } }) {
            shard.holdsRemains = true
            seq += 1
            shard.append([.messageAccepted(Sample.message(1, seq: seq, payload: 100))])
            settle(store, shard)
        }
        // The remains name the message, then it ends: its row must not outlive the forgetting that overtook it.
        let first = Seq(1)
        shard.giveRemains(1)
        shard.append([.acknowledged(cid: Sample.cid(1), upTo: first)])
        settle(store, shard)
        #expect(shard.retired == [1])
        store.close()
        let found = try fixture.open().takeRecovery().devices.flatMap(\.kept).map(\.seq)
        #expect(!found.isEmpty && !found.contains(first))
    }

    @Test(arguments: Backing.allCases)
    func `A gap that only the tables tell of is recovered until it is acknowledged`(backing: Backing) throws {
        let fixture = Fixture(backing, segmentBytes: 4096, keptSegments: 0)
        var (store, shard) = try started(fixture)
        shard.append(register(1...2))
        shard.append([.messageAccepted(Sample.message(1, seq: 1)), .messageAccepted(Sample.message(1, seq: 2))])
        shard.append([.settled(cid: Sample.cid(1), seq: Seq(2), state: .overflowed)])
        shard.append([.settled(cid: Sample.cid(1), seq: Seq(1), state: .expired)])
        func retire(_ count: Int) {
            while shard.retired.count < count {
                shard.append([.deviceSeen(cid: Sample.cid(2), at: Instant(milliseconds: 9_000))])
                settle(store, shard)
            }
        }
        func reopen() throws -> RecoveredDevice? {
            store.close()
            store = try fixture.open()
            let recovery = store.takeRecovery()
            shard = ModelShard(store)
            shard.adopt(recovery, messages: [])
            try store.start(sinks: [shard.sink])
            return recovery.devices.first { $0.record.cid == Sample.cid(1) }
        }
        retire(2)
        let device = try reopen()
        #expect(device?.record.gap == Gap(upTo: Seq(2), expired: 1, overflowed: 1))
        #expect(device?.kept.isEmpty == true && device?.firstChangedSegment == nil)
        shard.append([.acknowledged(cid: Sample.cid(1), upTo: Seq(2))])
        shard.append(register(2...2))
        retire(2)
        #expect(try reopen() == nil)
    }

    @Test func `A retirement that fails is tried again until it works, and nothing is missing meanwhile`() throws {
        let fixture = Fixture(segmentBytes: 4096, keptSegments: 0)
        let (store, shard) = try started(fixture)
        var faults = MemoryTables.Faults()
        faults.writesInDoubt = 3
        fixture.tables.inject(faults)
        var work = RandomWork(seed: 3)
        while fixture.reports.all.count < 3 {
            shard.append(work.records(shard.state))
            settle(store, shard)
            let copy = fixture.copy(.lost)
            let reopened = try copy.open()
            try expectRecovered(reopened, reopened.takeRecovery(), isOneOf: [shard.state])
        }
        settle(store, shard)
        #expect(shard.retired.first == 1)
        fixture.crash(.lost)
        let reopened = try fixture.open()
        try expectRecovered(reopened, reopened.takeRecovery(), isOneOf: [shard.state])
    }

    @Test func `A retirement waits while the tables are behind, and is made up for when they are not`() throws {
        let fixture = Fixture(segmentBytes: 4096, keptSegments: 0)
        let (store, shard) = try started(fixture)
        var faults = MemoryTables.Faults()
        faults.isBehind = true
        fixture.tables.inject(faults)
        var work = RandomWork(seed: 5)
        for _ in 0..<80 {
            shard.append(work.records(shard.state))
            settle(store, shard)
        }
        #expect(shard.retired.isEmpty)
        fixture.tables.inject(MemoryTables.Faults())
        for _ in 0..<8 { settle(store, shard) }
        #expect(shard.retired.count > 2)
        #expect(fixture.reports.all.isEmpty)
        fixture.crash(.lost)
        let reopened = try fixture.open()
        try expectRecovered(reopened, reopened.takeRecovery(), isOneOf: [shard.state])
    }

    /// An engine whose merging has failed for good stays behind for ever: segments stayed, and nobody was told.
    @Test func `Tables that do not stop being behind are written after a minute, and it is reported`() throws {
        let fixture = Fixture(segmentBytes: 4096, keptSegments: 0)
        let (store, shard) = try started(fixture)
        var faults = MemoryTables.Faults()
        faults.isBehind = true
        fixture.tables.inject(faults)
        var work = RandomWork(seed: 6)
        for _ in 0..<60 {
            shard.append(work.records(shard.state))
            settle(store, shard)
        }
        #expect(shard.retired.isEmpty)
        #expect(fixture.reports.all.isEmpty)
        fixture.clock.advance(.seconds(60))
        settle(store, shard)
        #expect(shard.retired == [1])
        #expect(fixture.reports.all.contains { $0.description.contains("have not been merged for 60 seconds") })
        settle(store, shard)
        #expect(shard.retired == [1], "the next one waits as long")
    }

    /// RocksDB takes no write after an error of the file system until it is opened again, and forgets what it had not flushed.
    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `Tables that give up are opened again, and what was deleted in them stays deleted`(seed: UInt64) throws {
        let fixture = Fixture(segmentBytes: 4096, keptSegments: 0)
        let (store, shard) = try started(fixture)
        var work = RandomWork(seed: seed)
        for turn in 0..<150 {
            if turn % 11 == 3 {
                var faults = MemoryTables.Faults()
                faults.isBroken = true
                fixture.tables.inject(faults)
            }
            shard.append(work.records(shard.state))
            for _ in 0...turn % 4 { settle(store, shard) }
        }
        for _ in 0..<8 { settle(store, shard) }
        #expect(shard.retired.count > 2)
        #expect(fixture.reports.all.count >= 2)
        fixture.crash(.lost)
        let reopened = try fixture.open()
        try expectRecovered(reopened, reopened.takeRecovery(), isOneOf: [shard.state])
    }

    @Test func `Request ids past their window and expired revocations leave the tables`() throws {
        let fixture = Fixture(segmentBytes: 4096, keptSegments: 0)
        fixture.options.requestWindow = .seconds(60)
        let (store, shard) = try started(fixture)
        let start = fixture.clock.now
        shard.append(register(1...1))
        let key = RequestKey(key: Identifier128(high: 1, low: 1), content: Identifier128(high: 2, low: 2))
        shard.append([
            .messageAccepted(Sample.message(1, seq: 1, at: start.milliseconds, request: key)),
            .apiTokenRevoked(digest: [1], expiresAt: start + .seconds(30)),
        ])
        func retireOne() {
            let count = shard.retired.count
            while shard.retired.count == count {
                shard.append([.deviceSeen(cid: Sample.cid(1), at: fixture.clock.now)])
                settle(store, shard)
            }
        }
        func recovered() throws -> Recovery { try fixture.copy().open().takeRecovery() }
        retireOne()
        #expect(try recovered().requests.map(\.key) == [key.key])
        #expect(try recovered().revokedTokens.map(\.digest) == [[1]])
        fixture.clock.advance(.seconds(31))
        retireOne()
        #expect(try recovered().revokedTokens.isEmpty)
        #expect(try recovered().requests.count == 1)
        fixture.clock.advance(.seconds(31))
        retireOne()
        #expect(try recovered().requests.isEmpty)
        #expect(try recovered().lastTime == fixture.clock.now)
    }
}
