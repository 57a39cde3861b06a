internal import FerryCore
internal import FerryIO
internal import FerryStats
@testable internal import FerryStore
internal import Testing

/// The timeline log gives way to what is promised.
struct TimelineRoomTests {
    private let device = TimelineFixture.device(1)

    private static let reserve = 1 << 20

    /// A log of some files on a disk that has the reserve left and not much more.
    private func filled(_ backing: TimelineBacking) async throws -> TimelineFixture {
        let log = TimelineFixture(backing)
        log.options.reservedBytes = Self.reserve
        log.disk.capacity = 4 << 20
        try log.open()
        log.note([.wentOffline], of: device)
        log.fill(1_300)
        _ = try await log.ask(device)
        #expect(try log.logs().count >= 3)
        return log
    }

    /// Others take so much that the reserve is not there any more.
    private func squeeze(_ log: TimelineFixture, missing: Int) throws {
        log.disk.capacity = try log.bytes() + Self.reserve - missing
        log.clock.advance(.seconds(1))
    }

    @Test func `Old facts go as soon as others take the disk's reserve, not with the next file`() async throws {
        let log = try await filled(.steppedMemory)
        let count = try log.logs().count
        try squeeze(log, missing: 1_000)
        log.note([.wentOffline], of: device)
        #expect(try log.logs().count == count - 1)
        #expect(try #require(log.disk.freeBytes()) >= Self.reserve)
        let coverage = try await log.ask(device).coverage
        #expect(coverage.hasAgedOut && coverage.factsLost == 0)
        #expect(log.reports.all.isEmpty)
    }

    @Test func `The file that is written goes too when nothing else is left to give`() async throws {
        let log = try await filled(.steppedMemory)
        try squeeze(log, missing: 1 << 20)
        log.note([.wentOffline], of: device)
        #expect(try log.logs().isEmpty)
        #expect(try await log.ask(device).coverage.factsLost == 1)
        #expect(log.reports.all.map(\.kind) == [.full])
        log.disk.capacity = 4 << 20
        log.clock.advance(.seconds(1))
        log.note([.noToken(upTo: Seq(1))], of: device)
        #expect(try await log.facts(of: device) == [.noToken(upTo: Seq(1))])
    }

    @Test func `A log to which nothing is noted gives way as well`() async throws {
        let log = try await filled(.threadsMemory)
        try squeeze(log, missing: 1 << 20)
        let deadline = ContinuousClock.now + .seconds(20)
        while try !log.logs().isEmpty, ContinuousClock.now < deadline { await Task.yield() }
        #expect(try log.logs().isEmpty)
    }

    @Test(arguments: [TimelineBacking.steppedMemory, .steppedFiles])
    func `A file that cannot be read costs its facts, and nothing is written over`(
        backing: TimelineBacking
    ) async throws {
        let log = TimelineFixture(backing)
        try log.open()
        log.note([.wentOffline], of: device)
        log.fill(1_300)
        log.close()
        var before: [String: [UInt8]] = [:]
        for name in try log.logs() { try log.tamper(name) { before[name] = $0 } }
        var faults = MemoryDisk.Faults()
        faults.reads = 1
        log.disk.inject(faults)
        if backing == .steppedFiles { try log.block(TimelineFormat.name(0)) }
        try log.open()
        for index in 0..<5 { log.note([.noToken(upTo: Seq(UInt64(index)))], of: device) }
        let answer = try await log.ask(device, .task(Identifier128(high: 2, low: 7)))
        #expect(answer.coverage.isPartial)
        #expect(try await log.facts(of: device).suffix(5) == (0..<5).map { .noToken(upTo: Seq($0)) })
        for (name, bytes) in before {
            try log.tamper(name) { #expect($0.starts(with: bytes), "\(name)") }
        }
        #expect(log.reports.all.count == 1)
    }

    @Test func `A file that was put in the way of the next is not written over`() async throws {
        let log = TimelineFixture()
        try log.open()
        log.note([.wentOffline], of: device)
        let name = TimelineFormat.name(2)
        try log.disk.create(name, bytes: 0).write([1, 2, 3], at: 0)
        log.fill(700)
        _ = try await log.ask(device)
        #expect(log.disk.contents(name) == [1, 2, 3])
        #expect(try log.logs().count > 2)
    }
}
