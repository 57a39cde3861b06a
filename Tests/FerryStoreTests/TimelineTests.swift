internal import FerryCore
internal import FerryIO
internal import FerryStats
@testable internal import FerryStore
internal import Testing

/// The timeline log: each test for every implementation, in memory and on files.
struct TimelineTests {
    private let device = TimelineFixture.device(1)
    private let other = TimelineFixture.device(2)
    private let some: [Fact] = [.tokenChanged(hasToken: true), .wentOffline, .noToken(upTo: Seq(5))]

    @Test(arguments: TimelineBacking.allCases)
    func `A device's facts come back in order, and nobody else's`(backing: TimelineBacking) async throws {
        let log = TimelineFixture(backing)
        try log.open()
        log.note([some[0]], of: device)
        log.note([.acknowledged(upTo: Seq(9))], of: other)
        log.clock.advance(.milliseconds(7))
        log.note([some[1], some[2]], of: device)
        let answer = try await log.ask(device)
        #expect(answer.facts.map(\.fact) == [.started] + some)
        #expect(answer.facts.map { $0.at.milliseconds } == [1_000_000, 1_000_000, 1_000_007, 1_000_007])
        #expect(answer.coverage.from == Instant(milliseconds: 1_000_000))
        #expect(!answer.coverage.hasAgedOut && !answer.coverage.hasMore && answer.coverage.factsLost == 0)
        #expect(try await log.facts(of: TimelineFixture.device(3)) == [])
        #expect(log.reports.all.isEmpty)
    }

    @Test(arguments: TimelineBacking.allCases)
    func `A stop and a start lose nothing and are told`(backing: TimelineBacking) async throws {
        let log = TimelineFixture(backing)
        try log.open()
        log.note([some[0]], of: device)
        log.close()
        try log.open()
        log.note([some[1]], of: device)
        let facts = try await log.ask(device).facts.map(\.fact)
        #expect(facts == [.started, some[0], .stopped, .started, some[1]])
        #expect(try log.logs().count == 1)
        #expect(log.reports.all.isEmpty)
    }

    @Test func `A log that is to stop answers no more questions`() async throws {
        let log = TimelineFixture(.threadsMemory)
        try log.open()
        log.note(some, of: device)
        log.refuseQuestions()
        #expect(await log.isBusy(asked: device))
    }

    @Test(arguments: TimelineBacking.allCases)
    func `Files stay within their budget, the oldest go, and the answer says so`(backing: TimelineBacking) async throws
    {
        let log = TimelineFixture(backing)
        try log.open()
        log.note(some, of: device)
        for _ in 0..<14 {
            log.fill(700)
            _ = try await log.ask(other)
            #expect(try log.bytes() <= log.options.bytes)
        }
        #expect(try await log.facts(of: device) == [])
        let coverage = try await log.ask(device).coverage
        #expect(coverage.hasAgedOut)
        #expect(try log.logs().count > 4)
        log.note(some, of: device)
        #expect(try await log.facts(of: device) == some)
        log.close()
        try log.open()
        #expect(try await log.ask(other).coverage.hasAgedOut)
    }

    @Test(arguments: TimelineBacking.allCases)
    func `Facts stay for the stated time and go soon after it`(backing: TimelineBacking) async throws {
        let log = TimelineFixture(backing)
        log.options.age = .seconds(3_600)
        try log.open()
        log.note(some, of: device)
        _ = try await log.ask(device)
        log.clock.advance(.seconds(3_599))
        log.note([.wentOffline], of: other)
        #expect(try await log.facts(of: device) == some)
        #expect(try await log.ask(device).coverage.hasAgedOut == false)
        log.clock.advance(.seconds(3_599))
        #expect(try await log.facts(of: device) == [])
        #expect(try await log.facts(of: other) == [.wentOffline])
        #expect(try await log.ask(device).coverage.hasAgedOut)
        #expect(try await log.ask(device).coverage.from == Instant(milliseconds: 1_000_000 + 3_599_000))
        log.clock.advance(.seconds(3_700))
        #expect(try await log.facts(of: other) == [])
    }

    @Test(arguments: TimelineBacking.allCases)
    func `A question reads only files that may hold the device`(backing: TimelineBacking) async throws {
        let log = TimelineFixture(backing)
        try log.open()
        log.note([some[0]], of: device)
        log.fill(1_300)
        log.note([some[1]], of: device)
        log.fill(1_300)
        #expect(try await log.facts(of: device) == Array(some[..<2]))
        let logs = try log.logs()
        #expect(logs.count >= 5)
        // Every file between is broken beyond reading; one that is not read is not missed.
        let touched = logs[1..<(logs.count - 1)]
        for name in touched { try log.tamper(name) { bytes in for index in 32..<bytes.count { bytes[index] = 0xff } } }
        #expect(try await log.facts(of: other) == [])
        let sidecars = try log.names().filter { $0.hasSuffix(".filter") }
        #expect(sidecars.count == logs.count - 1)
        #expect(log.reports.all.isEmpty)
    }

    @Test(arguments: TimelineBacking.allCases)
    func `A missing or damaged filter is no reason to miss anything`(backing: TimelineBacking) async throws {
        let log = TimelineFixture(backing)
        try log.open()
        log.note(some, of: device)
        log.fill(2_000)
        #expect(try await log.facts(of: device) == some)
        let sidecars = try log.names().filter { $0.hasSuffix(".filter") }
        for name in sidecars { try log.remove(name) }
        #expect(try await log.facts(of: device) == some)
        #expect(try log.names().filter { $0.hasSuffix(".filter") } == sidecars)
        for change: (inout [UInt8]) -> Void in [
            { $0 = Array(repeating: 0, count: $0.count) }, { $0.removeLast(13) }, { $0 = [] },
        ] {
            for name in sidecars { try log.tamper(name, change) }
            #expect(try await log.facts(of: device) == some)
        }
    }

    @Test(arguments: TimelineBacking.allCases)
    func `An answer is bounded, and says that there is more`(backing: TimelineBacking) async throws {
        let log = TimelineFixture(backing)
        try log.open()
        for seq in 0..<500 { log.note([.noToken(upTo: Seq(UInt64(seq)))], of: device) }
        let last = try await log.ask(device, limit: 10)
        #expect(last.facts.map(\.fact) == (490..<500).map { .noToken(upTo: Seq(UInt64($0))) })
        #expect(last.coverage.hasMore)
        #expect(try await log.ask(device, limit: 600).coverage.hasMore == false)
    }

    @Test(arguments: TimelineBacking.allCases)
    func `A message is found by its id and by its task, behind much else of its device`(
        backing: TimelineBacking
    ) async throws {
        let log = TimelineFixture(backing, bytes: 8 << 20)
        try log.open()
        for seq in 1...3_000 { log.note([TimelineFixture.accepted(UInt64(seq), at: log.clock.now)], of: device) }
        log.note([.acknowledged(upTo: Seq(20))], of: device)
        for target in [
            TimelineTarget.message(MessageID(Identifier128(high: 1, low: 7))), .task(Identifier128(high: 2, low: 7)),
        ] {
            let facts = try await log.facts(of: device, target, limit: 50)
            #expect(facts == [TimelineFixture.accepted(7, at: log.clock.now), .acknowledged(upTo: Seq(20))])
        }
    }

    @Test(arguments: [TimelineBacking.steppedMemory, .steppedFiles])
    func `A tail cut anywhere is dropped without a word, and the log goes on`(backing: TimelineBacking) async throws {
        let log = TimelineFixture(backing)
        try log.open()
        log.note([some[0]], of: device)
        log.note([some[1]], of: device)
        log.kill()
        let name = try #require(try log.logs().first)
        var whole: [UInt8] = []
        try log.tamper(name) { whole = $0 }
        for length in stride(from: whole.count - 1, through: 0, by: -1) {
            try log.tamper(name) { $0 = Array(whole[..<length]) }
            try log.open()
            log.note([some[2]], of: device)
            let facts = try await log.facts(of: device)
            let isPrefix = [[some[2]], [some[0], some[2]]].contains(facts)
            #expect(isPrefix, "cut at \(length): \(facts)")
            log.kill()
            for name in try log.logs() { try log.remove(name) }
            try Self.put(whole, name, log)
        }
        #expect(log.reports.all.isEmpty)
    }

    private static func put(_ bytes: [UInt8], _ name: String, _ log: TimelineFixture) throws {
        let disk: any Disk = log.backing.isMemory ? log.disk : try FileDisk(folder: log.path)
        try disk.create(name, bytes: 0).write(bytes, at: 0)
    }

    @Test(arguments: [TimelineBacking.steppedMemory, .steppedFiles])
    func `A damaged byte costs its block and no other`(backing: TimelineBacking) async throws {
        let log = TimelineFixture(backing)
        try log.open()
        let all: [Fact] = (0..<4).map { .noToken(upTo: Seq($0)) }
        for fact in all { log.note([fact], of: device) }
        let name = try #require(try log.logs().first)
        var whole: [UInt8] = []
        try log.tamper(name) { whole = $0 }
        for index in TimelineFormat.headerBytes..<whole.count {
            try log.tamper(name) {
                $0 = whole; $0[index] ^= 0x5a
            }
            let facts = try await log.facts(of: device)
            #expect(facts.count >= all.count - 1, "byte \(index)")
            #expect(facts == all.filter { facts.contains($0) })
        }
        #expect(log.reports.all.count == 1)
        #expect(log.reports.all[0].kind == .corrupted)
    }

    @Test(arguments: [MemoryDisk.Fate.lost, .kept, .torn(3), .torn(4), .torn(5)])
    func `After a power cut what was synced is there, and the log goes on`(fate: MemoryDisk.Fate) async throws {
        let log = TimelineFixture()
        let disk = log.disk
        let stepped = SteppedTimeline(log.options, disk: disk)
        var writer = FactWriter()
        writer.append(some[0], of: device, at: log.clock.now)
        stepped.note(writer.take(), count: 1)
        stepped.sync()
        writer.append(some[1], of: device, at: log.clock.now)
        stepped.note(writer.take(), count: 1)
        log.disk = disk.afterCrash(fate)
        try log.open()
        log.note([some[2]], of: device)
        let facts = try await log.facts(of: device)
        #expect([[some[0], some[2]], some].contains(facts), "\(facts)")
        #expect(log.reports.all.isEmpty)
    }

    @Test(arguments: [TimelineBacking.steppedMemory, .threadsMemory])
    func `What a failing disk refuses is lost, counted, and told once`(backing: TimelineBacking) async throws {
        let log = TimelineFixture(backing)
        try log.open()
        log.note([some[0]], of: device)
        _ = try await log.ask(device)
        var faults = MemoryDisk.Faults()
        faults.writes = 2
        faults.code = ErrorNumber.noSpace
        log.disk.inject(faults)
        log.note([some[1], some[1]], of: device)
        _ = try await log.ask(device)
        log.note([some[1]], of: device)
        _ = try await log.ask(device)
        log.note([some[2]], of: device)
        _ = try await log.ask(device)
        log.note([some[2]], of: device)
        let answer = try await log.ask(device)
        #expect(answer.coverage.factsLost == 3)
        #expect(answer.facts.map(\.fact).contains(.factsLost(3)))
        #expect(try await log.facts(of: device) == [some[0], some[2], some[2]])
        #expect(log.reports.all.count == 1)
        #expect(log.reports.all[0].kind == .full)
    }

    @Test func `Room that the journal may need is not taken, and old facts go first`() async throws {
        let log = TimelineFixture(.steppedFiles)
        try log.open()
        log.note(some, of: device)
        log.kill()
        log.options.reservedBytes = 1 << 60
        try log.open()
        log.clock.advance(.seconds(3_600))
        log.note([.wentOffline], of: other)
        let answer = try await log.ask(device)
        #expect(answer.facts.isEmpty && answer.coverage.hasAgedOut && answer.coverage.factsLost > 0)
        #expect(try log.names().isEmpty)
        #expect(log.reports.all.map(\.kind) == [.full])
        log.kill()
    }

    @Test func `What waits for a slow disk is bounded; beyond, facts are lost and counted`() async throws {
        let log = TimelineFixture(.threadsMemory)
        log.options.pendingBytes = 1_000
        try log.open()
        for _ in 0..<2_000 { log.note(some, of: device) }
        let answer = try await log.ask(device, limit: 10_000)
        log.note([.wentOffline], of: device)
        let lost = try await log.ask(device, limit: 10_000).coverage.factsLost
        #expect(lost > 0)
        let found = try await log.facts(of: device, limit: 10_000)
        #expect(UInt64(found.count) + lost == 6_001)
        #expect(answer.facts.count < 6_000)
    }

    @Test func `Only so many questions wait`() async throws {
        let log = TimelineFixture(.threadsMemory)
        log.options.openQuestions = 0
        try log.open()
        await #expect(throws: CancellationError.self) { try await log.ask(device) }
    }

    @Test func `A filter says yes for what is there, and seldom for what is not`() throws {
        var filter = DeviceFilter(fileBytes: 1 << 20)
        let count = (1 << 20) / 64
        for number in 0..<count { filter.insert(TimelineFixture.device(number)) }
        let bytes = filter.encoded()
        func mayHold(_ number: Int) throws -> Bool {
            let device = TimelineFixture.device(number)
            let offset = try #require(DeviceFilter.offset(of: device, fileBytes: bytes.count))
            return DeviceFilter.mayHold(device, block: Array(bytes[offset..<offset + 64]), at: offset)
        }
        for number in stride(from: 0, to: count, by: 7) { #expect(try mayHold(number)) }
        let wrong = try (count..<count + 5_000).filter { try mayHold($0) }.count
        #expect(wrong < 150, "\(wrong) of 5000")
    }
}
