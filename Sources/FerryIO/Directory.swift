internal import CLinux

/// Calls on directories and on names in them.
package enum Directory {
    /// Makes the directory, for its owner alone; whether it was not there before.
    package static func make(_ path: String) throws(SystemError) -> Bool {
        let result = clinux_make_directory(path, 0o700)
        if result == -ErrorNumber.exists { return false }
        _ = try SystemError.check("make directory \(path)", result)
        return true
    }

    /// The names in the directory, in no order.
    package static func list(_ path: String) throws(SystemError) -> [String] {
        var names: [String] = []
        let result = withUnsafeMutablePointer(to: &names) { pointer in
            clinux_list_directory(
                path,
                { name, context in
                    guard let name else { return }
                    context?.assumingMemoryBound(to: [String].self).pointee.append(String(cString: name))
                }, pointer)
        }
        _ = try SystemError.check("list \(path)", result)
        return names
    }

    /// Returns when names that were made, renamed or removed in the directory are so on the disk.
    package static func sync(_ path: String) throws(SystemError) {
        _ = try SystemError.check("sync directory \(path)", clinux_sync_directory(path))
    }

    /// Removes a file; one that is not there is no error.
    package static func removeFile(_ path: String) throws(SystemError) {
        let result = clinux_remove_file(path)
        if result == -ErrorNumber.noSuchFile { return }
        _ = try SystemError.check("remove \(path)", result)
    }

    /// Puts the file in the place of whatever `target` was, at once.
    package static func rename(_ path: String, to target: String) throws(SystemError) {
        _ = try SystemError.check("rename \(path) to \(target)", clinux_rename_file(path, target))
    }

    /// The number of this process, for those who wonder who holds a lock.
    package static var processID: Int { Int(clinux_process_id()) }

    /// Bytes that may still be written to the file system that the directory is on.
    package static func freeBytes(_ path: String) throws(SystemError) -> Int {
        Int(try SystemError.check("ask for the room left around \(path)", clinux_free_bytes(path)))
    }
}
