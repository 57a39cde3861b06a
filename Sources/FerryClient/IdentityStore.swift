internal import FerryIO
internal import Synchronization

/// Keeps a device's identity and place in its stream across runs. What it keeps is a secret: on a phone, the keychain or a
/// file that is not backed up. One store belongs to one client at a time.
public protocol IdentityStore: Sendable {
    /// What was saved last; nil when there is nothing.
    func load() throws -> [UInt8]?
    /// Replaces what was saved. When it returns, `state` survives a crash; when it throws, the old content is still there.
    func save(_ state: [UInt8]) throws
}

/// Keeps nothing beyond the process: each run registers a new device.
public final class MemoryIdentityStore: IdentityStore {
    private let state = Mutex<[UInt8]?>(nil)

    /// Makes an empty store.
    public init() {}

    /// What was saved last in this process.
    public func load() -> [UInt8]? { state.withLock { $0 } }

    /// Replaces what was saved.
    public func save(_ state: [UInt8]) { self.state.withLock { $0 = state } }
}

/// Keeps the state in a file of mode 0600, replaced whole and synced at each change.
public struct FileIdentityStore: IdentityStore {
    /// The file; its folder must exist.
    public let path: String

    /// Makes a store that reads and writes `path`.
    public init(path: String) { self.path = path }

    /// The file's content; nil when there is no file.
    public func load() throws -> [UInt8]? { try FileReplacement.read(path, limit: 65_536) }

    /// Replaces the file.
    public func save(_ state: [UInt8]) throws { try FileReplacement.replace(path, with: state) }
}
