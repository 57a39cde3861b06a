internal import FerryCore
internal import FerryIO
internal import Synchronization

/// The store of a single gateway: a journal in front, tables behind, and three threads that nobody waits for.
package final class EmbeddedStore: MessageStore {
    private let options: StoreOptions
    private let inboxes: StoreInboxes
    private let life: Mutex<Life>

    private struct Threads: ~Copyable {
        var journal: OSThread
        var tables: OSThread
        var reader: OSThread

        consuming func join() {
            journal.join()
            tables.join()
            reader.join()
        }
    }

    private struct Life: ~Copyable {
        /// Until `start`.
        var opened: FolderOpening.Opened?
        /// Until it is taken.
        var recovery: Recovery?
        var threads: Threads?
    }

    /// Opens the folder, or makes it; answers when everything that it holds is known.
    package static func open(_ options: StoreOptions) throws(StoreFailure) -> EmbeddedStore {
        EmbeddedStore(options, try StoreInboxes(), try FolderOpening.files(options))
    }

    /// Opens a store that lives in memory, on what `disk` and `tables` hold already.
    package static func inMemory(
        _ options: StoreOptions, disk: MemoryDisk = MemoryDisk(remembersSyncs: false),
        tables: MemoryTables = MemoryTables()
    ) throws(StoreFailure) -> EmbeddedStore {
        EmbeddedStore(options, try StoreInboxes(), try FolderOpening.memory(options, disk, tables))
    }

    private init(_ options: StoreOptions, _ inboxes: StoreInboxes, _ found: (FolderOpening.Opened, Recovery)) {
        self.options = options
        self.inboxes = inboxes
        life = Mutex(Life(opened: found.0, recovery: found.1, threads: nil))
    }

    package func takeRecovery() -> Recovery {
        life.withLock { life in
            guard let recovery = life.recovery.take() else { preconditionFailure("The recovery was taken before") }
            return recovery
        }
    }

    package func start(sinks: [@Sendable ([StoreEvent]) -> Void]) throws {
        try life.withLock { life throws(SystemError) in
            guard let opened = life.opened.take() else { preconditionFailure("The store was started or closed before") }
            let workers = StoreWorkers(opened, inboxes, options: options, sinks: sinks)
            let report = options.report
            life.threads = Threads(
                journal: try Self.thread("store-journal", report) { () throws(SystemError) in
                    var worker = workers.journal
                    try worker.run()
                },
                tables: try Self.thread("store-tables", report) { () throws(SystemError) in
                    OSThread.giveWay()
                    var worker = workers.tables
                    try worker.run()
                },
                reader: try Self.thread("store-reader", report) { () throws(SystemError) in
                    try workers.reader.run()
                })
        }
    }

    private static func thread(
        _ name: String, _ report: @escaping @Sendable (StoreFailure) -> Void,
        _ body: @escaping @Sendable () throws(SystemError) -> Void
    ) throws(SystemError) -> OSThread {
        try OSThread(name: name) {
            do throws(SystemError) { try body() } catch { report(StoreFailure(error)) }
        }
    }

    package func submit(_ requests: [StoreRequest], from shard: Int) { inboxes.submit(requests, from: shard) }

    package func close() {
        // Only what the disk refuses to decide is given up.
        inboxes.closing.set()
        inboxes.journal.post(.stop)
        inboxes.reader.post(.stop)
        let threads = life.withLock { life in
            life.opened = nil
            return life.threads.take()
        }
        if let threads { threads.join() }
    }
}
