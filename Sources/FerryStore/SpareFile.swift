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
    /// So many bytes and a sync, and then a pause, so that others' syncs wait for little of it and seldom.
    private static let pieceBytes = 256 << 10
    private static let pauseMilliseconds: Int32 = 5

    /// What the thread holds too.
    private final class Shared: Sendable {
        let state = Mutex(State.none)
        let isEnding = Atomic(false)
    }

    private let path: String
    private let folder: String
    private let shared = Shared()
    private let thread = Mutex<OSThread?>(nil)

    init(folder: String) {
        self.folder = folder
        path = "\(folder)/\(Self.name)"
    }

    /// What is under way is given up.
    deinit {
        shared.isEnding.store(true, ordering: .relaxed)
        finish()
    }

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
                let file = try? Self.make(path, bytes, in: folder, unless: shared)
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

    private static func make(
        _ path: String, _ bytes: Int, in folder: String, unless shared: Shared
    ) throws(SystemError) -> OpenFile? {
        // What is kept, the tables and one more segment come first.
        guard try Directory.freeBytes(folder) / 4 >= bytes else { return nil }
        let file = try OpenFile.create(path)
        try file.resize(to: 0)
        try file.reserve(bytes)
        let pauses = try Poller()
        var done = 0
        while done < bytes {
            guard !shared.isEnding.load(ordering: .relaxed) else { return nil }
            done += try write(zeros: min(pieceBytes, bytes - done), to: file, at: done)
            if done < bytes { _ = pauses.wait(milliseconds: pauseMilliseconds) }
        }
        return file
    }

    /// Writes and syncs a whole file at once.
    static func write(zeros bytes: Int, to file: OpenFile) throws(SystemError) {
        _ = try write(zeros: bytes, to: file, at: 0)
    }

    private static func write(zeros bytes: Int, to file: OpenFile, at offset: Int) throws(SystemError) -> Int {
        let piece = [UInt8](repeating: 0, count: min(bytes, pieceBytes))
        var done = 0
        while done < bytes {
            let count = min(piece.count, bytes - done)
            try file.write(count == piece.count ? piece : Array(piece[..<count]), at: offset + done)
            done += count
        }
        try file.sync()
        return bytes
    }
}
