internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// What other threads tell a shard through its mailbox.
enum ShardMessage: Sendable {
    case store([StoreEvent])
    /// A connection whose device this shard owns. The rare and large are held by reference: queues of messages keep the room
    /// that they had in the worst moment.
    indirect case handOver(HandOver)
    /// A backend's connection that another shard has accepted and counted.
    case backend(Transport, SocketAddress, Connection.Kind)
    case order(APIOrder)
    case reply(ShardReply)
    /// What one shard has for one link: all of a turn.
    case linkAnswers(LinkAnswers)
    case stubAnswered(CID, StubPlan, StubAnswer)
    /// Answered by `ShardReply.revoked`.
    case apiTokenRevoked(digest: [UInt8], expiresAt: Instant, APIOrigin)
    /// A broadcast is on disk: it is to get its places in this shard's partitions.
    case place(BroadcastContent)
    /// Tells the owner of the app that its places here are on disk.
    case placesKnown(Identifier128)
    case task(TaskMessage)
    /// A device's record names this token now: to the shard that keeps the token's place.
    case tokenClaimed(TokenClaim)
    /// A device names it no more.
    case tokenGivenUp(TokenClaim)
    /// Another device has claimed the token: to the owner of the one that had it, `holder`.
    case tokenLost(TokenClaim, holder: CID)
    /// The log has answered for a device of this shard, which was so when it was asked.
    case timelineRead(TimelineOrder, Result<[UInt8], APIError>)
    case report(ReportMail)
    case presence(PresenceMail)
    /// From the channel of receipts.
    case receiptNews(ReceiptNews)
    case snapshot(@Sendable (ShardSnapshot) -> Void)
    /// Stop taking connections and requests, finish what is accepted, then end the thread.
    case drain
}

/// A device and the push token that its record names.
struct TokenClaim: Sendable {
    let app: AppID
    let token: PushToken
    let cid: CID

    var digest: UInt64 { token.digest(app: app) }
}

/// A connection on its way from the shard that accepted it to the one that owns its device. The descriptor goes along.
struct HandOver: Sendable {
    let transport: Transport
    let peer: SocketAddress
    let handshake: HandshakeStateMachine
    let admission: Admission
    let cid: CID
}

/// Where an API answer goes: a place in the order of answers of one backend's connection, on a link the push's number.
struct APIOrigin: Hashable, Sendable, BitwiseCopyable {
    let shard: Int
    let connection: UInt64
    let slot: UInt64
}

/// What a shard asks of a device's owner for a backend.
enum APIOrder: Sendable {
    /// All of a turn.
    case pushes(PushOrders)
    /// To the owner of the app.
    case broadcast(BroadcastOrder)
    case list(ListOrder)
    /// Devices of this owner only.
    case status(AppID, [CID], APIOrigin)
    case timeline(TimelineOrder)
    /// To the owner of the app.
    case task(TaskOrder)
    case user(UserOrder)
    case census(AppID, CensusOrder, APIOrigin)
}

/// How a push over a link is called.
struct LinkNames: Sendable, BitwiseCopyable {
    /// The backend's id, under which devices get the message too.
    let message: Identifier128
    /// Made of that id with the app's secret salt, so that no app can choose a task's name.
    let task: Identifier128
}

/// Outcomes of pushes for one link, from the owners of their devices.
struct LinkAnswers: Sendable {
    /// The link's shard, and its connection there.
    let shard: Int
    let connection: UInt64
    var accepted: [UInt64] = []
    var refused: [(number: UInt64, error: APIError)] = []
}

/// Outcomes of pushes of one batch, from an owner of some of its devices.
struct BatchOutcomes: Sendable {
    let origin: APIOrigin
    var accepted: [(place: Int32, receipt: PushReceipt)] = []
    var refused: [(place: Int32, error: APIError)] = []
}

/// What the owner answers.
enum ShardReply: Sendable {
    /// Pushes that came by themselves, all of a turn.
    case accepted([(origin: APIOrigin, receipt: PushReceipt)])
    case refused(APIOrigin, APIError)
    /// A call of which nothing else waits.
    case settled(APIOrigin, Result<APIAnswer, APIError>)
    case batch(BatchOutcomes)
    /// What one owner found for a call about users.
    case user(APIOrigin, UserPart)
    case broadcast(APIOrigin, Result<TaskID, APIError>)
    /// Devices that are not registered with the app are left out.
    /// The shard takes the token no more.
    case revoked(APIOrigin)
    /// One JSON object.
    case timeline(APIOrigin, Result<[UInt8], APIError>)
    case status(APIOrigin, [(cid: CID, isOnline: Bool, seenAt: Instant)], isComplete: Bool)
    case census(APIOrigin, DeviceCensus)
}

/// An accepted message, as the API tells of it.
struct PushReceipt: Sendable, Equatable, BitwiseCopyable {
    let taskID: TaskID
    let cid: CID
    let wasOnline: Bool
    /// The device is blocked, or the message's own filter passes it over: nothing is sent.
    let isIgnored: Bool

    init(taskID: TaskID, cid: CID, wasOnline: Bool, isIgnored: Bool = false) {
        self.taskID = taskID
        self.cid = cid
        self.wasOnline = wasOnline
        self.isIgnored = isIgnored
    }

    var status: PushStatus { isIgnored ? .ignored : wasOnline ? .online : .offline }
}
