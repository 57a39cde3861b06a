internal import FerryCore
internal import FerryStats
internal import FerryStore
internal import Foundation
internal import Synchronization

/// Which log, on which disk.
enum TimelineBacking: CaseIterable, Sendable {
    case steppedMemory, steppedFiles, threadsMemory, threadsFiles

    var isStepped: Bool { self == .steppedMemory || self == .steppedFiles }
    var isMemory: Bool { self == .steppedMemory || self == .threadsMemory }
}

/// A folder to open timelines in, one after the other.
final class TimelineFixture {
    let backing: TimelineBacking
    var options: TimelineOptions
    var disk = MemoryDisk()
    let clock = ManualClock()
    let reports = Reports()
    let path: String
    private var log: (any Timeline)?

    init(_ backing: TimelineBacking = .steppedMemory, bytes: Int = 1 << 20) {
        self.backing = backing
        path = NSTemporaryDirectory() + "/ferry-timeline-" + UUID().uuidString
        let clock = clock
        options = TimelineOptions(clock: { clock.now })
        options.bytes = bytes
        let reports = reports
        options.report = { reports.add($0) }
    }

    deinit {
        log?.close()
        try? FileManager.default.removeItem(atPath: path)
    }

    func open() throws {
        let disk: any Disk = backing.isMemory ? self.disk : try FileDisk(folder: path)
        log = backing.isStepped ? SteppedTimeline(options, disk: disk) : try EmbeddedTimeline(options, disk: disk)
    }

    func close() {
        log?.close()
        log = nil
    }

    /// As the end of the process would.
    func kill() { log = nil }

    func note(_ facts: [Fact], of device: CID) {
        var writer = FactWriter()
        for fact in facts { writer.append(fact, of: device, at: clock.now) }
        log?.note(writer.take(), count: facts.count)
    }

    /// Many small chunks of devices that come up once only.
    func fill(_ count: Int) {
        for index in 0..<count {
            note(
                [.stubAnswered(.own, upTo: Seq(UInt64(index)), .refused(String(repeating: "x", count: 100)))],
                of: Self.device(1_000_000 + index))
        }
    }

    static func device(_ number: Int) -> CID { CID(Identifier128(high: 77, low: UInt64(number))) }

    static func accepted(_ seq: UInt64, at time: Instant) -> Fact {
        .accepted(
            Acceptance(
                seq: Seq(seq), messageID: MessageID(Identifier128(high: 1, low: seq)),
                taskID: TaskID(Identifier128(high: 2, low: seq), monthDay: 101, kind: .single), acceptedAt: time,
                expiresAt: time + .seconds(60), payloadBytes: 1, wasOnline: true, hasOwnAlert: false, stub: .none))
    }

    func ask(
        _ device: CID, _ target: TimelineTarget? = nil, limit: Int = 1_000
    ) async throws -> (facts: [TimedFact], coverage: TimelineCoverage) {
        guard let log else { throw CancellationError() }
        let outcome = await withCheckedContinuation { continuation in
            log.ask(TimelineQuestion(device: device, target: target, limit: limit)) {
                continuation.resume(returning: $0)
            }
        }
        guard case .answered(let facts, let coverage) = outcome else { throw CancellationError() }
        return (facts, coverage)
    }

    func refuseQuestions() { log?.refuseQuestions() }

    /// Whether a question is answered that there is no answer now.
    func isBusy(asked device: CID) async -> Bool {
        let outcome = await withCheckedContinuation { (continuation: CheckedContinuation<TimelineOutcome?, Never>) in
            guard let log else { return continuation.resume(returning: nil) }
            log.ask(TimelineQuestion(device: device, target: nil, limit: 1)) { continuation.resume(returning: $0) }
        }
        if case .busy? = outcome { return true }
        return false
    }

    /// Only what is not the gateway's.
    func facts(of device: CID, _ target: TimelineTarget? = nil, limit: Int = 1_000) async throws -> [Fact] {
        try await ask(device, target, limit: limit).facts.map(\.fact).filter { fact in
            switch fact {
            case .started, .stopped, .factsLost: false
            default: true
            }
        }
    }

    func names() throws -> [String] {
        let names = backing.isMemory ? disk.list() : try FileManager.default.contentsOfDirectory(atPath: path)
        return names.filter { $0.hasPrefix("facts-") }.sorted()
    }

    func bytes() throws -> Int {
        try names().reduce(0) { sum, name in
            let size =
                backing.isMemory
                ? disk.contents(name).count : try Data(contentsOf: URL(fileURLWithPath: path + "/" + name)).count
            return sum + size
        }
    }

    func logs() throws -> [String] { try names().filter { $0.hasSuffix(".log") } }

    func remove(_ name: String) throws {
        if backing.isMemory {
            disk.remove(name)
        } else {
            try FileManager.default.removeItem(atPath: path + "/" + name)
        }
    }

    func tamper(_ name: String, _ change: (inout [UInt8]) -> Void) throws {
        if backing.isMemory {
            disk.tamper(name, change)
        } else {
            let url = URL(fileURLWithPath: path + "/" + name)
            var bytes = [UInt8](try Data(contentsOf: url))
            change(&bytes)
            try Data(bytes).write(to: url)
        }
    }
}
