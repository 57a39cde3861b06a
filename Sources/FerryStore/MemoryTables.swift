internal import Synchronization

/// Tables in memory: for a gateway that need not remember, and for tests, which can cut the power.
package final class MemoryTables: Tables {
    private struct State {
        var rows: [Table: [[UInt8]: [UInt8]]] = [:]
        var durable: [Table: [[UInt8]: [UInt8]]] = [:]
        /// What was applied since the last flush, in order.
        var unflushed: [[TableChange]] = []
        var faults = Faults()

        mutating func apply(_ changes: [TableChange]) {
            for change in changes {
                switch change {
                case .put(let table, let key, let value): rows[table, default: [:]][key] = value
                case .delete(let table, let key): rows[table]?[key] = nil
                }
            }
        }
    }

    /// Test controls.
    package struct Faults: Sendable {
        /// So many of the next flushes fail.
        package var flushes = 0
        /// After so many changes were applied, all others fail.
        package var appliesBefore = Int.max
        /// Each change is durable at once, as when the engine flushes by itself at a bad time.
        package var flushesByItself = false
        /// So many of the next look-ups fail.
        package var gets = 0
        /// Nothing can be applied or flushed until they are opened again.
        package var isBroken = false
        /// So many of the next scans fail, each at its first row.
        package var scans = 0
        package init() {}
    }

    private let state: Mutex<State>
    private let remembersFlushes: Bool

    /// With `remembersFlushes`, the rows also exist as they were at the last flush, for `afterCrash`.
    package init(remembersFlushes: Bool = true) {
        self.remembersFlushes = remembersFlushes
        state = Mutex(State())
    }

    private init(_ state: State) {
        remembersFlushes = true
        self.state = Mutex(state)
    }

    /// The tables that a machine finds after its power was cut now.
    /// - Parameter kept: so many of the changes since the last flush had reached the disk by themselves.
    package func afterCrash(keeping kept: Int = 0) -> MemoryTables {
        let (durable, unflushed) = state.withLock { ($0.durable, $0.unflushed) }
        var after = State(rows: durable)
        for changes in unflushed.prefix(max(0, kept)) { after.apply(changes) }
        after.durable = after.rows
        return MemoryTables(after)
    }

    /// Changes that were applied since the last flush.
    package var unflushedCount: Int { state.withLock { $0.unflushed.count } }

    package func inject(_ faults: Faults) { state.withLock { $0.faults = faults } }

    func get(_ table: Table, _ key: [UInt8]) throws(StoreFailure) -> [UInt8]? {
        try state.withLock { state throws(StoreFailure) in
            guard state.faults.gets == 0 else {
                state.faults.gets -= 1
                throw StoreFailure(.disk, "The tables cannot be read")
            }
            return state.rows[table]?[key]
        }
    }

    func apply(_ changes: [TableChange]) throws(StoreFailure) {
        try state.withLock { state throws(StoreFailure) in
            guard !state.faults.isBroken else { throw Self.broken }
            guard state.faults.appliesBefore > 0 else { throw Self.noRoom }
            if state.faults.appliesBefore < .max { state.faults.appliesBefore -= 1 }
            state.apply(changes)
            if remembersFlushes { state.unflushed.append(changes) }
            if state.faults.flushesByItself {
                state.durable = state.rows
                state.unflushed = []
            }
        }
    }

    func scan(
        _ table: Table, from key: [UInt8],
        _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(StoreFailure) -> Bool
    ) throws(StoreFailure) {
        let rows = try state.withLock { state throws(StoreFailure) in
            guard state.faults.scans == 0 else {
                state.faults.scans -= 1
                throw StoreFailure(.disk, "The tables cannot be read")
            }
            return state.rows[table] ?? [:]
        }
        for (rowKey, value) in rows.filter({ !$0.key.lexicographicallyPrecedes(key) })
            .sorted(by: { $0.key.lexicographicallyPrecedes($1.key) })
        {
            var goesOn = true
            try rowKey.lend { keyBytes throws(StoreFailure) in
                try value.lend { valueBytes throws(StoreFailure) in goesOn = try visit(keyBytes, valueBytes) }
            }
            if !goesOn { return }
        }
    }

    func reopen() {
        state.withLock { state in
            state.faults.isBroken = false
            if remembersFlushes { state.rows = state.durable }
        }
    }

    private static let broken = StoreFailure(.disk, "Cannot write the tables: broken")
    private static let noRoom = StoreFailure(.full, "Cannot write the tables: no room")

    func flush() throws(StoreFailure) {
        try state.withLock { state throws(StoreFailure) in
            guard !state.faults.isBroken else { throw Self.broken }
            if state.faults.flushes > 0 {
                state.faults.flushes -= 1
                throw Self.noRoom
            }
            guard remembersFlushes else { return }
            state.durable = state.rows
            state.unflushed = []
        }
    }
}
