package import FerryCore

/// Rows that the journal has and the tables may not have yet. Rows of queues are also found by their order, so that a piece of
/// a long queue costs no more than one of a short queue.
package struct ControlJournal: Sendable {
    private struct Change: Sendable {
        var value: [UInt8]?
        /// The segment of the last record.
        var segment: UInt32
        /// An earlier value may have a row in the tables.
        var isInTables: Bool
        /// Told to a retirement that is not over yet.
        var isTold = false
    }

    private var changes: [ControlName: Change] = [:]
    /// Those of `changes` that belong to queues.
    private var queues = OrderedNames()
    /// Of names and values.
    package private(set) var bytes = 0

    package init() {}

    package var count: Int { changes.count }

    /// The row is on disk, in `segment`.
    package mutating func note(_ row: ControlRow, segment: UInt32) {
        let name = row.name
        let old = changes[name]
        // A queue's key is used once: what came and went within the journal never was in the tables.
        let isInTables = old.map { $0.isInTables || $0.isTold } ?? !(row.table.isQueue && row.value != nil)
        if row.value == nil, !isInTables, row.table.isQueue {
            remove(name)
            return
        }
        if old == nil, row.table.isQueue { queues.insert(name) }
        bytes += (row.value?.count ?? 0) - (old?.value?.count ?? 0) + (old == nil ? name.bytes.count : 0)
        changes[name] = Change(value: row.value, segment: segment, isInTables: isInTables)
    }

    /// The row was found in the journal at a start.
    package mutating func restore(_ row: ControlRow, segment: UInt32) {
        let name = row.name
        bytes += name.bytes.count + (row.value?.count ?? 0)
        if row.table.isQueue { queues.insert(name) }
        changes[name] = Change(value: row.value, segment: segment, isInTables: true)
    }

    private mutating func remove(_ name: ControlName) {
        guard let old = changes.removeValue(forKey: name) else { return }
        if name.isQueue { queues.remove(name) }
        bytes -= name.bytes.count + (old.value?.count ?? 0)
    }

    /// What the tables are to take over with the segment.
    package mutating func tell(upTo segment: UInt32) -> [ControlRow] {
        var rows: [ControlRow] = []
        for (name, change) in changes where change.segment <= segment {
            if let row = name.row(change.value) { rows.append(row) }
        }
        for row in rows { changes[row.name]?.isTold = true }
        return rows
    }

    /// The tables have what was told.
    package mutating func forgetTold() {
        let told = changes.filter(\.value.isTold).map(\.key)
        for name in told { remove(name) }
    }

    // MARK: - Queues

    /// A piece of a queue.
    package struct Piece: Sendable {
        package var rows: [ControlRow]
        /// Behind which key to go on; nil: there is no more.
        package var next: [UInt8]?
    }

    /// Puts what the journal knows over `found`, which the tables have behind `after` (nil: from the beginning), in the order of
    /// their keys. `isEnd`: they have no more behind those. At most `limit` rows, at least one, of about `bytes` together.
    package func over(
        _ found: [ControlRow], _ table: ControlTable, _ partition: Partition, after: [UInt8]?, isEnd: Bool, limit: Int,
        bytes: Int = .max
    ) -> Piece {
        let prefix = ControlName(table, partition, [])
        var piece = Piece(rows: [], next: isEnd ? nil : found.last?.key)
        let last = isEnd ? nil : found.last?.name
        var place = after.map { queues.place(after: ControlName(table, partition, $0)) } ?? queues.place(from: prefix)
        var index = 0
        var weight = 0
        while true {
            let own = queues.name(at: place).flatMap { name in
                name.bytes.starts(with: prefix.bytes) && !(last.map { $0 < name } ?? false) ? name : nil
            }
            let other = index < found.count ? found[index].name : nil
            guard let name = [own, other].compactMap({ $0 }).min() else { return piece }
            var row: ControlRow?
            if let own, own == name {
                row = changes[own].flatMap { $0.value == nil ? nil : own.row($0.value) }
                place = queues.next(place)
            } else {
                row = found[index]
            }
            if name == other { index += 1 }
            guard let row else { continue }
            weight += row.value?.count ?? 0
            guard piece.rows.isEmpty || (piece.rows.count < limit && weight <= bytes) else {
                piece.next = piece.rows.last?.key
                return piece
            }
            piece.rows.append(row)
        }
    }
}
