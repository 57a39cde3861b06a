internal import CLinux

/// A file that only grows, synced at each append. Mode 0600.
package struct AppendingFile: ~Copyable, Sendable {
    private let descriptor: Int32
    private let path: String

    package init(path: String) throws(SystemError) {
        self.path = path
        descriptor = try SystemError.check("open \(path)", clinux_open_append(path, 0o600))
    }

    deinit { _ = clinux_close(descriptor) }

    /// Writes all of `bytes` at the end and waits until they are on disk. After an error a part of them may be there.
    package func append(_ bytes: [UInt8]) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let result = bytes.withUnsafeBytes { buffer in
                clinux_write(descriptor, buffer.baseAddress.map { $0 + written }, bytes.count - written)
            }
            written += Int(try SystemError.check("write to \(path)", result))
        }
        _ = try SystemError.check("sync \(path)", clinux_fdatasync(descriptor))
    }
}
