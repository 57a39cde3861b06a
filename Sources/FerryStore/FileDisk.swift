package import FerryIO

/// A folder of the file system, held against a second gateway for as long as this lives.
package final class FileDisk: Disk {
    package let folder: String
    private let lock: OpenFile
    private let spare: SpareFile
    /// Larger files are made by the time that their zeros would take.
    private static let writtenAtOnce = 16 << 20
    private static let lockName = "LOCK"

    /// Makes the folder when it is not there, and takes its lock.
    package init(folder: String) throws(StoreFailure) {
        self.folder = folder
        spare = SpareFile(folder: folder)
        do throws(SystemError) {
            if try Directory.make(folder) { try Directory.sync(Self.parent(of: folder)) }
            lock = try OpenFile.create("\(folder)/\(Self.lockName)")
        } catch {
            throw Self.unusable(folder, error)
        }
        try Self.take(lock, of: folder)
        // Left by a process that was killed; nobody knows what of it is zero.
        try? Directory.removeFile("\(folder)/\(SpareFile.name)")
    }

    private static func take(_ lock: OpenFile, of folder: String) throws(StoreFailure) {
        let isOurs: Bool
        let holder: [UInt8]
        do throws(SystemError) {
            isOurs = try lock.tryLock()
            holder = isOurs ? [] : try lock.read(20, at: 0)
            if isOurs {
                try lock.resize(to: 0)
                try lock.write(Array("\(Directory.processID)\n".utf8), at: 0)
            }
        } catch {
            throw unusable(folder, error)
        }
        guard isOurs else {
            let process = String(decoding: holder.prefix { $0 != 10 }, as: UTF8.self)
            throw StoreFailure(
                .refused,
                "The data folder \(folder) is in use by another gateway (process \(process)): stop that one first, "
                    + "or give this one a folder of its own")
        }
    }

    private static func unusable(_ folder: String, _ error: SystemError) -> StoreFailure {
        let advice =
            switch error.code {
            case ErrorNumber.accessDenied, ErrorNumber.notPermitted, ErrorNumber.readOnlyFileSystem:
                ": the gateway's user must be able to write there"
            case ErrorNumber.noSuchFile: ": make the folder around it first"
            default: ""
            }
        return StoreFailure(.refused, "Cannot use the data folder \(folder): \(error)\(advice)")
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    package func list() throws(SystemError) -> [String] { try Directory.list(folder) }

    package func create(_ name: String, bytes: Int) throws(SystemError) -> any DiskFile {
        if let spare = try spare.take(bytes, as: name) { return spare }
        let file = try OpenFile.create("\(folder)/\(name)")
        do throws(SystemError) {
            try file.resize(to: 0)
            // As much again stays free for the tables: what is kept of an old segment must find room there before that
            // segment can go and make room itself.
            guard try Directory.freeBytes(folder) / 2 >= bytes else {
                throw SystemError("reserve \(2 * bytes) bytes in \(folder)", ErrorNumber.noSpace)
            }
            try file.reserve(bytes)
            if bytes <= Self.writtenAtOnce { try SpareFile.write(zeros: bytes, to: file) }
        } catch {
            // A file that got only a part of its room must not keep that from others.
            try? file.resize(to: 0)
            throw error
        }
        return file
    }

    package func prepare(_ bytes: Int) { spare.prepare(bytes) }

    package func open(_ name: String) throws(SystemError) -> any DiskFile { try OpenFile.open("\(folder)/\(name)") }
    package func remove(_ name: String) throws(SystemError) { try Directory.removeFile("\(folder)/\(name)") }

    package func rename(_ name: String, to target: String) throws(SystemError) {
        try Directory.rename("\(folder)/\(name)", to: "\(folder)/\(target)")
    }

    package func syncDirectory() throws(SystemError) { try Directory.sync(folder) }
    package func freeBytes() throws(SystemError) -> Int? { try Directory.freeBytes(folder) }
}

extension OpenFile: DiskFile {}
