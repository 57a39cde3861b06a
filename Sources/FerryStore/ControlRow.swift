package import FerryCore

/// What a control row is about. The numbers stay; those from `firstQueue` on are queues.
package enum ControlTable: UInt8, CaseIterable, Sendable {
    /// Names of devices that backends gave them, at the owner of the app.
    case alias = 1
    /// What is known of a device beside its stream, at the device's owner.
    case profile = 2
    /// Tasks with stored content that their senders stopped, at the owner of the app.
    case stoppedTask = 3
    /// Sums for reports, in any partition of the shard that counts.
    case counters = 4
    /// How many were online, by time.
    case curve = 5
    /// Calls for a later time, at the owner of the app.
    case schedule = 40
    /// What is kept of each lane of receipts beside them.
    case receiptLane = 6
    /// What is known of a task whose content is stored once, at the owner of the app.
    case listTask = 20
    /// A push to an audience that not all shards have fixed, at the owner of the app.
    case tagCall = 21
    /// Targets of such a push in one partition; and how many of them have it.
    case tagAudience = 22
    case tagCursor = 23
    /// How far a shard is with waking owners for a push to all, in any of its partitions.
    case broadcastWake = 50
    /// Receipts that no endpoint has taken yet.
    case receipt = 200
    /// The content of such a task, at the owner of the app.
    case listContent = 201

    private static let firstQueue: UInt8 = 128

    /// A queue's rows are not read at a start but when their turn comes, and a key is used for one row only.
    package var isQueue: Bool { rawValue >= Self.firstQueue }
}

/// A row of what changes seldom: put, replaced or taken away as a whole. Whoever keeps such rows decides what is in them; the
/// value should begin with a version.
package struct ControlRow: Equatable, Sendable {
    /// Its owner's.
    package var partition: Partition
    package var table: ControlTable
    /// At most `keyBytes`.
    package var key: [UInt8]
    /// At most `valueBytes`; nil takes the row away.
    package var value: [UInt8]?

    package static let keyBytes = 512
    package static let valueBytes = 1 << 20

    package init(_ table: ControlTable, _ partition: Partition, key: [UInt8], value: [UInt8]?) {
        self.partition = partition
        self.table = table
        self.key = key
        self.value = value
    }

    package var name: ControlName { ControlName(table, partition, key) }
}

/// Under what a control row lies in the tables: the table, the partition, the row's own key.
package struct ControlName: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ table: ControlTable, _ partition: Partition, _ key: [UInt8]) {
        let index = UInt16(truncatingIfNeeded: partition.index)
        bytes = [table.rawValue, UInt8(index >> 8), UInt8(index & 0xff)] + key
    }

    /// nil when it is the name of no row of this version.
    init?(_ bytes: UnsafeRawBufferPointer) {
        self.init([UInt8](bytes))
    }

    private init?(_ bytes: [UInt8]) {
        self.bytes = bytes
        guard bytes.count >= Self.headBytes, bytes.count <= Self.headBytes + ControlRow.keyBytes,
            ControlTable(rawValue: bytes[0]) != nil, partitionIndex < Limits.partitions
        else { return nil }
    }

    private static let headBytes = 3
    private var partitionIndex: Int { Int(bytes[1]) << 8 | Int(bytes[2]) }

    /// The row with this name.
    package func row(_ value: [UInt8]?) -> ControlRow? {
        ControlTable(rawValue: bytes[0]).map { table in
            ControlRow(
                table, Partition(index: partitionIndex), key: Array(bytes.dropFirst(Self.headBytes)), value: value)
        }
    }

    var isQueue: Bool { ControlTable(rawValue: bytes[0])?.isQueue == true }
}

extension ByteWriter {
    mutating func controlRows(_ rows: [ControlRow]) {
        varint(UInt64(rows.count))
        for row in rows {
            string(row.name.bytes)
            byte(row.value == nil ? 0 : 1)
            if let value = row.value { string(value) }
        }
    }
}

extension ByteReader {
    mutating func controlRows() -> [ControlRow]? {
        // A row has three bytes at least, so a false count reserves nothing.
        guard let count = varint(), count <= UInt64(remaining) else { return nil }
        var rows: [ControlRow] = []
        for _ in 0..<count {
            guard let name = string(limit: remaining).flatMap({ ControlName($0) }), let isThere = byte(), isThere <= 1
            else { return nil }
            var value: [UInt8]?
            if isThere == 1 {
                guard let bytes = string(limit: min(remaining, ControlRow.valueBytes)) else { return nil }
                value = [UInt8](bytes)
            }
            guard let row = name.row(value) else { return nil }
            rows.append(row)
        }
        return rows
    }
}

/// Rows that the journal has and the tables may not have yet.
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
        bytes += (row.value?.count ?? 0) - (old?.value?.count ?? 0) + (old == nil ? name.bytes.count : 0)
        changes[name] = Change(value: row.value, segment: segment, isInTables: isInTables)
    }

    /// The row was found in the journal at a start.
    package mutating func restore(_ row: ControlRow, segment: UInt32) {
        let name = row.name
        bytes += name.bytes.count + (row.value?.count ?? 0)
        changes[name] = Change(value: row.value, segment: segment, isInTables: true)
    }

    private mutating func remove(_ name: ControlName) {
        guard let old = changes.removeValue(forKey: name) else { return }
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

    /// Puts what the journal knows over rows that were read from the tables, in the order of their keys: all that are after
    /// `after` and, unless `isEnd`, not behind the last of `rows`.
    package func over(
        _ rows: [ControlRow], _ table: ControlTable, _ partition: Partition, after: [UInt8]?, isEnd: Bool
    ) -> [ControlRow] {
        let first = ControlName(table, partition, after ?? []).bytes
        let prefix = ControlName(table, partition, []).bytes
        let last = isEnd ? nil : rows.last?.name.bytes
        var merged = rows.filter { changes[$0.name] == nil }
        for (name, change) in changes where change.value != nil {
            guard name.bytes.starts(with: prefix),
                first.lexicographicallyPrecedes(name.bytes) || (after == nil && first == name.bytes),
                last.map({ !$0.lexicographicallyPrecedes(name.bytes) }) ?? true, let row = name.row(change.value)
            else { continue }
            merged.append(row)
        }
        return merged.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }
}
