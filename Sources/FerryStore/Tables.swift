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
    /// Control table, partition, key → the row's value.
    case control = 7
}

/// Sorted rows. A write is there as a whole or not at all, and on the disk when it has returned; of one that failed a crash may
/// show either. Usable from several threads.
protocol Tables: AnyObject, Sendable {
    func get(_ table: Table, _ key: [UInt8]) throws(StoreFailure) -> [UInt8]?
    func write(_ rows: TableWrite) throws(StoreFailure)
    /// Rows from `key` on in the order of their keys, until `visit` answers false. What it is lent ends with the call.
    func scan(
        _ table: Table, from key: [UInt8],
        _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StoreFailure) -> Bool
    ) throws(StoreFailure)
    /// Begins anew after an error that does not pass by itself. A write that failed may be there then, as after a crash.
    func reopen() throws(StoreFailure)
    /// So much was written of late that reads suffer until it is put in order. Whoever can wait does.
    var isBehind: Bool { get }
}

extension Tables {
    func scan(
        _ table: Table,
        _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StoreFailure) -> Bool
    ) throws(StoreFailure) {
        try scan(table, from: [], visit)
    }
}
