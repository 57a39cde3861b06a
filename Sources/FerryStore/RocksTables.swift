internal import CRocksDB

/// Tables in RocksDB, closed when nobody holds this any more. Without its write-ahead log: the journal is the log. All tables share one column family, so one
/// flush is atomic over them, and what a crash leaves is a prefix of what was applied.
final class RocksTables: Tables {
    /// RocksDB's handles are safe to use from any thread; only their life is this class's business.
    private struct Handles: @unchecked Sendable {
        let database: OpaquePointer
        let options: OpaquePointer
        let cache: OpaquePointer
        let read: OpaquePointer
        let write: OpaquePointer
        let flush: OpaquePointer
    }

    private let handles: Handles

    /// Opens the tables in `folder`, or makes them.
    init(folder: String, cacheBytes: Int, openFiles: Int) throws(StoreFailure) {
        let cache = rocksdb_cache_create_lru(cacheBytes)
        let options = Self.options(cache: cache, openFiles: openFiles)
        var error: UnsafeMutablePointer<CChar>?
        let database = rocksdb_open(options, folder, &error)
        guard let database, let options, let cache, let read = rocksdb_readoptions_create(),
            let write = rocksdb_writeoptions_create(), let flush = rocksdb_flushoptions_create()
        else {
            rocksdb_options_destroy(options)
            rocksdb_cache_destroy(cache)
            throw Self.failure("open the tables in \(folder)", error)
        }
        rocksdb_writeoptions_disable_WAL(write, 1)
        rocksdb_flushoptions_set_wait(flush, 1)
        handles = Handles(
            database: database, options: options, cache: cache, read: read, write: write, flush: flush)
    }

    deinit {
        rocksdb_close(handles.database)
        rocksdb_flushoptions_destroy(handles.flush)
        rocksdb_writeoptions_destroy(handles.write)
        rocksdb_readoptions_destroy(handles.read)
        rocksdb_options_destroy(handles.options)
        rocksdb_cache_destroy(handles.cache)
    }

    /// The settings that were measured to matter: memtables that fit the processor's cache and are merged before they
    /// are written, bounded files and logs, filters for the point reads.
    private static func options(cache: OpaquePointer?, openFiles: Int) -> OpaquePointer? {
        let options = rocksdb_options_create()
        rocksdb_options_set_create_if_missing(options, 1)
        rocksdb_options_set_write_buffer_size(options, 16 << 20)
        rocksdb_options_set_max_write_buffer_number(options, 8)
        rocksdb_options_set_min_write_buffer_number_to_merge(options, 4)
        rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1)
        rocksdb_options_set_bytes_per_sync(options, 1 << 20)
        rocksdb_options_set_max_background_jobs(options, 2)
        rocksdb_options_set_max_open_files(options, Int32(clamping: openFiles))
        rocksdb_options_set_compression(options, Int32(rocksdb_lz4_compression))
        rocksdb_options_set_keep_log_file_num(options, 2)
        rocksdb_options_set_max_log_file_size(options, 1 << 20)
        rocksdb_options_set_info_log_level(options, 2)  // warnings
        rocksdb_options_set_stats_dump_period_sec(options, 0)
        rocksdb_options_set_stats_persist_period_sec(options, 0)
        let blocks = rocksdb_block_based_options_create()
        rocksdb_block_based_options_set_block_cache(blocks, cache)
        rocksdb_block_based_options_set_filter_policy(blocks, rocksdb_filterpolicy_create_bloom_full(10))
        rocksdb_block_based_options_set_cache_index_and_filter_blocks(blocks, 1)
        rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(blocks, 1)
        rocksdb_options_set_block_based_table_factory(options, blocks)
        rocksdb_block_based_options_destroy(blocks)
        return options
    }

    func get(_ table: Table, _ key: [UInt8]) throws(StoreFailure) -> [UInt8]? {
        var error: UnsafeMutablePointer<CChar>?
        var count = 0
        let value = Self.withKey(table, key) { bytes, length in
            rocksdb_get(handles.database, handles.read, bytes, length, &count, &error)
        }
        if error != nil { throw Self.failure("read the tables", error) }
        guard let value else { return nil }
        defer { rocksdb_free(value) }
        return [UInt8](UnsafeRawBufferPointer(start: value, count: count))
    }

    func apply(_ changes: [TableChange]) throws(StoreFailure) {
        let batch = rocksdb_writebatch_create()
        defer { rocksdb_writebatch_destroy(batch) }
        for change in changes {
            switch change {
            case .put(let table, let key, let value):
                Self.withKey(table, key) { bytes, length in
                    value.withUnsafeBytes { raw in
                        rocksdb_writebatch_put(
                            batch, bytes, length, raw.bindMemory(to: CChar.self).baseAddress, raw.count)
                    }
                }
            case .delete(let table, let key):
                Self.withKey(table, key) { rocksdb_writebatch_delete(batch, $0, $1) }
            }
        }
        var error: UnsafeMutablePointer<CChar>?
        rocksdb_write(handles.database, handles.write, batch, &error)
        if error != nil { throw Self.failure("write the tables", error) }
    }

    func scan(
        _ table: Table, from key: [UInt8],
        _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(StoreFailure) -> Bool
    ) throws(StoreFailure) {
        // Options of its own: the upper bound keeps the iterator off other tables' tombstones.
        let options = rocksdb_readoptions_create()
        defer { rocksdb_readoptions_destroy(options) }
        let bound: [CChar] = [CChar(bitPattern: table.rawValue + 1)]
        var failure: StoreFailure?
        bound.withUnsafeBufferPointer { boundBytes in
            rocksdb_readoptions_set_iterate_upper_bound(options, boundBytes.baseAddress, boundBytes.count)
            rocksdb_readoptions_set_readahead_size(options, 2 << 20)
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
                if error != nil { throw Self.failure("read the tables", error) }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    func flush() throws(StoreFailure) {
        var error: UnsafeMutablePointer<CChar>?
        rocksdb_flush(handles.database, handles.flush, &error)
        if error != nil { throw Self.failure("flush the tables", error) }
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

    private static func failure(_ operation: String, _ error: UnsafeMutablePointer<CChar>?) -> StoreFailure {
        let text = error.map { String(cString: $0) } ?? "unknown error"
        rocksdb_free(error)
        let kind: StoreFailure.Kind =
            if text.contains("No space left") || text.contains("Disk quota") {
                .full
            } else if text.contains("Corruption") { .corrupted } else { .disk }
        return StoreFailure(kind, "Cannot \(operation): \(text)")
    }
}
