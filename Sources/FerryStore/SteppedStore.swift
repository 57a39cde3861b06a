internal import FerryCore
internal import FerryIO
internal import Synchronization

/// The embedded store without its threads: nothing happens until `step`, and then everything in the same order each
/// time. For simulation and tests.
package final class SteppedStore: MessageStore {
    private let options: StoreOptions
    private let inboxes: StoreInboxes
    private let life: Mutex<Life>

    private struct Life {
        var opened: FolderOpening.Opened?
        var recovery: Recovery?
        var workers: StoreWorkers?
    }

    /// Opens a folder of the file system.
    package static func open(_ options: StoreOptions) throws(StoreFailure) -> SteppedStore {
        SteppedStore(options, try StoreInboxes(), try FolderOpening.files(options))
    }

    /// Opens what `disk` and `tables` hold.
    package static func inMemory(
        _ options: StoreOptions, disk: MemoryDisk, tables: MemoryTables
    ) throws(StoreFailure) -> SteppedStore {
        SteppedStore(options, try StoreInboxes(), try FolderOpening.memory(options, disk, tables))
    }

    private init(_ options: StoreOptions, _ inboxes: StoreInboxes, _ found: (FolderOpening.Opened, Recovery)) {
        self.options = options
        self.inboxes = inboxes
        life = Mutex(Life(opened: found.0, recovery: found.1))
    }

    package func takeRecovery() -> Recovery {
        life.withLock { life in
            guard let recovery = life.recovery.take() else { preconditionFailure("The recovery was taken before") }
            return recovery
        }
    }

    package func start(sinks: [@Sendable ([StoreEvent]) -> Void]) throws {
        life.withLock { life in
            guard let opened = life.opened.take() else { preconditionFailure("The store was started or closed before") }
            life.workers = StoreWorkers(opened, inboxes, options: options, sinks: sinks)
        }
    }

    package func submit(_ requests: [StoreRequest], from shard: Int) { inboxes.submit(requests, from: shard) }

    /// The workers that get a turn.
    package struct Workers: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        package static let journal = Workers(rawValue: 1)
        package static let tables = Workers(rawValue: 2)
        package static let reader = Workers(rawValue: 4)
        package static let all: Workers = [.journal, .tables, .reader]
    }

    /// One turn of each of these. Sinks are called before it returns; they may submit, not step.
    package func step(_ workers: Workers = .all) {
        life.withLock { life in
            if workers.contains(.journal) { _ = life.workers?.journal.step() }
            if workers.contains(.tables) { _ = life.workers?.tables.step() }
            if workers.contains(.reader) { _ = life.workers?.reader.step() }
        }
    }

    /// Finishes what was submitted; without it, dropping the store is a crash.
    package func close() {
        inboxes.journal.post(.stop)
        step()
        life.withLock { $0 = Life() }
    }
}
