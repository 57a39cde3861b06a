internal import CRocksDB

/// The engine's settings, as measured: docs/decisions/0016.
enum RocksOptions {
    /// - Parameter environment: the threads that put files in order; they give way to everybody else.
    static func database(cache: OpaquePointer?, openFiles: Int, environment: OpaquePointer?) -> OpaquePointer? {
        let options = rocksdb_options_create()
        rocksdb_env_lower_thread_pool_cpu_priority(environment)
        rocksdb_options_set_env(options, environment)
        rocksdb_options_set_create_if_missing(options, 1)
        // Runs of like size are merged: a row is written again about once for each eightfold growth of the tables. Levels
        // of tenfold size took 1.5 times as much of processor and disk.
        rocksdb_options_set_compaction_style(options, Int32(rocksdb_universal_compaction))
        rocksdb_options_set_level0_file_num_compaction_trigger(options, runsBeforeMerging)
        let universal = rocksdb_universal_compaction_options_create()
        rocksdb_universal_compaction_options_set_size_ratio(universal, 20)
        rocksdb_universal_compaction_options_set_min_merge_width(universal, 4)
        // What was deleted or replaced takes no more room than half of what holds, before all is merged.
        rocksdb_universal_compaction_options_set_max_size_amplification_percent(universal, 150)
        rocksdb_options_set_universal_compaction_options(options, universal)
        rocksdb_universal_compaction_options_destroy(universal)
        // A file that a merge wrote and in which half of some stretch are deletions is merged again, whatever its size.
        rocksdb_options_add_compact_on_deletion_collector_factory(options, deletionWindow, deletionWindow / 2)
        rocksdb_options_set_bytes_per_sync(options, 256 << 10)
        let pace = rocksdb_ratelimiter_create(mergedBytesPerSecond, 10_000, 10)
        rocksdb_options_set_ratelimiter(options, pace)
        rocksdb_ratelimiter_destroy(pace)
        rocksdb_options_set_max_background_jobs(options, 2)
        rocksdb_options_set_max_open_files(options, Int32(clamping: openFiles))
        // A small run is merged again soon; what is compressed is what stays.
        var compression = [Int32](repeating: Int32(rocksdb_lz4_compression), count: 7)
        compression[0] = Int32(rocksdb_no_compression)
        rocksdb_options_set_compression_per_level(options, &compression, compression.count)
        rocksdb_options_set_keep_log_file_num(options, 2)
        rocksdb_options_set_max_log_file_size(options, 1 << 20)
        rocksdb_options_set_info_log_level(options, 2)  // warnings
        rocksdb_options_set_stats_dump_period_sec(options, 0)
        rocksdb_options_set_stats_persist_period_sec(options, 0)
        setBlocks(options, cache)
        return options
    }

    /// Of a file that a write makes. It is not compressed: a merge does that, for what is still there.
    static func file(cache: OpaquePointer?) -> OpaquePointer? {
        let options = rocksdb_options_create()
        rocksdb_options_set_compression(options, Int32(rocksdb_no_compression))
        // What the writer holds back before it reaches the file.
        rocksdb_options_set_writable_file_max_buffer_size(options, UInt64(PacedDraft.pieceBytes))
        setBlocks(options, cache)
        return options
    }

    /// In few parts: the index of a run of gigabytes must fit one of them, or each read would fetch it anew.
    static func cache(bytes: Int) -> OpaquePointer? {
        let options = rocksdb_lru_cache_options_create()
        defer { rocksdb_lru_cache_options_destroy(options) }
        rocksdb_lru_cache_options_set_capacity(options, bytes)
        rocksdb_lru_cache_options_set_num_shard_bits(options, 1)
        return rocksdb_cache_create_lru_opts(options)
    }

    static let runsBeforeMerging: Int32 = 8
    /// Merges share the disk with the journal.
    private static let mergedBytesPerSecond: Int64 = 96 << 20
    /// More would make reads slow: each run is a filter to ask.
    static let runsWhenBehind: UInt64 = 24
    private static let deletionWindow = 1024

    /// Filters for the point reads; index and filters in the cache, so that its size bounds the memory of all files.
    private static func setBlocks(_ options: OpaquePointer?, _ cache: OpaquePointer?) {
        let blocks = rocksdb_block_based_options_create()
        rocksdb_block_based_options_set_block_cache(blocks, cache)
        // Twice the engine's own: half the index, and a start reads the rows faster.
        rocksdb_block_based_options_set_block_size(blocks, 8 << 10)
        rocksdb_block_based_options_set_filter_policy(blocks, rocksdb_filterpolicy_create_bloom_full(10))
        rocksdb_block_based_options_set_cache_index_and_filter_blocks(blocks, 1)
        rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(blocks, 1)
        rocksdb_options_set_block_based_table_factory(options, blocks)
        rocksdb_block_based_options_destroy(blocks)
    }
}
