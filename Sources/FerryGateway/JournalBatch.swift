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
    var effects: [CommitEffect] = []
    /// Highest `seq` in the records of each partition that has any.
    var highest: [Int: Seq] = [:]

    var isEmpty: Bool { writer.bytes.isEmpty }
}

/// A batch that the store has and has not answered.
struct UnsyncedBatch {
    let ticket: UInt64
    let bytes: Int
    let effects: [CommitEffect]
}

/// What waits for a record to be on disk.
enum CommitEffect {
    case messageAccepted(PendingAccept)
    case deviceRegistered(DeviceRegistration)
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
}

/// A message whose record is on its way to the disk.
final class PendingAccept: Sendable {
    let message: AcceptedMessage
    let order: PushOrder
    /// The record's place in its batch.
    let offset: UInt32
    let length: UInt32
    /// The device's when the message was taken.
    let absences: UInt16

    init(_ message: AcceptedMessage, _ order: PushOrder, offset: UInt32, length: UInt32, absences: UInt16) {
        self.message = message
        self.order = order
        self.offset = offset
        self.length = length
        self.absences = absences
    }
}

/// Who waits for a device's record to be loaded or made.
enum DeviceWaiter {
    case admission(connection: UInt64)
    case push(PushOrder)
    case status(StatusGathering, CID)
    case timeline(TimelineOrder)
    case tokenLoss(TokenClaim)
}

/// A read of the store under way.
enum PendingRead {
    /// The next messages of a device's stream, for this session.
    case stream(CID, SessionID, [Seq])
    /// The own alert of a message whose stub is due.
    case alert(CID, StubPlan)
}
