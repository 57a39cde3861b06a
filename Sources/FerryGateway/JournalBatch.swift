internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// What a shard gathers in one tick for the journal: records, and what is to happen once they are on disk.
struct JournalBatch {
    var writer = ByteWriter()
    var accepts: [PendingAccept] = []
    /// What else is to happen, each with the count of accepts that come before it.
    var effects: [(after: Int, effect: CommitEffect)] = []
    /// Partitions that have messages in the records.
    var partitions = PartitionSet()

    var isEmpty: Bool { writer.bytes.isEmpty }

    mutating func add(_ effect: CommitEffect) { effects.append((accepts.count, effect)) }

    /// Gives everything away and begins anew with as much memory as this one came to need.
    mutating func take() -> JournalBatch {
        var next = JournalBatch()
        next.writer.bytes.reserveCapacity(min(writer.bytes.count, Self.reservedBytes))
        next.accepts.reserveCapacity(min(accepts.count, Self.reservedAccepts))
        swap(&self, &next)
        return next
    }

    private static let reservedBytes = 256 << 10
    private static let reservedAccepts = 1_024
}

/// Some of the partitions, each once, in the order in which they were added.
struct PartitionSet {
    private(set) var members: [UInt16] = []
    private var words = [UInt64](repeating: 0, count: (Limits.partitions + 63) / 64)

    /// `partition` is 0..<`Limits.partitions`.
    mutating func insert(_ partition: Int) {
        let bit: UInt64 = 1 << UInt64(partition % 64)
        guard words[partition / 64] & bit == 0 else { return }
        words[partition / 64] |= bit
        members.append(UInt16(truncatingIfNeeded: partition))
    }
}

/// A batch that the store has and has not answered.
struct UnsyncedBatch {
    let ticket: UInt64
    /// The store has them too.
    let records: [UInt8]
    let accepts: [PendingAccept]
    let effects: [(after: Int, effect: CommitEffect)]
}

/// What, beside accepted messages, waits for a record to be on disk.
enum CommitEffect {
    case deviceRegistered(DeviceRegistration)
    case deviceRemoved(Removal)
    /// `connection` nil: nobody waits for the answer.
    case pushTokenChanged(CID, PushToken?, connection: UInt64?)
    /// A change of the record that nobody waits for.
    case recordChanged(CID)
    /// `segment` is the one that holds the message.
    case dropRecorded(CID, Record, segment: UInt32)
    case stubsDueRecorded(CID, Record)
    case apiTokenRevoked(digest: [UInt8], expiresAt: Instant, APIOrigin)
    case broadcastAccepted(BroadcastContent)
    case broadcastPlaced(PendingPlaces)
    /// By the app's number in the device table.
    case broadcastExpired(Int, ordinal: UInt32)
    case task(TaskEffect)
    case listed(ListAcceptance)
    case controlPut([ControlRow], ControlEffect?)
}

/// A message whose record is on its way to the disk: what its acceptance needs of it. The content is in the record.
struct PendingAccept: BitwiseCopyable {
    let order: PushOrder
    let seq: Seq
    let messageID: MessageID
    let taskID: TaskID
    let acceptedAt: Instant
    let expiresAt: Instant
    /// Its place in the table: it stays there while a change of it is pending.
    let device: Int32
    let absences: UInt16
    let stub: StubNeed
    let wasOnline: Bool
    /// Its device is blocked: it ends at once.
    let isIgnored: Bool
    /// The record's place in its batch.
    let offset: UInt32
    let length: UInt32

    var receipt: PushReceipt { PushReceipt(taskID: taskID, cid: order.cid, wasOnline: wasOnline, isIgnored: isIgnored) }
}

/// Who waits for a device's record to be loaded or made.
enum DeviceWaiter {
    case admission(connection: UInt64)
    /// One.
    case push(PushOrders)
    /// One target of a placement.
    case list(ListPlacement, Int)
    /// One target of the step of a push to an audience.
    case tagTarget
    /// Its owner may have to be woken for a broadcast.
    case wake(CID)
    case status(StatusGathering, CID)
    case timeline(TimelineOrder)
    case single(SingleGathering, FoundTask)
    case tokenLoss(TokenClaim)
    case detail(DetailGathering)
    case removal(Removal)
    /// It may not have been seen for long.
    case retention
}

/// A read of the store under way.
enum PendingRead {
    /// The next messages of a device's stream, for this session.
    case stream(CID, SessionID, [Seq])
    /// The own alert of a message whose stub is due.
    case alert(CID, StubPlan)
    case control(ControlQuestion)
    /// For a stop.
    case stopping(SingleLook)
    /// For a revoke that is to be accepted when what is kept has been looked at.
    case revoking(PendingRevoke)
}
