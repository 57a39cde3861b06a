internal import CRocksDB
internal import Synchronization

/// Tables in RocksDB. Each write is a sorted file that it takes over as it is: neither its log nor its memtables are used.
final class RocksTables: Tables {
    private let folder: String
    private let cacheBytes: Int
    private let openFiles: Int
    /// nil while they are being opened again, and when that failed.
    private let current: Mutex<RocksDatabase?>

    /// Opens the tables in `folder`, or makes them.
    init(folder: String, cacheBytes: Int, openFiles: Int, isReadOnly: Bool = false) throws(StoreFailure) {
        self.folder = folder
        self.cacheBytes = cacheBytes
        self.openFiles = openFiles
        current = Mutex(
            try RocksDatabase(folder: folder, cacheBytes: cacheBytes, openFiles: openFiles, isReadOnly: isReadOnly))
    }

    func database() throws(StoreFailure) -> RocksDatabase {
        guard let database = current.withLock({ $0 }) else {
            throw StoreFailure(.disk, "The tables in \(folder) are closed after an error")
        }
        return database
    }

    /// Removes tables that nobody has open.
    static func destroy(folder: String) throws(StoreFailure) {
        let options = rocksdb_options_create()
        defer { rocksdb_options_destroy(options) }
        var error: UnsafeMutablePointer<CChar>?
        rocksdb_destroy_db(options, folder, &error)
        if error != nil { throw RocksDatabase.failure("remove the tables in \(folder)", error) }
    }

    /// After an error other than a full disk RocksDB takes no writes until it is opened again. Where that is not possible
    /// either, it is opened for reading, so that what is kept can be delivered.
    func reopen() throws(StoreFailure) {
        var old = current.withLock { current in
            let old = current
            current = nil
            return old
        }
        if old != nil, !isKnownUniquelyReferenced(&old) {
            // A read is under way, and the folder cannot be opened beside it.
            let inUse = old
            current.withLock { $0 = inUse }
            throw StoreFailure(.disk, "The tables in \(folder) are in use and cannot be opened again yet")
        }
        old = nil
        do throws(StoreFailure) {
            let fresh = try RocksDatabase(folder: folder, cacheBytes: cacheBytes, openFiles: openFiles)
            current.withLock { $0 = fresh }
        } catch {
            let reading = try RocksDatabase(
                folder: folder, cacheBytes: cacheBytes, openFiles: openFiles, isReadOnly: true)
            current.withLock { $0 = reading }
            throw error
        }
    }

    func get(_ table: Table, _ key: [UInt8]) throws(StoreFailure) -> [UInt8]? {
        let database = try database()
        let handles = database.handles
        defer { withExtendedLifetime(database) {} }
        var error: UnsafeMutablePointer<CChar>?
        var count = 0
        let value = Self.withKey(table, key) { bytes, length in
            rocksdb_get(handles.database, handles.read, bytes, length, &count, &error)
        }
        if error != nil { throw RocksDatabase.failure("read the tables", error, wayOut: JournalFolder.wayOut) }
        guard let value else { return nil }
        defer { rocksdb_free(value) }
        return [UInt8](UnsafeRawBufferPointer(start: value, count: count))
    }

    func write(_ rows: TableWrite) throws(StoreFailure) {
        guard !rows.isEmpty else { return }
        try database().ingest(rows)
    }

    var isBehind: Bool { (try? database())?.isBehind == true }

    func scan(
        _ table: Table, from key: [UInt8],
        _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(StoreFailure) -> Bool
    ) throws(StoreFailure) {
        let database = try database()
        let handles = database.handles
        defer { withExtendedLifetime(database) {} }
        // Options of its own: the upper bound keeps the iterator off other tables' tombstones.
        let options = rocksdb_readoptions_create()
        defer { rocksdb_readoptions_destroy(options) }
        let bound: [CChar] = [CChar(bitPattern: table.rawValue + 1)]
        var failure: StoreFailure?
        bound.withUnsafeBufferPointer { boundBytes in
            rocksdb_readoptions_set_iterate_upper_bound(options, boundBytes.baseAddress, boundBytes.count)
            rocksdb_readoptions_set_readahead_size(options, 2 << 20)
            // What is read once from end to end would only fill the cache's memory.
            rocksdb_readoptions_set_fill_cache(options, 0)
            let iterator = rocksdb_create_iterator(handles.database, options)
            defer { rocksdb_iter_destroy(iterator) }
            Self.withKey(table, key) { rocksdb_iter_seek(iterator, $0, $1) }
            do throws(StoreFailure) {
                while rocksdb_iter_valid(iterator) != 0 {
                    var keyCount = 0
                    var valueCount = 0
                    let keyBytes = UnsafeRawBufferPointer(
                        start: rocksdb_iter_key(iterator, &keyCount), count: keyCount)
                    let value = UnsafeRawBufferPointer(
                        start: rocksdb_iter_value(iterator, &valueCount), count: valueCount)
                    guard try visit(UnsafeRawBufferPointer(rebasing: keyBytes.dropFirst()), value) else { return }
                    rocksdb_iter_next(iterator)
                }
                var error: UnsafeMutablePointer<CChar>?
                rocksdb_iter_get_error(iterator, &error)
                if error != nil {
                    throw RocksDatabase.failure("read the tables", error, wayOut: JournalFolder.wayOut)
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    private static func withKey<Result>(
        _ table: Table, _ key: [UInt8], _ body: (UnsafePointer<CChar>?, Int) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(byteCount: key.count + 1, alignment: 1) { buffer in
            buffer[0] = table.rawValue
            key.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: buffer[1...]).copyMemory(from: $0) }
            return body(UnsafePointer(buffer.bindMemory(to: CChar.self).baseAddress), buffer.count)
        }
    }
}
