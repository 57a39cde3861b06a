internal import Synchronization

/// Tables in memory: for a gateway that need not remember, and for tests, which can cut the power.
package final class MemoryTables: Tables {
    private struct State {
        var rows: [Table: [[UInt8]: [UInt8]]] = [:]
        var durable: [Table: [[UInt8]: [UInt8]]] = [:]
        var failingFlushes = 0
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
    package func afterCrash() -> MemoryTables {
        let durable = state.withLock { $0.durable }
        return MemoryTables(State(rows: durable, durable: durable))
    }

    /// So many of the next flushes fail.
    package func failFlushes(_ count: Int) { state.withLock { $0.failingFlushes = count } }

    func get(_ table: Table, _ key: [UInt8]) -> [UInt8]? { state.withLock { $0.rows[table]?[key] } }

    func apply(_ changes: [TableChange]) {
        state.withLock { state in
            for change in changes {
                switch change {
                case .put(let table, let key, let value): state.rows[table, default: [:]][key] = value
                case .delete(let table, let key): state.rows[table]?[key] = nil
                }
            }
        }
    }

    func scan(
        _ table: Table, from key: [UInt8],
        _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(StoreFailure) -> Bool
    ) throws(StoreFailure) {
        let rows = state.withLock { $0.rows[table] ?? [:] }
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

    func flush() throws(StoreFailure) {
        try state.withLock { state throws(StoreFailure) in
            if state.failingFlushes > 0 {
                state.failingFlushes -= 1
                throw StoreFailure(.full, "Cannot flush the tables: no room")
            }
            if remembersFlushes { state.durable = state.rows }
        }
    }
}
