internal import FerryCore
internal import FerryRouting
internal import FerryStore

/// One device that a shard has in memory: online, with kept messages, or touched lately. There is one for each connection, so
/// its size counts: in this order nothing is padded.
struct DeviceEntry {
    let cid: CID
    let registeredAt: Instant
    /// The last login.
    var seenAt: Instant
    private var packedToken: [UInt8]?
    var machine: DeviceStateMachine
    /// Messages that are taken and not on disk yet.
    var pending = PendingMessages()
    /// Changes that are not on disk yet: the device must stay in memory.
    var pendingChanges: Int32 = 0
    let generation: UInt32
    /// The last broadcast that its machine was told of, or that is none of its app's, by `PlacedBroadcast.ordinal`.
    var caughtUp: UInt32 = 0
    /// The app's number in the table.
    fileprivate let app: UInt32
    private var slot: Int32 = -1
    /// The first segment with a change of the record that the tables do not have yet; 0 when they have all.
    var changedSegment: UInt32 = 0
    /// How often the device went offline while it was in memory, the low half: what is compared are two counts of one sync.
    var absences: UInt16 = 0
    private var flags: Flags = .inUse

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let inUse = Self(rawValue: 1)
        static let reading = Self(rawValue: 2)
        static let ackPending = Self(rawValue: 4)
        static let resting = Self(rawValue: 8)
        static let holdingDrops = Self(rawValue: 16)
        static let blocked = Self(rawValue: 32)
        static let leaving = Self(rawValue: 64)
    }

    fileprivate init(_ record: DeviceRecord, app: UInt32) {
        cid = record.cid
        registeredAt = record.registeredAt
        seenAt = record.seenAt
        generation = record.generation
        self.app = app
        machine = DeviceStateMachine(
            acknowledged: record.acknowledged, gap: record.gap, hasToken: record.token != nil)
        token = record.token
    }

    private subscript(flag: Flags) -> Bool {
        get { flags.contains(flag) }
        set { if newValue { flags.insert(flag) } else { flags.remove(flag) } }
    }

    /// The place in the table holds a device.
    var isInUse: Bool { self[.inUse] }

    /// A read of the store is under way for its stream.
    var isReading: Bool {
        get { self[.reading] }
        set { self[.reading] = newValue }
    }

    /// An acknowledgement waits to be journalled at the end of the tick.
    var isAckPending: Bool {
        get { self[.ackPending] }
        set { self[.ackPending] = newValue }
    }

    /// A retirement waits for drops of the device that are on their way to the disk; others wait until it has what it needs.
    var holdsDrops: Bool {
        get { self[.holdingDrops] }
        set { self[.holdingDrops] = newValue }
    }

    /// Was at rest when its timer last fired; if it still is when that fires again, it may leave memory.
    var isResting: Bool {
        get { self[.resting] }
        set { self[.resting] = newValue }
    }

    /// A backend wants that nothing is sent to it. The audience table says so too, also while the device is not in memory.
    var isBlocked: Bool {
        get { self[.blocked] }
        set { self[.blocked] = newValue }
    }

    /// The record of its removal is on its way to the disk, or waits for those before it: nothing new is taken for it.
    var isLeaving: Bool {
        get { self[.leaving] }
        set { self[.leaving] = newValue }
    }

    /// The connection of its session, or of its background, by its slot; nil when there is none. Whoever frees the slot says
    /// so here first.
    var connection: Int? {
        get { slot < 0 ? nil : Int(slot) }
        set { slot = newValue.map { Int32(truncatingIfNeeded: $0) } ?? -1 }
    }

    /// Kept as one array, its environment first: a reference, and none where there is no token.
    var token: PushToken? {
        get {
            guard let packedToken, let first = packedToken.first, let environment = PushEnvironment(rawValue: first)
            else { return nil }
            return PushToken(environment: environment, bytes: Array(packedToken.dropFirst()))
        }
        set { packedToken = newValue.map { [$0.environment.rawValue] + $0.bytes } }
    }

    /// Gives back what the device held; the place waits for another.
    fileprivate mutating func vacate() {
        machine = DeviceStateMachine(acknowledged: .zero, gap: nil, hasToken: false)
        packedToken = nil
        slot = -1
        flags = []
    }
}

/// A shard's devices by index and by cid. They lie in chunks, so that growing moves none and leaves no memory behind.
struct DeviceTable: ~Copyable {
    private static let chunkBits = 7
    private typealias Chunks = ContiguousArray<UnsafeMutablePointer<DeviceEntry>>

    /// Entries below `endIndex` are initialized; the table owns the chunks.
    private var chunks: Chunks = []
    /// Indices are below this.
    private(set) var endIndex = 0
    private var free: [Int32] = []
    private var indices: IdentifierTable
    /// Apps by number: devices have many, apps are few.
    private var apps: [AppID] = []
    private var appNumbers: [AppID: UInt32] = [:]

    /// - Parameters:
    ///   - seed: secret.
    ///   - apps: those that are registered, by number; others that devices belong to are numbered after them.
    init(seed: Identifier128, apps: [AppID] = []) {
        indices = IdentifierTable(seed: seed)
        for app in apps { _ = number(of: app) }
    }

    deinit {
        for index in 0..<endIndex { Self.pointer(index, chunks).deinitialize(count: 1) }
        for chunk in chunks { chunk.deallocate() }
    }

    var count: Int { indices.count }

    func index(of cid: CID) -> Int? {
        let chunks = chunks
        return indices.find(cid.value) { Self.name($0, chunks) }.map { Int($0) }
    }

    func isInUse(_ index: Int) -> Bool { index < endIndex && self[index].isInUse }

    /// `index` is one that `insert` or `index(of:)` gave.
    subscript(index: Int) -> DeviceEntry {
        unsafeAddress {
            precondition(index >= 0 && index < endIndex)
            return UnsafePointer(Self.pointer(index, chunks))
        }
        unsafeMutableAddress {
            precondition(index >= 0 && index < endIndex)
            return Self.pointer(index, chunks)
        }
    }

    /// The app's number in the table.
    func appNumber(of index: Int) -> Int { Int(self[index].app) }

    /// `number` is one that `appNumber(of:)` gave.
    func app(number: Int) -> AppID { apps[number] }

    func app(of index: Int) -> AppID { apps[Int(self[index].app)] }

    /// The row as of now.
    func record(of index: Int) -> DeviceRecord {
        let machine = self[index].machine
        var record = DeviceRecord(
            registration: DeviceRegistration(
                app: app(of: index), cid: self[index].cid, generation: self[index].generation,
                at: self[index].registeredAt))
        record.seenAt = self[index].seenAt
        record.token = self[index].token
        record.acknowledged = machine.acknowledged
        record.gap = machine.ownGap
        record.stubDueUpTo = machine.stubsDueUpTo
        record.stubSettledUpTo = machine.stubsSettledUpTo
        return record
    }

    /// The device is not in the table yet. Of its stubs nothing is taken: they are told with what is kept.
    mutating func insert(_ record: DeviceRecord) -> Int {
        let entry = DeviceEntry(record, app: UInt32(number(of: record.app)))
        let index: Int
        if let reused = free.popLast() {
            index = Int(reused)
            self[index] = entry
        } else {
            index = endIndex
            if index >> Self.chunkBits == chunks.count { chunks.append(.allocate(capacity: 1 << Self.chunkBits)) }
            Self.pointer(index, chunks).initialize(to: entry)
            endIndex += 1
        }
        let chunks = chunks
        indices.set(UInt32(index), for: record.cid.value) { Self.name($0, chunks) }
        return index
    }

    mutating func remove(_ index: Int) {
        guard isInUse(index) else { return }
        let chunks = chunks
        indices.remove(UInt32(index), self[index].cid.value) { Self.name($0, chunks) }
        self[index].vacate()
        free.append(Int32(index))
    }

    /// Numbers of apps are below.
    var appCount: Int { apps.count }

    /// `number` is below `appCount`.
    func app(numbered number: Int) -> AppID { apps[number] }

    /// The app's number, which it gets if it has none.
    mutating func number(of app: AppID) -> Int {
        if let known = appNumbers[app] { return Int(known) }
        let number = apps.count
        apps.append(app)
        appNumbers[app] = UInt32(number)
        return number
    }

    /// nil for an app that has no number yet.
    func knownNumber(of app: AppID) -> Int? { appNumbers[app].map { Int($0) } }

    private static func pointer(_ index: Int, _ chunks: Chunks) -> UnsafeMutablePointer<DeviceEntry> {
        chunks[index >> chunkBits] + index & (1 << chunkBits - 1)
    }

    private static func name(_ index: UInt32, _ chunks: Chunks) -> Identifier128 {
        pointer(Int(index), chunks).pointee.cid.value
    }
}
