internal import CLinux
internal import Glibc

/// Small files that are read and replaced whole: after a crash there is the old content or the new, never a mixture.
package enum FileReplacement {
    /// The file's bytes; nil when there is no such file. A file above `limit` bytes is an error (EFBIG).
    package static func read(_ path: String, limit: Int) throws(SystemError) -> [UInt8]? {
        let opened = clinux_open_read(path)
        if -opened == ErrorNumber.noSuchFile { return nil }
        let descriptor = try SystemError.check("open \(path)", opened)
        defer { _ = clinux_close(descriptor) }
        let size = try SystemError.check("measure \(path)", clinux_file_size(descriptor))
        guard size <= Int64(limit) else { throw SystemError("read \(path)", EFBIG) }
        var bytes = [UInt8](repeating: 0, count: Int(size))
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes { buffer in
                clinux_pread(descriptor, buffer.baseAddress.map { $0 + filled }, buffer.count - filled, Int64(filled))
            }
            guard try SystemError.check("read \(path)", count) > 0 else { break }
            filled += count
        }
        bytes.removeLast(bytes.count - filled)
        return bytes
    }

    /// Puts `bytes` in the place of the file, readable by its owner only, and returns when both the content and the
    /// name are on disk. The new content is written to `path` + ".new" first.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(SystemError) {
        let fresh = path + ".new"
        _ = unlink(fresh)
        let descriptor = try SystemError.check("create \(fresh)", clinux_open_create(fresh, 0o600))
        do throws(SystemError) {
            defer { _ = clinux_close(descriptor) }
            try write(bytes, to: descriptor, name: fresh)
            _ = try SystemError.check("sync \(fresh)", clinux_fdatasync(descriptor))
        } catch {
            _ = unlink(fresh)
            throw error
        }
        if rename(fresh, path) < 0 { throw SystemError("rename \(fresh) to \(path)", errno) }
        let folder = folder(of: path)
        _ = try SystemError.check("sync the folder \(folder)", clinux_sync_directory(folder))
    }

    /// As `replace`, but only where there is no such file yet; whether this call made it.
    package static func create(_ path: String, with bytes: [UInt8]) throws(SystemError) -> Bool {
        let fresh = path + ".\(getpid()).new"
        _ = unlink(fresh)
        let descriptor = try SystemError.check("create \(fresh)", clinux_open_create(fresh, 0o600))
        defer { _ = unlink(fresh) }
        do {
            defer { _ = clinux_close(descriptor) }
            try write(bytes, to: descriptor, name: fresh)
            _ = try SystemError.check("sync \(fresh)", clinux_fdatasync(descriptor))
        }
        // Unlike a rename, a link never replaces what somebody else has made meanwhile.
        if link(fresh, path) < 0 {
            if errno == EEXIST { return false }
            throw SystemError("make \(path)", errno)
        }
        let folder = folder(of: path)
        _ = try SystemError.check("sync the folder \(folder)", clinux_sync_directory(folder))
        return true
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32, name: String) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                clinux_pwrite(
                    descriptor, buffer.baseAddress.map { $0 + written }, buffer.count - written, Int64(written))
            }
            written += try SystemError.check("write \(name)", count)
        }
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
