internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryReceipts
internal import FerryStore

/// What all shards share, none of it mutable here.
struct ShardEnvironment: Sendable {
    let configuration: GatewayConfiguration
    let clock: @Sendable () -> Instant
    /// What other machines' clocks are compared with.
    let wallClock: @Sendable () -> Instant
    let epoch: Epoch
    let store: any MessageStore
    let wake: any WakeChannel
    /// nil when no app wants receipts.
    let receipts: (any ReceiptChannel)?
    /// nil when it is switched off.
    let timeline: (any Timeline)?
    let composer: StubComposer
    let mailboxes: [Mailbox<ShardMessage>]
    /// nil where connections are handed in.
    let listeners: (device: Int32, http: Int32, link: Int32?)?
    /// Makes all random numbers come again; nil outside simulation.
    let seed: UInt64?
    /// Of the whole gateway.
    let connectionLimit: Int
    let census: ConnectionCensus
    let appCensus: AppCensus
    let memoryBudget: Budget
    let storeBudget: Budget
    let broadcastBudget: Budget
    let listBudget: Budget
    let quietShards = QuietShards()

    var shards: Int { mailboxes.count }

    /// Request ids may have a part of the memory only: they stay for a day, and must not keep pushes out for so long.
    var requestBytes: Int { min(configuration.requestBytes, memoryBudget.cap.value / 4) }

    var httpLimits: HTTPLimits {
        var limits = HTTPLimits()
        limits.bodyBytes = configuration.api.bodyBytes
        return limits
    }

    /// Memory that one shard may hold of contents that can be read again.
    var listContentBytes: Int { configuration.listContentBytes / shards }

    func owner(of app: AppID) -> Int { Partition(of: app).owner(among: shards) }
    func owner(of cid: CID) -> Int { Partition(of: cid).owner(among: shards) }
}
