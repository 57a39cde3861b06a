internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStore

/// What a shard has under way for tasks whose content is stored once.
struct ListWork {
    /// Of the apps that this shard owns.
    var table: ListTaskTable
    /// Calls for tasks whose record is on its way to the disk, by request.
    var creating: [Identifier128: [APIOrigin]] = [:]
    var contents: TaskContentCache
    /// Who waits for a content that is not in memory, by task.
    var wanted: [Identifier128: [ContentWaiter]] = [:]
    /// Read messages whose content is not all at hand, by the ticket of the read.
    var held: [UInt64: HeldRead] = [:]
    /// Calls that name a device for a task while the first that did is on its way to the disk, by request.
    var repeats: [Identifier128: [(origin: APIOrigin, place: Int32)]] = [:]
    var tags = TagWork()

    init(requestWindow: Duration, contentBytes: Int) {
        table = ListTaskTable(requestWindow: requestWindow)
        contents = TaskContentCache(limit: contentBytes)
    }

    /// Memory, about.
    var bytes: Int { table.count * ListTaskTable.bytesPerTask + contents.bytes + tags.bytes }
}

/// Who waits for the content of a task.
enum ContentWaiter {
    /// The owner of the app, for a call.
    case targets(ListTargetsOrder)
    /// Another shard.
    case shard(Int)
    /// A read under way, by its ticket.
    case read(UInt64)
    /// A push to an audience.
    case expansion(Identifier128)
}

struct HeldRead {
    let read: PendingRead
    var messages: [AcceptedMessage?]
    /// Tasks whose content has not come.
    var missing: Set<Identifier128>
}

/// What shards ask of each other for tasks with stored content.
enum ListOrder: Sendable {
    /// To the owner of the app.
    case create(ListCreation)
    /// To the owner of the app.
    case targets(ListTargetsOrder)
    /// To the owner of the app: which devices have these names. Answered by `resolved`.
    case resolve(ListTargets, App, APIOrigin)
    /// To the shard of the call; devices by name.
    case resolved(ListTargets, App, APIOrigin, [[CID]])
    /// To the owner of the devices.
    case place(ListPlacement)
    /// To the owner of the app; answered by `content`.
    case wantContent(AppID, Identifier128, shard: Int)
    /// nil: there is none any more.
    case content(Identifier128, TaskContent?)
    /// To every shard: fix who gets it. Answered by `gathered`.
    case gather(TagAudience)
    /// To the owner of the app: the part of this shard is on disk.
    case gathered(Identifier128, shard: Int)
    /// To every shard: nothing of it will be asked for again.
    case placedEverywhere(Identifier128)
    /// To the owner of the app, after a start. Answered by `placedEverywhere`, when that is so.
    case askPlaced(AppID, Identifier128, shard: Int)
}

/// A call for a task.
final class ListCreation: Sendable {
    let app: AppID
    let message: ListMessage
    /// Digests of (app, request id) and of the content.
    let request: Identifier128
    let digest: Identifier128
    /// nil: the call was answered when it came, for this time.
    let origin: APIOrigin?
    /// The task's name where it has one already.
    let task: TaskID?
    /// Who gets it; nil: who later calls name.
    let audience: ListAudience?

    init(
        _ app: AppID, _ message: ListMessage, _ audience: ListAudience?, origin: APIOrigin?, task: TaskID? = nil
    ) {
        self.app = app
        self.message = message
        self.audience = audience
        self.origin = origin
        self.task = task
        var name = ByteWriter()
        name.string(app.text.utf8)
        name.string(message.requestID.utf8)
        name.string((audience == nil ? "list" : "tag").utf8)
        request = name.bytes.withUnsafeBytes { Cryptography.sha256Half($0) }
        let content = message.contentDigestInput + (audience?.digestInput ?? [])
        digest = content.withUnsafeBytes { Cryptography.sha256Half($0) }
    }

    /// Under which the same call is known that came for a later time.
    var scheduleKey: Identifier128 { Shard.requestKey(app, message.requestID, "tag", []).key }
}

/// A call that names devices for a task.
final class ListTargetsOrder: Sendable {
    let app: AppID
    /// The app's `number`.
    let number: UInt32
    let task: Identifier128
    /// As the sender wrote it.
    let taskText: String
    let cids: [CID]
    let origin: APIOrigin

    init(app: App, task: Identifier128, taskText: String, cids: [CID], origin: APIOrigin) {
        self.app = app.id
        number = app.number
        self.task = task
        self.taskText = taskText
        self.cids = cids
        self.origin = origin
    }
}

/// Devices of one shard that are to get a task's content.
final class ListPlacement: Sendable {
    let content: TaskContent
    /// The app's `number`.
    let number: UInt32
    /// Each with its place in the call.
    let targets: [(cid: CID, place: Int32)]
    /// The call that named them. nil: no call waits, and that they come once is noted elsewhere.
    let origin: APIOrigin?

    init(content: TaskContent, number: UInt32, targets: [(cid: CID, place: Int32)], origin: APIOrigin?) {
        self.content = content
        self.number = number
        self.targets = targets
        self.origin = origin
    }
}

/// References of one placement whose records are on their way to the disk. One shard's own.
final class ListAcceptance {
    struct Entry: BitwiseCopyable {
        /// Index among the placement's targets.
        let target: Int32
        /// Its place in the table: it stays there while a change of it is pending.
        let device: Int32
        let seq: Seq
        let acceptedAt: Instant
        let expiresAt: Instant
        let absences: UInt16
        let stub: StubNeed
        let wasOnline: Bool
        let route: DeliveryRoute
        /// The device is blocked: it gets nothing.
        let isIgnored: Bool
        /// The record's place in its batch.
        let offset: UInt32
        let length: UInt32
    }

    let placement: ListPlacement
    var entries: [Entry] = []

    init(_ placement: ListPlacement) { self.placement = placement }
}
