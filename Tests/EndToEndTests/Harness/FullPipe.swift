internal import Foundation
private import Glibc

/// A named pipe that is full and that nobody reads: who writes to it waits for ever.
final class FullPipe {
    private let path: String
    private let descriptor: Int32

    init(at path: String) throws {
        self.path = path
        try FileManager.default.createDirectory(
            atPath: URL(fileURLWithPath: path).deletingLastPathComponent().path, withIntermediateDirectories: true)
        guard mkfifo(path, 0o600) == 0 else { throw Unexpected("no pipe at \(path): error \(errno)") }
        descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw Unexpected("\(path) cannot be opened: error \(errno)") }
        let chunk = [UInt8](repeating: 0x0a, count: 4_096)
        while write(descriptor, chunk, chunk.count) > 0 {}
    }

    deinit { Glibc.close(descriptor) }

    func remove() throws { try FileManager.default.removeItem(atPath: path) }
}
