internal import FerryCore
internal import FerryStore
internal import Foundation
internal import Synchronization

/// The two ways in which the suite runs.
enum Backing: CaseIterable {
    case memory, files
}

/// A folder to open stores in, one after the other.
final class Fixture {
    let backing: Backing
    var options: StoreOptions
    private(set) var disk = MemoryDisk()
    private(set) var tables = MemoryTables()
    let clock: ManualClock
    let reports = Reports()
    let path: String

    init(_ backing: Backing = .memory, segmentBytes: Int = 65_536, keptSegments: Int = 2) {
        self.backing = backing
        path = NSTemporaryDirectory() + "/ferry-store-" + UUID().uuidString
        let clock = ManualClock()
        self.clock = clock
        options = StoreOptions(folder: path, clock: { clock.now })
        options.segmentBytes = segmentBytes
        options.keptSegments = keptSegments
        options.cacheBytes = 1 << 20
        let reports = reports
        options.report = { reports.add($0) }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func open() throws -> SteppedStore {
        switch backing {
        case .memory: try SteppedStore.inMemory(options, disk: disk, tables: tables)
        case .files: try SteppedStore.open(options)
        }
    }

    /// Cuts the power (memory alone). So many writes of the tables that failed are on disk all the same.
    func crash(_ fate: MemoryDisk.Fate, keeping changes: Int = 0) {
        disk = disk.afterCrash(fate)
        tables = tables.afterCrash(keeping: changes)
    }

    /// The same folder once more, so that a test can try several fates.
    func copy(_ fate: MemoryDisk.Fate = .kept) -> Fixture {
        let copy = Fixture(backing)
        copy.options = options
        copy.disk = disk.afterCrash(fate)
        copy.tables = tables.afterCrash()
        return copy
    }

    func segments() throws -> [String] {
        let names =
            switch backing {
            case .memory: disk.list()
            case .files: try FileManager.default.contentsOfDirectory(atPath: path)
            }
        return names.filter { $0.hasSuffix(".seg") }.sorted()
    }
}

final class ManualClock: Sendable {
    private let milliseconds = Atomic<Int64>(1_000_000)
    var now: Instant { Instant(milliseconds: milliseconds.load(ordering: .relaxed)) }
    func advance(_ duration: Duration) { milliseconds.add(duration.inMilliseconds, ordering: .relaxed) }
}

final class Reports: Sendable {
    private let failures = Mutex<[StoreFailure]>([])
    func add(_ failure: StoreFailure) { failures.withLock { $0.append(failure) } }
    var all: [StoreFailure] { failures.withLock { $0 } }
}

/// A generator whose numbers depend on the seed alone.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 &+ 1 }
    mutating func next() -> UInt64 {
        state = state &+ 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
