internal import FerryAPI
internal import FerryCore
internal import FerryStore
internal import FerryWire

/// A broadcast's content, in memory once for all shards and devices, for as long as any of them may still send it.
final class BroadcastContent: Sendable {
    let broadcast: AcceptedBroadcast
    let frame: SharedPush
    /// The same with its payload compressed, for devices that take that; nil where it is too short or does not shrink.
    let compressedFrame: SharedPush?
    let compressedCount: Int
    private let budget: Budget

    /// `budget` has been charged with `broadcast.payload.count`; it is charged with `compressed`, what a push carries instead of
    /// the payload, and gets all back with the memory.
    init(_ broadcast: AcceptedBroadcast, compressed: [UInt8]?, budget: Budget) {
        self.broadcast = broadcast
        frame = SharedPush(
            messageID: broadcast.messageID, taskID: broadcast.taskID,
            // What is on disk was checked when it came in.
            payload: Array(broadcast.payload.prefix(Limits.payloadBytes)))
        compressedFrame = compressed.map {
            SharedPush(messageID: broadcast.messageID, taskID: broadcast.taskID, payload: $0)
        }
        compressedCount = compressed?.count ?? 0
        self.budget = budget
        budget.change(by: compressedCount)
    }

    deinit { budget.change(by: -broadcast.payload.count - compressedCount) }
}

/// A call for a push to many, on its way from the shard that it came in at to the owner of the app.
final class AppOrder<Push: Sendable>: Sendable {
    let app: AppID
    let push: Push
    let key: RequestKey
    let origin: APIOrigin

    init(app: AppID, push: Push, key: RequestKey, origin: APIOrigin) {
        self.app = app
        self.push = push
        self.key = key
        self.origin = origin
    }
}

typealias BroadcastOrder = AppOrder<BroadcastPush>
/// For a later time.
typealias ScheduleOrder = AppOrder<ScheduledPush>

/// Places that a shard is to give to a broadcast.
struct WantedPlaces: Sendable {
    let content: BroadcastContent
    /// By the shard's own numbers of its partitions; nil: all of them.
    let lacking: [Bool]?
    /// Its sender stopped it before it had these.
    var isStopped = false

    func isWanted(_ local: Int) -> Bool { lacking?[local] ?? true }
}

/// Places whose record is on its way to the disk.
final class PendingPlaces: Sendable {
    let wanted: WantedPlaces
    /// By the shard's own numbers of its partitions, zero for none.
    let seqs: [Seq]
    /// Devices that it was counted for when its places were drawn; others may register before those are on disk.
    let counted: Int

    init(_ wanted: WantedPlaces, seqs: [Seq], counted: Int) {
        self.wanted = wanted
        self.seqs = seqs
        self.counted = counted
    }
}

/// What the owner of an app knows of a broadcast whose places are not all on disk.
struct PlacingBroadcast {
    let content: BroadcastContent
    /// Shards that have not said that theirs are.
    var missing: Int
    /// Calls that wait for the answer.
    var waiting: [APIOrigin]
}

/// A broadcast whose content this shard keeps on disk, until the tables have it.
struct OwnBroadcast {
    /// Without its payload.
    let broadcast: AcceptedBroadcast
    let segment: UInt32
}
