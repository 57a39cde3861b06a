internal import Synchronization

/// Tables in memory: for a gateway that need not remember, and for tests, which can cut the power.
package final class MemoryTables: Tables {
    private struct State {
        var rows: [Table: [[UInt8]: [UInt8]]] = [:]
        /// Writes that failed though the disk may hold them, in order, since the last that did not fail.
        var inDoubt: [TableWrite] = []
        var faults = Faults()

        mutating func apply(_ write: TableWrite) {
            write.visit { key, value in
                guard let table = key.first.flatMap({ Table(rawValue: $0) }) else { return }
                rows[table, default: [:]][Array(key.dropFirst())] = value.map { [UInt8]($0) }
            }
        }
    }

    /// Test controls.
    package struct Faults: Sendable {
        /// So many of the next writes fail, and a crash may find them all the same.
        package var writesInDoubt = 0
        /// After so many writes, all others fail.
        package var writesBefore = Int.max
        /// So many of the next look-ups fail.
        package var gets = 0
        /// Nothing can be written until they are opened again.
        package var isBroken = false
        /// So many of the next scans fail, each at its first row.
        package var scans = 0
        /// They say that they are behind.
        package var isBehind = false
        package init() {}
    }

    private let state: Mutex<State>

    package init() { state = Mutex(State()) }

    private init(_ state: State) { self.state = Mutex(state) }

    /// The tables that a machine finds after its power was cut now.
    /// - Parameter kept: so many of the writes in doubt had reached the disk.
    package func afterCrash(keeping kept: Int = 0) -> MemoryTables {
        var after = state.withLock { State(rows: $0.rows, inDoubt: $0.inDoubt) }
        for write in after.inDoubt.prefix(max(0, kept)) { after.apply(write) }
        after.inDoubt = []
        return MemoryTables(after)
    }

    package var inDoubtCount: Int { state.withLock { $0.inDoubt.count } }

    package func inject(_ faults: Faults) { state.withLock { $0.faults = faults } }

    var isBehind: Bool { state.withLock { $0.faults.isBehind } }

    func get(_ table: Table, _ key: [UInt8]) throws(StoreFailure) -> [UInt8]? {
        try state.withLock { state throws(StoreFailure) in
            guard state.faults.gets == 0 else {
                state.faults.gets -= 1
                throw StoreFailure(.disk, "The tables cannot be read")
            }
            return state.rows[table]?[key]
        }
    }

    func write(_ rows: TableWrite) throws(StoreFailure) {
        try state.withLock { state throws(StoreFailure) in
            guard !state.faults.isBroken else { throw Self.broken }
            guard state.faults.writesBefore > 0 else { throw Self.noRoom }
            guard state.faults.writesInDoubt == 0 else {
                state.faults.writesInDoubt -= 1
                state.inDoubt.append(rows)
                throw Self.noRoom
            }
            if state.faults.writesBefore < .max { state.faults.writesBefore -= 1 }
            state.apply(rows)
            state.inDoubt = []
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
            for write in state.inDoubt { state.apply(write) }
            state.inDoubt = []
        }
    }

    private static let broken = StoreFailure(.disk, "Cannot write the tables: broken")
    private static let noRoom = StoreFailure(.full, "Cannot write the tables: no room")
}
