internal import CLinux

/// An open regular file, closed when nobody holds it any more. Reads and writes name their offset, so threads can share it.
package final class OpenFile: Sendable {
    package let path: String
    private let descriptor: Int32

    private init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit { _ = clinux_close(descriptor) }

    /// Opens for reading and writing; a file that is not there is made, readable for its owner alone.
    package static func create(_ path: String) throws(SystemError) -> OpenFile {
        let descriptor = try SystemError.check("create \(path)", clinux_open_create(path, 0o600))
        return OpenFile(path: path, descriptor: descriptor)
    }

    /// Opens a file that is there for reading and writing.
    package static func open(_ path: String) throws(SystemError) -> OpenFile {
        let descriptor = try SystemError.check("open \(path)", clinux_open_existing(path))
        return OpenFile(path: path, descriptor: descriptor)
    }

    /// Takes the lock that lives as long as this file is open; false when another process has it.
    package func tryLock() throws(SystemError) -> Bool {
        let result = clinux_lock_exclusive(descriptor)
        if result == -ErrorNumber.again { return false }
        _ = try SystemError.check("lock \(path)", result)
        return true
    }

    /// Reserves `bytes` from the start. Where the file system cannot, the file only gets that size.
    package func reserve(_ bytes: Int) throws(SystemError) {
        guard bytes > 0 else { return }
        let result = clinux_fallocate(descriptor, Int64(bytes))
        if result == -ErrorNumber.notSupported { return try resize(to: bytes) }
        _ = try SystemError.check("reserve \(bytes) bytes for \(path)", result)
    }

    package func resize(to bytes: Int) throws(SystemError) {
        _ = try SystemError.check("resize \(path)", clinux_truncate(descriptor, Int64(bytes)))
    }

    package func size() throws(SystemError) -> Int {
        Int(try SystemError.check("look at \(path)", clinux_file_size(descriptor)))
    }

    /// Writes all of `bytes`.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let result = clinux_pwrite(descriptor, rest.baseAddress, rest.count, Int64(offset + done))
            done += try SystemError.check("write \(path)", result)
        }
    }

    /// Fills `buffer` as far as the file reaches and answers how many bytes that were.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let result = clinux_pread(descriptor, rest.baseAddress, rest.count, Int64(offset + done))
            let count = try SystemError.check("read \(path)", result)
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// Returns when what was written has been handed to the disk, which may hold it in its cache until a sync. Nothing else
    /// waits for it, as others' syncs would for a sync.
    package func writeBack() throws(SystemError) {
        _ = try SystemError.check("write back \(path)", clinux_write_back(descriptor))
    }

    /// Returns when what was written is on the disk.
    package func sync() throws(SystemError) {
        _ = try SystemError.check("sync \(path)", clinux_fdatasync(descriptor))
    }
}
