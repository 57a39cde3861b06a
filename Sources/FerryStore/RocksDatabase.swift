internal import CRocksDB

/// An open RocksDB, closed when nobody holds it any more. All tables share one column family, so one flush is atomic over
/// them, and what a crash leaves is a prefix of what was applied.
final class RocksDatabase: Sendable {
    /// RocksDB's handles are safe to use from any thread; only their life is this class's business.
    struct Handles: @unchecked Sendable {
        let database: OpaquePointer
        let options: OpaquePointer
        let cache: OpaquePointer
        let read: OpaquePointer
        let write: OpaquePointer
        let flush: OpaquePointer
    }

    let handles: Handles

    /// Opens the tables in `folder`, or makes them. `isReadOnly`: neither makes nor changes a file.
    init(folder: String, cacheBytes: Int, openFiles: Int, isReadOnly: Bool = false) throws(StoreFailure) {
        let cache = rocksdb_cache_create_lru(cacheBytes)
        let options = Self.options(cache: cache, openFiles: openFiles)
        var error: UnsafeMutablePointer<CChar>?
        let database =
            isReadOnly ? rocksdb_open_for_read_only(options, folder, 0, &error) : rocksdb_open(options, folder, &error)
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

    /// - Parameter wayOut: what to do where the tables are damaged.
    static func failure(
        _ operation: String, _ error: UnsafeMutablePointer<CChar>?,
        wayOut: String = "restore the data folder from a backup"
    ) -> StoreFailure {
        let text = error.map { String(cString: $0) } ?? "unknown error"
        rocksdb_free(error)
        let kind: StoreFailure.Kind =
            if text.contains("No space left") || text.contains("Disk quota") {
                .full
            } else if text.contains("Corruption") { .corrupted } else { .disk }
        // A file that is missing is no corruption in the engine's words.
        let advice = kind == .corrupted || text.contains("No such file") ? ": \(wayOut)" : ""
        return StoreFailure(kind, "Cannot \(operation): \(text)\(advice)")
    }
}
