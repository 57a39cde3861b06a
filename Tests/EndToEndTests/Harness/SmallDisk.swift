internal import Foundation
private import Glibc

/// A file system of its own, in memory, that can be filled. Only root may have one.
final class SmallDisk {
    static var isPossible: Bool { geteuid() == 0 && probe }

    private static let probe: Bool = (try? SmallDisk(bytes: 1 << 20)) != nil

    let path: String

    init(bytes: Int) throws {
        path = NSTemporaryDirectory() + "ferry-disk-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard mount("ferry-test", path, "tmpfs", 0, "size=\(bytes)") == 0 else {
            let code = errno
            try? FileManager.default.removeItem(atPath: path)
            throw Unexpected("cannot mount a tmpfs: error \(code)")
        }
    }

    deinit {
        umount2(path, Int32(MNT_DETACH))
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Nobody may have a file of it open for writing.
    func setReadOnly(_ isReadOnly: Bool) throws {
        let flags = UInt(MS_REMOUNT) | (isReadOnly ? UInt(MS_RDONLY) : 0)
        guard mount("ferry-test", path, "tmpfs", flags, nil) == 0 else {
            throw Unexpected("cannot remount \(path): error \(errno)")
        }
    }

    var freeBytes: Int {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Int(status.f_bavail) * Int(status.f_frsize) : 0
    }

    private var ballast: String { path + "/ballast" }

    /// Takes room until `bytes` are left.
    func fill(leaving bytes: Int) throws {
        let descriptor = open(ballast, O_CREAT | O_WRONLY, 0o600)
        guard descriptor >= 0 else { throw Unexpected("cannot make \(ballast): error \(errno)") }
        defer { close(descriptor) }
        // The gateway takes and gives room meanwhile: what was free a moment ago may not be any more.
        for _ in 0..<100 {
            var status = stat()
            let held = fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
            let size = held + max(0, freeBytes - bytes)
            if posix_fallocate(descriptor, 0, off_t(max(1, size))) == 0 { return }
        }
        throw Unexpected("cannot fill \(path)")
    }

    func empty() { unlink(ballast) }
}
