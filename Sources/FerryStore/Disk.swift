package import FerryIO

/// What the journal needs of a folder, small enough to be played by memory. Names are plain file names.
package protocol Disk: AnyObject, Sendable {
    /// How sentences to an operator name the folder.
    var folder: String { get }
    func list() throws(SystemError) -> [String]
    /// An empty file of `bytes` reserved bytes that read as zero, in the place of what bore the name before.
    func create(_ name: String, bytes: Int) throws(SystemError) -> any DiskFile
    /// A file of `bytes` will be created soon: a disk may begin to make it, so that `create` has less to do. Returns at once.
    func prepare(_ bytes: Int)
    func open(_ name: String) throws(SystemError) -> any DiskFile
    func remove(_ name: String) throws(SystemError)
    func rename(_ name: String, to target: String) throws(SystemError)
    /// Returns when the names are on the disk.
    func syncDirectory() throws(SystemError)
    /// Bytes that are left; nil where nobody knows.
    func freeBytes() throws(SystemError) -> Int?
}

extension Disk {
    package func prepare(_ bytes: Int) {}
    package func freeBytes() throws(SystemError) -> Int? { nil }
}

/// An open file; closed when nobody holds it. Usable from several threads.
package protocol DiskFile: AnyObject, Sendable {
    func size() throws(SystemError) -> Int
    func resize(to bytes: Int) throws(SystemError)
    /// All of `bytes`, or an error after which any part of them may have been written.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError)
    /// As much as there is; answers how many bytes that were.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int
    func sync() throws(SystemError)
}

extension DiskFile {
    /// `count` bytes from `offset`, fewer at the end of the file.
    func read(_ count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            do throws(SystemError) {
                initialized = try read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(SystemError) {
        var failure: SystemError?
        bytes.withUnsafeBytes { buffer in
            do throws(SystemError) { try write(buffer, at: offset) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}

extension StoreFailure {
    /// Whether the kernel says that there is no room, or something else.
    init(_ error: SystemError) {
        let isFull = error.code == ErrorNumber.noSpace || error.code == ErrorNumber.quotaExceeded
        self.init(isFull ? .full : .disk, "Cannot \(error)")
    }
}
