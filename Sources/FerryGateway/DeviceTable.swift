internal import FerryCore
internal import FerryRouting
internal import FerryStore

/// One device that a shard has in memory: online, with kept messages, or touched lately.
struct DeviceEntry {
    /// `acknowledged` and `gap` in here are as of loading; the machine has them as of now.
    var record: DeviceRecord
    var machine: DeviceStateMachine
    /// The connection of its session, or of its background; nil when there is none.
    var connection: UInt64?
    /// How often the device went offline while it was in memory.
    var absences: UInt32 = 0
    /// A read of the store is under way for its stream.
    var isReading = false
    /// An acknowledgement waits to be journalled at the end of the tick.
    var isAckPending = false
    /// A retirement waits for drops of the device that are on their way to the disk; others wait until it has what it needs.
    var holdsDrops = false
    /// The first segment with a change of the record that the tables do not have yet; 0 when they have all.
    var changedSegment: UInt32 = 0
    /// Messages that are taken and not on disk yet.
    var pending = PendingMessages()
    /// Changes that are not on disk yet: the device must stay in memory.
    var pendingChanges: Int32 = 0
    var armedAt = Instant.distantFuture
    /// Known to be at rest since; it may leave memory some time after.
    var restingSince = Instant.distantFuture

    /// The slot holds a device.
    private(set) var isInUse = true

    init(record: DeviceRecord) {
        self.record = record
        machine = DeviceStateMachine(
            acknowledged: record.acknowledged, gap: record.gap, hasToken: record.token != nil)
    }

    /// Gives back what the device held; the slot waits for another.
    mutating func vacate() {
        machine = DeviceStateMachine(acknowledged: .zero, gap: nil, hasToken: false)
        record.token = nil
        connection = nil
        isInUse = false
    }

    /// The record as of now.
    var currentRecord: DeviceRecord {
        var record = record
        record.acknowledged = machine.acknowledged
        record.gap = machine.gap
        record.stubDueUpTo = machine.stubsDueUpTo
        record.stubSettledUpTo = machine.stubsSettledUpTo
        return record
    }
}

/// A shard's devices by index and by cid.
struct DeviceTable {
    private var entries: ContiguousArray<DeviceEntry> = []
    private var free: [Int32] = []
    private var indices: IdentifierTable

    /// - Parameter seed: secret.
    init(seed: Identifier128) { indices = IdentifierTable(seed: seed) }

    var count: Int { indices.count }
    /// Indices are below this.
    var endIndex: Int { entries.count }

    func index(of cid: CID) -> Int? { indices.find(cid.value, name).map { Int($0) } }

    private func name(_ index: UInt32) -> Identifier128 { entries[Int(index)].record.cid.value }
    func isInUse(_ index: Int) -> Bool { index < entries.count && entries[index].isInUse }

    /// `index` is in use.
    subscript(index: Int) -> DeviceEntry {
        _read { yield entries[index] }
        _modify { yield &entries[index] }
    }

    /// The cid is not in the table yet.
    mutating func insert(_ entry: DeviceEntry) -> Int {
        let index: Int
        if let reused = free.popLast() {
            index = Int(reused)
            entries[index] = entry
        } else {
            index = entries.count
            entries.append(entry)
        }
        let entries = entries
        indices.set(UInt32(index), for: entry.record.cid.value) { entries[Int($0)].record.cid.value }
        return index
    }

    mutating func remove(_ index: Int) {
        guard isInUse(index) else { return }
        forget(index)
        entries[index].vacate()
        free.append(Int32(index))
    }

    private mutating func forget(_ index: Int) {
        let entries = entries
        indices.remove(UInt32(index), entries[index].record.cid.value) { entries[Int($0)].record.cid.value }
    }
}
