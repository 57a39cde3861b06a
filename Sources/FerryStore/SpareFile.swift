internal import FerryIO
internal import Synchronization

/// A file of zeros that is made before it is needed, on a thread of its own.
///
/// Room that is only reserved makes every first sync behind a write a change of the file system's own books, which waits for
/// everybody else's: a sync took 1.5 to 15 times as long. Zeros that are on the disk already are overwritten in their place.
final class SpareFile: Sendable {
    private enum State {
        case none
        case underWay(bytes: Int)
        case ready(OpenFile, bytes: Int)
    }

    static let name = "journal.spare"
    private static let pieceBytes = 1 << 20
    /// So many bytes and a sync, so that others' syncs do not wait for all of it.
    private static let bytesPerSync = 4 << 20

    /// What the thread holds too.
    private final class Shared: Sendable {
        let state = Mutex(State.none)
    }

    private let path: String
    private let folder: String
    private let shared = Shared()
    private let thread = Mutex<OSThread?>(nil)

    init(folder: String) {
        self.folder = folder
        path = "\(folder)/\(Self.name)"
    }

    deinit { finish() }

    /// Returns when nothing is under way.
    func finish() { thread.withLock { $0?.join() } }

    /// Begins to make one of `bytes`, unless there is one or the disk has no room to spare.
    func prepare(_ bytes: Int) {
        let isNew = shared.state.withLock { state in
            guard case .none = state else { return false }
            state = .underWay(bytes: bytes)
            return true
        }
        guard isNew else { return }
        let (path, folder, shared) = (path, folder, shared)
        thread.withLock { thread in
            thread?.join()
            thread = try? OSThread(name: "store-spare") {
                let file = try? Self.make(path, bytes, in: folder)
                if file == nil { try? Directory.removeFile(path) }
                shared.state.withLock { $0 = file.map { .ready($0, bytes: bytes) } ?? .none }
            }
            if thread == nil { shared.state.withLock { $0 = .none } }
        }
    }

    /// The file, when one of exactly `bytes` is ready, under its new name in the same folder.
    func take(_ bytes: Int, as name: String) throws(SystemError) -> OpenFile? {
        let taken: OpenFile? = shared.state.withLock { state in
            guard case .ready(let file, bytes) = state else { return nil }
            state = .none
            return file
        }
        guard let taken else { return nil }
        try Directory.rename(path, to: "\(folder)/\(name)")
        return taken
    }

    private static func make(_ path: String, _ bytes: Int, in folder: String) throws(SystemError) -> OpenFile? {
        // What is kept, the tables and one more segment come first.
        guard try Directory.freeBytes(folder) / 4 >= bytes else { return nil }
        let file = try OpenFile.create(path)
        try file.resize(to: 0)
        try file.reserve(bytes)
        try write(zeros: bytes, to: file)
        return file
    }

    static func write(zeros bytes: Int, to file: OpenFile) throws(SystemError) {
        let piece = [UInt8](repeating: 0, count: min(bytes, pieceBytes))
        var done = 0
        while done < bytes {
            let count = min(piece.count, bytes - done)
            try file.write(Array(piece[..<count]), at: done)
            done += count
            if done % bytesPerSync == 0 || done == bytes { try file.sync() }
        }
    }
}
