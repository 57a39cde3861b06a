internal import CRocksDB
internal import FerryIO

extension RocksDatabase {
    /// Beside the engine's own files, on the same file system, under a name that it takes for none of its own.
    private var draft: String { "\(folder)/rows.new" }

    /// Writes the rows to a sorted file and has the engine take it over. Both sync; what fails leaves the tables as they were,
    /// or, in the last step, in doubt until they are opened again.
    func ingest(_ rows: TableWrite) throws(StoreFailure) {
        do throws(StoreFailure) {
            try removeDraft()
            try makeFile(of: rows)
            var error: UnsafeMutablePointer<CChar>?
            draft.withCString { path in
                var paths: UnsafePointer<CChar>? = path
                rocksdb_ingest_external_file(handles.database, &paths, 1, handles.ingest, &error)
            }
            if error != nil { throw Self.failure("write the tables", error) }
        } catch {
            // It may be what the disk has no room for.
            try? Directory.removeFile(draft)
            throw error
        }
    }

    /// Where the process died in the middle of a take-over, the draft is a second name of a file that the engine has by now.
    /// Writing would begin by emptying that one; only the name may go.
    private func removeDraft() throws(StoreFailure) {
        do throws(SystemError) {
            try Directory.removeFile(draft)
        } catch {
            throw StoreFailure(error)
        }
    }

    private func paced(_ path: String) throws(StoreFailure) -> PacedDraft {
        do throws(SystemError) { return try PacedDraft.follow(path) } catch { throw StoreFailure(error) }
    }

    private func makeFile(of rows: TableWrite) throws(StoreFailure) {
        let writer = rocksdb_sstfilewriter_create(handles.files, handles.fileOptions)
        defer { rocksdb_sstfilewriter_destroy(writer) }
        var error: UnsafeMutablePointer<CChar>?
        rocksdb_sstfilewriter_open(writer, draft, &error)
        if error != nil { throw Self.failure("write the tables", error) }
        var pace = try paced(draft)
        try rows.visit { key, value throws(StoreFailure) in
            let keyBytes = key.bindMemory(to: CChar.self)
            var error: UnsafeMutablePointer<CChar>?
            if let value {
                let valueBytes = value.bindMemory(to: CChar.self)
                rocksdb_sstfilewriter_put(
                    writer, keyBytes.baseAddress, keyBytes.count, valueBytes.baseAddress, valueBytes.count, &error)
            } else {
                rocksdb_sstfilewriter_delete(writer, keyBytes.baseAddress, keyBytes.count, &error)
            }
            if error != nil { throw Self.failure("write the tables", error) }
            do throws(SystemError) {
                try pace.note(keyBytes.count + (value?.count ?? 0))
            } catch {
                throw StoreFailure(error)
            }
        }
        rocksdb_sstfilewriter_finish(writer, &error)
        if error != nil { throw Self.failure("write the tables", error) }
    }

    var isBehind: Bool {
        var files: UInt64 = 0
        guard rocksdb_property_int(handles.database, "rocksdb.num-files-at-level0", &files) == 0 else { return false }
        return files >= RocksOptions.runsWhenBehind
    }
}
