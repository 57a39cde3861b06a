/// The tables behind the journal. A key's first byte in the engine says which table it is in; the numbers stay.
enum Table: UInt8, CaseIterable, Sendable {
    /// cid → `DeviceRow`.
    case devices = 1
    /// cid, seq → the body of the accept record.
    case queue = 2
    /// Time of acceptance, digest → the answer.
    case requests = 3
    /// Digest of an API token → when it expires.
    case revoked = 4
    /// Named single values.
    case meta = 5
    /// Task → the content of a broadcast; task, place → where it stands in the streams.
    case broadcasts = 6
}

enum TableChange: Sendable {
    case put(Table, key: [UInt8], value: [UInt8])
    case delete(Table, key: [UInt8])
}

/// Sorted rows that become durable by `flush` and not before: after a crash the tables hold what some prefix of the
/// applied changes made of them, at least all before the last flush. Usable from several threads.
protocol Tables: AnyObject, Sendable {
    func get(_ table: Table, _ key: [UInt8]) throws(StoreFailure) -> [UInt8]?
    /// All or nothing.
    func apply(_ changes: [TableChange]) throws(StoreFailure)
    /// Rows from `key` on in the order of their keys, until `visit` answers false. What it is lent ends with the call.
    func scan(
        _ table: Table, from key: [UInt8],
        _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StoreFailure) -> Bool
    ) throws(StoreFailure)
    func flush() throws(StoreFailure)
    /// Begins anew after an error that does not pass by itself. What was applied after the last flush may be gone then,
    /// as after a crash.
    func reopen() throws(StoreFailure)
}

extension Tables {
    func scan(
        _ table: Table,
        _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StoreFailure) -> Bool
    ) throws(StoreFailure) {
        try scan(table, from: [], visit)
    }
}

/// Collects changes and applies them in batches of bounded size.
struct TableBatch {
    private let tables: any Tables
    private var changes: [TableChange] = []
    private var bytes = 0
    private static let limit = 1 << 20

    init(_ tables: any Tables) { self.tables = tables }

    mutating func put(_ table: Table, key: [UInt8], value: [UInt8]) throws(StoreFailure) {
        changes.append(.put(table, key: key, value: value))
        bytes += key.count + value.count
        if bytes > Self.limit { try finish() }
    }

    mutating func delete(_ table: Table, key: [UInt8]) throws(StoreFailure) {
        changes.append(.delete(table, key: key))
        bytes += key.count
        if bytes > Self.limit { try finish() }
    }

    mutating func finish() throws(StoreFailure) {
        guard !changes.isEmpty else { return }
        try tables.apply(changes)
        changes.removeAll(keepingCapacity: true)
        bytes = 0
    }
}
