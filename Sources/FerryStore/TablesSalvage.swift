internal import FerryCore
internal import FerryIO

/// Makes new tables of what can be read of damaged ones. What lies in a block whose check sum is wrong is lost, with what of
/// other blocks has its place between the keys of that one: an older row must not come back for it.
struct TablesSalvage {
    let disk: any Disk
    let options: StoreOptions

    static let name = "tables"
    private static let rebuilt = "tables.rebuilt"
    private static let damaged = "tables.damaged"
    private static let bytesPerWrite = 64 << 20

    /// Does nothing where the tables can be read as a whole. Tables that the engine cannot even open are refused.
    func run(_ format: FolderFormat) throws(StoreFailure) {
        let names = try self.names()
        if !names.contains(Self.name), names.contains(Self.rebuilt) {
            // An earlier run came to its last step.
            return try rename(Self.rebuilt, to: Self.name)
        }
        guard names.contains(Self.name) else { return }
        if names.contains(Self.rebuilt) { try RocksTables.destroy(folder: path(Self.rebuilt)) }
        guard let (lost, first) = try rebuild(names) else { return }
        // The new epoch before the first trace of the damage goes.
        _ = try JournalSalvage(disk: disk, format: format).run(from: first, hasLostTables: true)
        let number = (2...).first { !names.contains("\(Self.damaged)-\($0)") } ?? 2
        let kept = names.contains(Self.damaged) ? "\(Self.damaged)-\(number)" : Self.damaged
        try rename(Self.name, to: kept)
        try rename(Self.rebuilt, to: Self.name)
        options.report(
            StoreFailure(
                .corrupted,
                "What lay in \(lost) places of the tables cannot be read and is lost; the rest was written anew, and the "
                    + "damaged tables are kept in \(path(kept))"))
    }

    /// In how many places rows are lost, and the first segment whose effects the new tables lack; nil when none are.
    private func rebuild(_ names: [String]) throws(StoreFailure) -> (lost: Int, firstSegment: UInt32)? {
        let damaged = try RocksTables(
            folder: path(Self.name), cacheBytes: options.cacheBytes, openFiles: options.tableFiles, isReadOnly: true)
        guard try damaged.readAround({ _, _, _ in }) > 0 else { return nil }
        let fresh = try RocksTables(
            folder: path(Self.rebuilt), cacheBytes: options.cacheBytes, openFiles: options.tableFiles)
        var rows = TableWrite()
        let lost = try damaged.readAround { table, key, value throws(StoreFailure) in
            rows.put(table, key: key, value: value)
            guard rows.bytes >= Self.bytesPerWrite else { return }
            try fresh.write(rows)
            rows = TableWrite()
        }
        try fresh.write(rows)
        var meta = try TablesMeta.read(from: fresh)
        if meta == nil {
            // The row was among what is lost: every segment that is there is read.
            var known = TablesMeta()
            known.firstSegment = names.compactMap { SegmentHeader.segment(fileName: $0) }.min() ?? known.firstSegment
            var row = TableWrite()
            known.put(into: &row)
            try fresh.write(row)
            meta = known
        }
        return (lost, meta?.firstSegment ?? 1)
    }

    private func path(_ name: String) -> String { "\(disk.folder)/\(name)" }

    private func names() throws(StoreFailure) -> [String] {
        do throws(SystemError) { return try disk.list() } catch { throw StoreFailure(error) }
    }

    private func rename(_ name: String, to target: String) throws(StoreFailure) {
        do throws(SystemError) {
            try disk.rename(name, to: target)
            try disk.syncDirectory()
        } catch {
            throw StoreFailure(error)
        }
    }
}

extension RocksTables {
    /// Visits every row that can be read, in the order of tables and keys, and goes on behind what cannot. Answers in how many
    /// places that was.
    func readAround(
        _ visit: (_ table: Table, _ key: [UInt8], _ value: [UInt8]) throws(StoreFailure) -> Void
    ) throws(StoreFailure) -> Int {
        let database = try database()
        var places = 0
        var start = KeyNumber([])
        while true {
            let cursor = RocksCursor(database)
            var last = start
            var isThere = cursor.seek(start.key)
            while isThere {
                let key = cursor.key
                last = KeyNumber(key)
                if let table = key.first.flatMap({ Table(rawValue: $0) }) {
                    try visit(table, Array(key.dropFirst()), cursor.value)
                }
                isThere = cursor.next()
            }
            guard let failure = cursor.failure() else { return places }
            guard failure.kind == .corrupted else { throw failure }
            places += 1
            guard let next = Self.firstReadable(after: last, database) else { return places }
            start = next
        }
    }

    /// Where reading can go on after `bad`, behind which it cannot: steps that double until one is beyond the damage, and
    /// then halves back to its very end. nil: nothing more can be read.
    private static func firstReadable(after bad: KeyNumber, _ database: RocksDatabase) -> KeyNumber? {
        func isReadable(_ number: KeyNumber) -> Bool {
            let cursor = RocksCursor(database)
            return cursor.seek(number.key) || cursor.failure() == nil
        }
        var low = bad
        var step = 0
        var high: KeyNumber?
        while high == nil {
            guard step < KeyNumber.bytes * 8, let candidate = bad.adding(bit: step) else { return nil }
            if isReadable(candidate) { high = candidate } else { low = candidate }
            step += 1
        }
        guard var high else { return nil }
        while true {
            let middle = low.middle(to: high)
            if middle == low { return high }
            if isReadable(middle) { high = middle } else { low = middle }
        }
    }
}
