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
    /// When the gateway was not there, in any partition of each shard.
    case absences = 41
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

    /// What is written can be read again.
    package var isReadable: Bool { key.count <= Self.keyBytes && (value?.count ?? 0) <= Self.valueBytes }
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
