package import FerryCore

/// One message to be read for a flush.
package struct MessageReference: Equatable, Sendable {
    package var cid: CID
    package var seq: Seq
    /// Where it was accepted. When that segment has retired, the store finds the message in its tables by (cid, seq).
    package var location: RecordLocation

    package init(cid: CID, seq: Seq, location: RecordLocation) {
        self.cid = cid
        self.seq = seq
        self.location = location
    }
}

/// A shard's answer to `StoreEvent.segmentRetiring`: all that depends on the segment and on earlier ones.
///
/// It tells of the moment at which it is submitted: a device's gap counts exactly the drops whose `settled` records this
/// shard has asked to append before, answered or not. The store notes that moment with the row, so that a restart counts
/// no drop twice.
package struct SegmentRemains: Equatable, Sendable {
    /// Devices whose row changed in the segment (by any record but accepts), as they are now.
    package var devices: [DeviceRecord] = []
    /// Devices whose gap counts drops of this segment's messages that have no record on disk. Such a row must be on disk
    /// exactly when the segment is past: beside the messages themselves it would tell of them, and they would be kept again.
    package var carryingDevices: [DeviceRecord] = []
    /// Devices whose removal was journalled in the segment and that are not there.
    package var removed: [CID] = []
    /// Messages of the segment that are still kept.
    package var kept: [MessageReference] = []
    /// Request ids answered in the segment that are still within their window.
    package var requests: [(key: Identifier128, answer: RequestAnswer)] = []
    /// Broadcasts and places that were accepted in the segment and are not to be forgotten yet.
    package var broadcasts: [RetainedBroadcast] = []
    package var placements: [RetainedPlacement] = []
    /// Broadcasts that were stopped in the segment, with the time at which that may be forgotten.
    package var stops: [(task: Identifier128, forgetAt: Instant)] = []
    /// Revoked API tokens that have not expired.
    package var revokedTokens: [(digest: [UInt8], expiresAt: Instant)] = []
    /// Control rows that changed in the segment, as they are now; nil values are deleted.
    package var controlRows: [ControlRow] = []

    package init() {}

    package static func == (left: Self, right: Self) -> Bool {
        left.devices == right.devices && left.carryingDevices == right.carryingDevices && left.kept == right.kept
            && left.broadcasts == right.broadcasts && left.placements == right.placements
            && left.stops.elementsEqual(right.stops) { $0 == $1 }
            && left.controlRows == right.controlRows && left.removed == right.removed
            && left.requests.elementsEqual(right.requests) { $0.key == $1.key && $0.answer == $1.answer }
            && left.revokedTokens.elementsEqual(right.revokedTokens) {
                $0.digest == $1.digest && $0.expiresAt == $1.expiresAt
            }
    }
}

/// What a shard asks of the store. Nothing here is answered by waiting: answers are `StoreEvent`s.
package enum StoreRequest: Sendable {
    /// Appends `records`, encoded by `RecordCodec`, in one piece. Answered, after the sync, by `.committed` or `.refused`
    /// with the same ticket; a shard's appends are answered in the order in which they were asked for.
    /// `knowing` is the highest ticket of whose refusal the shard knows, 0 for none: what was made without knowing of the last one
    /// is refused too, so that nothing is on disk that counts on what is not.
    case append(ticket: UInt64, records: [UInt8], highest: [(partition: Partition, seq: Seq)], knowing: UInt64)
    /// Removes table rows of messages that ended, once everything appended before by this shard has its answer, whichever.
    /// A drop that a gap tells of must be on disk before; of other ends no record is missed. For messages of retired segments, and for those that `.remains` has named; asked for no later than the `.remains` of the segment
    /// that holds the record of the end.
    case forget([(cid: CID, seq: Seq)])
    /// Answered by `.messages`, in the same order, nil for what is no longer there (or cannot be read, which is reported).
    case read(ticket: UInt64, [MessageReference])
    /// Answered by `.device`.
    case load(CID)
    /// Rows of the tables with a key behind `after`, in order, at most `limit`; what is only in the journal is not among them.
    /// Answered by `.controlRows` or `.readFailed`.
    case readControl(ticket: UInt64, ControlTable, Partition, after: [UInt8]?, limit: Int)
    /// A part of the answer to `.segmentRetiring`; the last part says so.
    case remains(segment: UInt32, SegmentRemains, isLast: Bool)
}

/// What the store tells a shard, through the shard's mailbox.
package enum StoreEvent: Sendable {
    /// The records of that append lie at `offset` of `segment`, synced.
    case committed(ticket: UInt64, segment: UInt32, offset: UInt32)
    /// The append is not on disk and will not be after a restart either.
    case refused(ticket: UInt64, StoreFailure)
    case messages(ticket: UInt64, [AcceptedMessage?])
    case device(CID, DeviceRecord?)
    /// `isEnd`: there are no more behind these.
    case controlRows(ticket: UInt64, [ControlRow], isEnd: Bool)
    /// The disk did not let the store look; what was asked for may well be there. Ask again later.
    case readFailed(ticket: UInt64, StoreFailure)
    case loadFailed(CID, StoreFailure)
    /// Less than the reserve is left on the disk, or enough again. At the start there is enough. What is appended
    /// meanwhile is still written while there is any room: the shards decide what they do without.
    case roomChanged(isShort: Bool)
    /// Send `.remains` for this segment, in as many parts as suit the shard. No append of the future lands in it.
    case segmentRetiring(UInt32)
    /// Segments up to this one are gone: what was kept in them is in the tables now.
    case segmentRetired(UInt32)
}

/// Why the store could not do what it was asked.
package struct StoreFailure: Error, Sendable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// No room on the disk.
        case full
        /// The disk, or the file system, refused.
        case disk
        /// What is on disk is not what was written.
        case corrupted
        /// The folder is not ours: another version, or another gateway holds it.
        case refused
    }
    package var kind: Kind
    /// One sentence with the culprit and, where there is one, the fix.
    package var description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}

/// The store, whichever implementation. Safe to call from any thread; calls return at once.
package protocol MessageStore: AnyObject, Sendable {
    /// What was found at opening; handed out once.
    func takeRecovery() -> Recovery
    /// Starts the store's threads. Events for shard i go to `sinks[i]`, each call a batch in order.
    func start(sinks: [@Sendable ([StoreEvent]) -> Void]) throws
    func submit(_ requests: [StoreRequest], from shard: Int)
    /// Finishes what was submitted, syncs and stops the threads.
    func close()
}

/// The state that the journal and the tables hold at opening.
package struct Recovery: Sendable {
    package var epoch: Epoch
    /// Never below any time that was journalled.
    package var lastTime: Instant
    /// Highest `seq` of each partition, indexed by partition.
    package var highest: [Seq]
    /// Devices with kept messages, untold gaps or changes that are in the journal alone.
    package var devices: [RecoveredDevice]
    /// Every device that there is.
    package var known: [KnownDevice]
    /// Devices whose removal is in the journal, with its segment; some may have registered anew.
    package var removed: [(cid: CID, segment: UInt32)]
    /// A key may come twice, with the same answer. Segment 0 stands for the tables.
    package var requests: [(key: Identifier128, answer: RequestAnswer, segment: UInt32)]
    package var revokedTokens: [(digest: [UInt8], expiresAt: Instant, segment: UInt32)]
    /// Control rows that are there, queues excepted, and all that the journal tells of, those without a value too. Segment 0
    /// stands for the tables.
    package var controlRows: [(row: ControlRow, segment: UInt32)]
    /// Every device with a push token. A token may be there twice when the gateway went down between a device's claim to it
    /// and the other's loss of it.
    package var tokenHolders: [TokenHolder]
    /// In order of acceptance; those that are over among them, without payload, until they are forgotten: of each app the
    /// newest `AcceptedBroadcast.overAtMost`.
    package var broadcasts: [RecoveredBroadcast]
    /// How many devices each app has in each partition.
    package var registered: [AppID: [UInt32]]
    /// What is older is in the tables.
    package var firstSegment: UInt32

    package init(epoch: Epoch, lastTime: Instant, highest: [Seq], firstSegment: UInt32) {
        self.epoch = epoch
        self.lastTime = lastTime
        self.highest = highest
        self.firstSegment = firstSegment
        devices = []
        requests = []
        revokedTokens = []
        controlRows = []
        tokenHolders = []
        known = []
        removed = []
        broadcasts = []
        registered = [:]
    }
}

/// A broadcast that outlives the segment of its record.
package struct RetainedBroadcast: Equatable, Sendable {
    package var broadcast: AcceptedBroadcast
    package var forgetAt: Instant

    package init(_ broadcast: AcceptedBroadcast, forgetAt: Instant) {
        self.broadcast = broadcast
        self.forgetAt = forgetAt
    }
}

/// Places of a broadcast that outlive the segment of their record.
package struct RetainedPlacement: Equatable, Sendable {
    package var placement: BroadcastPlacement
    package var forgetAt: Instant

    package init(_ placement: BroadcastPlacement, forgetAt: Instant) {
        self.placement = placement
        self.forgetAt = forgetAt
    }
}

/// A broadcast that was found at opening. Arrays are indexed by partition.
package struct RecoveredBroadcast: Equatable, Sendable {
    package var broadcast: AcceptedBroadcast
    /// Its time was over at the last time that is on disk, or its sender stopped it.
    package let isOver: Bool
    /// Of its record; 0 when the tables have it.
    package var contentSegment: UInt32 = 0
    /// Of the record that its sender stopped it: 0 when the tables have that, nil when he did not.
    package var stopSegment: UInt32?
    /// Zero where it has no place yet.
    package var places = Self.nowhere
    /// Of the records of its places; 0 when the tables have them.
    package var placeSegments = Self.nothing
    /// How many registered devices have not acknowledged it; 0 for one that is over.
    package var waiting = Self.nothing

    // There may be thousands: what is all zero is one array for all.
    static let nowhere = [Seq](repeating: .zero, count: Limits.partitions)
    static let nothing = [UInt32](repeating: 0, count: Limits.partitions)

    package init(_ broadcast: AcceptedBroadcast, isOver: Bool) {
        self.broadcast = broadcast
        self.isOver = isOver
    }
}

/// A device that is registered, in memory or not.
package struct KnownDevice: Equatable, Sendable {
    package var app: AppID
    package var cid: CID
    /// The last login.
    package var seenAt: Instant
    package var hasToken: Bool

    init(_ record: DeviceRecord) {
        app = record.app
        cid = record.cid
        seenAt = record.seenAt
        hasToken = record.token != nil
    }
}

package struct TokenHolder: Equatable, Sendable {
    package var app: AppID
    package var token: PushToken
    package var cid: CID
    /// The device's last login: of two holders the later one has the better claim.
    package var seenAt: Instant

    package init?(_ record: DeviceRecord) {
        guard let token = record.token else { return nil }
        self.token = token
        app = record.app
        cid = record.cid
        seenAt = record.seenAt
    }
}

package struct RecoveredDevice: Equatable, Sendable {
    package var record: DeviceRecord
    /// In order of `seq`; all above `record.acknowledged`.
    package var kept: [RecoveredMessage]
    /// Of `kept`, in the same order, where `StoreOptions.namesMessages` asks for them; otherwise empty.
    package var names: [RecoveredName] = []
    /// The first segment with a change of the record that the tables do not have; nil when the row is up to date.
    package var firstChangedSegment: UInt32?

    package init(record: DeviceRecord, kept: [RecoveredMessage], firstChangedSegment: UInt32?) {
        self.record = record
        self.kept = kept
        self.firstChangedSegment = firstChangedSegment
    }
}

/// What a kept message is called outside.
package struct RecoveredName: Equatable, Sendable {
    package var taskID: TaskID
    package var messageID: MessageID
    /// `MessageTraits.callback`; nil where the record only refers to a content.
    package var callback: String?

    init(_ fields: AcceptedFields) {
        callback = fields.traits.isEmpty ? nil : MessageTraits(encoded: fields.traits)?.callback
        taskID = fields.taskID
        messageID = fields.messageID
    }
}

/// What the RAM index needs of a kept message.
package struct RecoveredMessage: Equatable, Sendable {
    package var seq: Seq
    package var expiresAt: Instant
    package var isLiveOnly: Bool
    package var payloadBytes: UInt32
    package var hasOwnAlert: Bool
    package var route: DeliveryRoute
    /// `.due` until a `stubSettled` covers it; nil once settled.
    package var stub: StubNeed?
    package var location: RecordLocation
    /// Its content is its task's; `payloadBytes` is the size of that.
    package var isReference: Bool
    /// Of a reference.
    package var task: Identifier128?

    package init(
        seq: Seq, expiresAt: Instant, isLiveOnly: Bool, payloadBytes: UInt32, hasOwnAlert: Bool,
        route: DeliveryRoute = .ownFirst, stub: StubNeed?, location: RecordLocation, isReference: Bool = false,
        task: Identifier128? = nil
    ) {
        self.seq = seq
        self.expiresAt = expiresAt
        self.isLiveOnly = isLiveOnly
        self.payloadBytes = payloadBytes
        self.hasOwnAlert = hasOwnAlert
        self.route = route
        self.stub = stub
        self.location = location
        self.isReference = isReference
        self.task = task
    }
}
