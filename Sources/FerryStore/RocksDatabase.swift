internal import CRocksDB

/// An open RocksDB, closed when nobody holds it any more. All tables share one column family, so a file of rows can hold those
/// of all tables.
final class RocksDatabase: Sendable {
    /// RocksDB's handles are safe to use from any thread; only their life is this class's business.
    struct Handles: @unchecked Sendable {
        let database: OpaquePointer
        let options: OpaquePointer
        /// Of files of rows that are made beside the database.
        let fileOptions: OpaquePointer
        let environment: OpaquePointer
        let cache: OpaquePointer
        let read: OpaquePointer
        let ingest: OpaquePointer
        let files: OpaquePointer
    }

    let handles: Handles
    let folder: String

    /// Opens the tables in `folder`, or makes them. `isReadOnly`: neither makes nor changes a file.
    init(folder: String, cacheBytes: Int, openFiles: Int, isReadOnly: Bool = false) throws(StoreFailure) {
        self.folder = folder
        let environment = rocksdb_create_default_env()
        let cache = RocksOptions.cache(bytes: cacheBytes)
        let options = RocksOptions.database(cache: cache, openFiles: openFiles, environment: environment)
        let fileOptions = RocksOptions.file(cache: cache)
        var error: UnsafeMutablePointer<CChar>?
        let database =
            isReadOnly ? rocksdb_open_for_read_only(options, folder, 0, &error) : rocksdb_open(options, folder, &error)
        guard let database, let options, let fileOptions, let environment, let cache,
            let read = rocksdb_readoptions_create(), let ingest = rocksdb_ingestexternalfileoptions_create(),
            let files = rocksdb_envoptions_create()
        else {
            rocksdb_options_destroy(options)
            rocksdb_options_destroy(fileOptions)
            rocksdb_cache_destroy(cache)
            rocksdb_env_destroy(environment)
            throw Self.failure("open the tables in \(folder)", error)
        }
        rocksdb_ingestexternalfileoptions_set_move_files(ingest, 1)
        handles = Handles(
            database: database, options: options, fileOptions: fileOptions, environment: environment, cache: cache,
            read: read, ingest: ingest, files: files)
    }

    deinit {
        rocksdb_close(handles.database)
        rocksdb_envoptions_destroy(handles.files)
        rocksdb_ingestexternalfileoptions_destroy(handles.ingest)
        rocksdb_readoptions_destroy(handles.read)
        rocksdb_options_destroy(handles.fileOptions)
        rocksdb_options_destroy(handles.options)
        rocksdb_cache_destroy(handles.cache)
        rocksdb_env_destroy(handles.environment)
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
