internal import FerryCore
internal import FerryIO
internal import FerryStats
@testable internal import FerryStore
internal import Testing

/// The timeline log gives way to what is promised.
struct TimelineRoomTests {
    private let device = TimelineFixture.device(1)

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
