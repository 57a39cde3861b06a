package import FerryIO
internal import Synchronization

/// A disk in memory: for a gateway that need not remember, and for tests, which can fill it, break it, and cut its power.
package final class MemoryDisk: Disk {
    package let folder: String
    private let state: Mutex<State>

    /// Test controls. Each fault hits the next calls and is used up by them.
    package struct Faults: Sendable {
        /// So many file syncs fail; what they should have made durable may or may not be on the disk from then on.
        package var syncs = 0
        /// So many writes fail after half of their bytes.
        package var writes = 0
        /// So many reads fail.
        package var reads = 0
        /// Kernel error number of failing writes and syncs.
        package var code = ErrorNumber.inputOutput
        /// So many syncs succeed before the first fails.
        package var syncsBefore = 0
        /// So many writes succeed before the first fails.
        package var writesBefore = 0
        /// Called before each sync of a file.
        package var beforeSync: (@Sendable () -> Void)?
        package init() {}
    }

    /// What a power cut does to what was not synced.
    package enum Fate: Sendable {
        case lost
        case kept
        /// Each sector and each name is lost or kept, as the seed has it.
        case torn(UInt64)

        func keeps(_ item: Int) -> Bool {
            switch self {
            case .lost: return false
            case .kept: return true
            case .torn(let seed):
                var mixed = (seed ^ UInt64(truncatingIfNeeded: item)) &* 0x9e37_79b9_7f4a_7c15
                mixed = (mixed ^ mixed >> 29) &* 0xbf58_476d_1ce4_e5b9
                return (mixed ^ mixed >> 32) & 1 == 1
            }
        }
    }

    /// With `remembersSyncs`, each file also exists as it was at its last sync, for `afterCrash`.
    package init(folder: String = "memory", capacity: Int = .max, remembersSyncs: Bool = true) {
        self.folder = folder
        state = Mutex(State(capacity: capacity, remembersSyncs: remembersSyncs))
    }

    private init(folder: String, _ state: State) {
        self.folder = folder
        self.state = Mutex(state)
    }

    /// Bytes that all files together may reserve.
    package var capacity: Int {
        get { state.withLock { $0.capacity } }
        set { state.withLock { $0.capacity = newValue } }
    }

    package func inject(_ faults: Faults) { state.withLock { $0.faults = faults } }

    /// The disk that a machine finds after its power was cut now.
    package func afterCrash(_ fate: Fate) -> MemoryDisk {
        MemoryDisk(folder: folder, state.withLock { $0.afterCrash(fate) })
    }

    /// The disk that the next process finds after this one was killed now: with all that was written, synced or not.
    package func afterKill() -> MemoryDisk {
        MemoryDisk(
            folder: folder,
            state.withLock { state in
                var after = state
                after.faults = Faults()
                return after
            })
    }

    /// Changes a file behind everybody's back, durably.
    package func tamper(_ name: String, _ change: (inout [UInt8]) -> Void) {
        state.withLock { state in
            guard let id = state.names[name], var file = state.files[id] else { return }
            change(&file.current)
            file.size = file.current.count
            file.durable = file.current
            file.dirty = []
            file.doubtful = []
            state.files[id] = file
        }
    }

    /// The bytes of a file, for those who look from outside.
    package func contents(_ name: String) -> [UInt8] {
        state.withLock { state in
            guard let id = state.names[name], let file = state.files[id] else { return [] }
            return file.current + [UInt8](repeating: 0, count: max(0, file.size - file.current.count))
        }
    }

    package func list() -> [String] { state.withLock { Array($0.names.keys) } }

    package func create(_ name: String, bytes: Int) throws(SystemError) -> any DiskFile {
        let id = try state.withLock { state throws(SystemError) in
            let others = state.names.values.filter { $0 != state.names[name] }
            let used = others.reduce(0) { $0 + (state.files[$1]?.size ?? 0) }
            guard used + bytes <= state.capacity else { throw SystemError("create \(name)", ErrorNumber.noSpace) }
            // Emptied in its place, as file systems do: a crash does not bring back what bore the name before.
            if let id = state.names[name] {
                state.files[id]?.resize(to: 0)
                state.files[id]?.resize(to: bytes)
                return id
            }
            state.files[state.nextID] = MemoryFile(size: bytes)
            state.names[name] = state.nextID
            state.nextID += 1
            return state.nextID - 1
        }
        return Handle(disk: self, id: id)
    }

    package func open(_ name: String) throws(SystemError) -> any DiskFile {
        guard let id = state.withLock({ $0.names[name] }) else {
            throw SystemError("open \(name)", ErrorNumber.noSuchFile)
        }
        return Handle(disk: self, id: id)
    }

    package func remove(_ name: String) { state.withLock { _ = $0.names.removeValue(forKey: name) } }

    package func rename(_ name: String, to target: String) throws(SystemError) {
        try state.withLock { state throws(SystemError) in
            guard let id = state.names.removeValue(forKey: name) else {
                throw SystemError("rename \(name)", ErrorNumber.noSuchFile)
            }
            state.names[target] = id
        }
    }

    package func freeBytes() -> Int? {
        state.withLock { state in
            guard state.capacity != .max else { return nil }
            return max(0, state.capacity - state.names.values.reduce(0) { $0 + (state.files[$1]?.size ?? 0) })
        }
    }

    package func syncDirectory() {
        state.withLock { state in
            state.durableNames = state.names
            // Files that no name leads to, neither now nor after a crash, are gone once their handles are; their bytes
            // are dropped here, as nothing in this module reads a removed file through an old handle for long.
            let named = Set(state.names.values)
            for id in state.files.keys where !named.contains(id) && state.open[id] == nil { state.files[id] = nil }
        }
    }

    private final class Handle: DiskFile {
        let disk: MemoryDisk
        let id: Int

        init(disk: MemoryDisk, id: Int) {
            self.disk = disk
            self.id = id
            disk.state.withLock { $0.open[id, default: 0] += 1 }
        }

        deinit {
            disk.state.withLock { state in
                state.open[id, default: 0] -= 1
                if state.open[id] == 0 { state.open[id] = nil }
            }
        }

        func size() -> Int { disk.state.withLock { $0.files[id]?.size ?? 0 } }

        func resize(to bytes: Int) {
            disk.state.withLock { state in
                state.files[id]?.resize(to: bytes)
            }
        }

        func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
            try disk.state.withLock { state throws(SystemError) in
                let fails = state.faults.writes > 0 && state.faults.writesBefore == 0
                if fails {
                    state.faults.writes -= 1
                } else if state.faults.writes > 0 {
                    state.faults.writesBefore -= 1
                }
                let part = fails ? UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count / 2)]) : bytes
                state.files[id]?.write(part, at: offset)
                if fails { throw SystemError("write", state.faults.code) }
            }
        }

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
            try disk.state.withLock { state throws(SystemError) in
                guard state.faults.reads == 0 else {
                    state.faults.reads -= 1
                    throw SystemError("read", state.faults.code)
                }
                return state.files[id]?.read(into: buffer, at: offset) ?? 0
            }
        }

        func sync() throws(SystemError) {
            disk.state.withLock { $0.faults.beforeSync }?()
            try disk.state.withLock { state throws(SystemError) in
                if state.faults.syncs > 0, state.faults.syncsBefore == 0 {
                    state.faults.syncs -= 1
                    state.files[id]?.failSync()
                    throw SystemError("sync", state.faults.code)
                }
                if state.faults.syncs > 0 { state.faults.syncsBefore -= 1 }
                state.files[id]?.sync(remembers: state.remembersSyncs)
            }
        }
    }

    fileprivate struct State {
        var capacity: Int
        var remembersSyncs: Bool
        var faults = Faults()
        var files: [Int: MemoryFile] = [:]
        var names: [String: Int] = [:]
        var durableNames: [String: Int] = [:]
        /// How many handles each file has.
        var open: [Int: Int] = [:]
        var nextID = 0

        init(capacity: Int, remembersSyncs: Bool) {
            self.capacity = capacity
            self.remembersSyncs = remembersSyncs
        }

        func afterCrash(_ fate: Fate) -> State {
            var after = State(capacity: capacity, remembersSyncs: remembersSyncs)
            after.nextID = nextID
            for (index, name) in Set(names.keys).union(durableNames.keys).sorted().enumerated() {
                let changed = names[name] != durableNames[name]
                let id = changed && fate.keeps(index) ? names[name] : durableNames[name]
                after.names[name] = id
                if let id { after.files[id] = files[id]?.afterCrash(fate, salt: id << 32) }
            }
            after.durableNames = after.names
            return after
        }
    }
}
