package import FerryAPI
package import FerryCore
package import FerryIO
package import FerryReceipts
package import FerryRouting
package import FerrySession

/// Everything that a gateway is started with. Defaults are those of `ferry serve` without options.
package struct GatewayConfiguration: Sendable {
    package enum Store: Sendable {
        /// A data folder.
        case embedded(folder: String)
        /// Nothing survives the process.
        case memory
    }

    package var deviceListen = SocketAddress(address: SocketAddress.loopback, port: 7700)
    package var httpListen = SocketAddress(address: SocketAddress.loopback, port: 7800)
    /// For backends' links; nil: none.
    package var linkListen: SocketAddress? = SocketAddress(address: SocketAddress.loopback, port: 7900)
    package var store = Store.embedded(folder: "data")
    /// Where wake-ups are written; nil drops them, answered as refused.
    package var outboxPath: String?
    /// Threads, one with its own event loop each.
    package var shards = 1
    package var apps = AppRegistry([])
    package var identity: Identity
    package var delivery = DeliveryPolicy()
    package var session = SessionPolicy()
    package var link = LinkPolicy()
    /// Payloads of at least so many bytes are compressed for devices that take it; nil: none.
    package var compressionBytes: Int? = 1_024
    package var api = APILimits()
    package var stubTitle: String?
    package var stubText = "You have a new message"
    /// A device that was not seen for so long is removed; nil: none is.
    package var deviceRetention: Duration? = .seconds(90 * 86_400)
    /// How long a request id is remembered.
    package var requestWindow = Duration.seconds(24 * 3_600)
    /// Memory for request ids, over all shards.
    package var requestBytes = 256 * 1024 * 1024
    /// How far a backend's clock may be off at `/auth`.
    package var authClockSkew = Duration.seconds(600)
    /// Bytes accepted by one shard and not synced yet above which pushes are answered busy.
    package var unsyncedBytes = 64 * 1024 * 1024
    /// What of the process's memory may grow with load, by the gateway's own estimate, over all shards. nil is the usual
    /// half of what the machine has.
    package var memoryBytes: Cap?
    /// Payload bytes of all kept messages. Unlimited by default, as `diskReserveBytes` keeps the disk from running full.
    package var storeBytes = Cap.unlimited
    /// Payload bytes in memory of pushes to all that are not over.
    package var broadcastBytes: Cap = 67_108_864
    /// Of these at most so many for one app.
    package var broadcastsPerApp = 100
    /// So many of one app are taken within an hour.
    package var broadcastsPerHour = 1_000
    /// Owners of devices that are away woken for pushes to all, a second, over all apps.
    package var broadcastWakesPerSecond = 1_000
    /// Calls of one app that wait for their time.
    package var scheduledPerApp = 1_000
    /// For so long after its end a device that missed a push to all is told that it did.
    package var broadcastRetention = Duration.seconds(7 * 86_400)
    /// Tasks with stored content that one app has at once.
    package var listTasksPerApp = 100_000
    /// Payload bytes of such tasks on the disk.
    package var listStoreBytes: Cap = 4_294_967_296
    /// Memory for the contents of such tasks; what it has no room for is read when it is needed.
    package var listContentBytes = 67_108_864
    /// Free bytes on the disk below which no push is taken; nil is eight times `segmentBytes`.
    package var diskReserveBytes: Int?
    /// How long a stop waits for what is on its way.
    package var drainDeadline = Duration.seconds(10)
    package var segmentBytes = 64 * 1024 * 1024
    package var keptSegments = 4
    /// How long facts stay in the timeline log, where `timelineBytes` suffices.
    package var timelineAge = Duration.seconds(24 * 3_600)
    /// Of the timeline's files together; nil switches the log off.
    package var timelineBytes: Int? = 2 << 30
    /// How far ahead of UTC the clocks are by which reports count days.
    package var reportOffset = UTCOffset(minutes: 480)
    /// For so many days tasks and days are reported.
    package var reportDays = 90
    /// Tasks that are reported; of more the oldest that have ended are forgotten.
    package var reportTasks = 20_000
    /// How long receipts wait for their endpoints, and how many.
    package var receipts = ReceiptPolicy()
    /// A file to note in what has been synced, for the crash campaign.
    package var witnessPath: String?
    /// Opens a damaged data folder with what can be read of it, in a new epoch.
    package var acceptsLoss = false
    /// Connections of all kinds that are held at once; nil takes it from the descriptor limit.
    package var connectionLimit: Int?

    /// `memoryBytes`, or the usual; unlimited where nobody can say what the machine has.
    func usedMemoryBytes(machine: Int?) -> Cap { memoryBytes ?? machine.map { Cap($0 / 2) } ?? .unlimited }

    /// `diskReserveBytes`, or the usual: two segments for the journal's next one and what the tables write at once, some for
    /// what is written while pushes are refused, and 256 MiB with the usual segments for a while in which the tables merge.
    var usedDiskReserve: Int { diskReserveBytes ?? segmentBytes * 8 }

    package init(identity: Identity) { self.identity = identity }
}
