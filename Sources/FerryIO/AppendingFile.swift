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

    /// Writes all of `bytes` at the end and waits until they are on disk. After an error it takes back what of them is there,
    /// as far as the disk lets it.
    package func append(_ bytes: [UInt8]) throws(SystemError) {
        let size = try SystemError.check("look at \(path)", clinux_file_size(descriptor))
        do throws(SystemError) {
            var written = 0
            while written < bytes.count {
                let result = bytes.withUnsafeBytes { buffer in
                    clinux_write(descriptor, buffer.baseAddress.map { $0 + written }, bytes.count - written)
                }
                written += Int(try SystemError.check("write to \(path)", result))
            }
            _ = try SystemError.check("sync \(path)", clinux_fdatasync(descriptor))
        } catch {
            _ = clinux_truncate(descriptor, size)
            throw error
        }
    }
}
