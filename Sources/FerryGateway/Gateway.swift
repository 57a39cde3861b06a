internal import FerryAPI
package import FerryAPNS
internal import FerryCore
package import FerryIO
internal import FerryReceipts
internal import FerryRouting
package import FerryStore
internal import Synchronization

/// The running gateway: the store, the listeners and the shards, in that order; stopped in the reverse one.
package final class Gateway: Sendable {
    /// Where devices and backends reach it, with the ports that were picked.
    package let deviceAddress: SocketAddress
    package let httpAddress: SocketAddress
    /// For backends' links; nil: there is none.
    package let linkAddress: SocketAddress?

    private let store: any MessageStore
    private let wake: any WakeChannel
    private let receipts: (any ReceiptChannel)?
    private let clock: GatewayClock
    private let timeline: (any Timeline)?
    private let mailboxes: [Mailbox<ShardMessage>]
    private let threads: [OSThread]
    private let listeners: [Int32]

    /// Connections at most where the configuration does not say.
    private static let usualConnectionLimit = 1 << 20

    /// Opens what the configuration names and starts. Errors are sentences for people.
    /// - Parameter progress: told while the journal is read, segments done and all.
    package static func open(
        _ configuration: GatewayConfiguration, progress: @escaping @Sendable (_ done: Int, _ all: Int) -> Void
    ) throws -> Gateway {
        let clock = GatewayClock { note($0) }
        var options = storeOptions(configuration, clock: { clock.now })
        options.progress = progress
        let store: EmbeddedStore
        switch configuration.store {
        case .embedded(let folder):
            options.folder = folder
            store = try EmbeddedStore.open(options)
        case .memory: store = try EmbeddedStore.inMemory(options)
        }
        do {
            let wake: any WakeChannel =
                if let path = configuration.outboxPath { try OutboxChannel(path: path) } else { NoChannel() }
            return try Gateway(configuration: configuration, store: store, wake: wake, clock: clock)
        } catch {
            store.close()
            throw error
        }
    }

    static func storeOptions(
        _ configuration: GatewayConfiguration, clock: @escaping @Sendable () -> Instant
    ) -> StoreOptions {
        var options = StoreOptions(folder: "", clock: clock)
        options.segmentBytes = configuration.segmentBytes
        options.keptSegments = configuration.keptSegments
        options.diskReserveBytes = configuration.usedDiskReserve
        options.tableFiles = DescriptorPlan(configuration).tableFiles
        options.requestWindow = configuration.requestWindow
        options.salvage = configuration.acceptsLoss
        options.witness = configuration.witnessPath
        options.namesMessages = configuration.apps.all.contains { $0.receipts != nil }
        options.report = { EventLog.write(.error, "store", ["reason": $0.description]) }
        return options
    }

    /// - Parameter clock: also the store's, so that what the shards call a time and what the journal takes for the last one
    ///   are of one kind: where the wall clock was put back, the start after next must not fall behind this life's times.
    package init(
        configuration: GatewayConfiguration, store: any MessageStore, wake: any WakeChannel, clock: GatewayClock
    ) throws {
        let recovery = store.takeRecovery()
        clock.raise(to: recovery.lastTime)
        self.clock = clock
        listeners = try Self.listen(
            [configuration.deviceListen, configuration.httpListen] + [configuration.linkListen].compactMap { $0 })
        let (deviceListener, httpListener) = (listeners[0], listeners[1])
        let linkListener = listeners.count > 2 ? listeners[2] : nil
        deviceAddress = SocketAddress(
            address: configuration.deviceListen.address, port: try Socket.localPort(deviceListener))
        httpAddress = SocketAddress(address: configuration.httpListen.address, port: try Socket.localPort(httpListener))
        linkAddress =
            if let wanted = configuration.linkListen, let linkListener {
                SocketAddress(address: wanted.address, port: try Socket.localPort(linkListener))
            } else { nil }
        let shards = max(1, configuration.shards)
        var mailboxes: [Mailbox<ShardMessage>] = []
        for _ in 0..<shards { mailboxes.append(try Mailbox<ShardMessage>()) }
        self.mailboxes = mailboxes
        self.store = store
        self.wake = wake
        let timeline = try Self.timeline(configuration, clock: { clock.now })
        self.timeline = timeline
        let receipts = try Self.receipts(configuration, clock: { clock.now })
        self.receipts = receipts
        // Each shard sets aside address space for this many; a limit of "infinity" is a billion.
        let limit = min(
            configuration.connectionLimit ?? Self.usualConnectionLimit, DescriptorPlan(configuration).connections)
        let environment = ShardEnvironment(
            configuration: configuration, clock: { clock.now }, wallClock: { clock.wall },
            epoch: recovery.epoch, store: store, wake: wake, receipts: receipts,
            timeline: timeline, composer: StubComposer(title: configuration.stubTitle, text: configuration.stubText),
            mailboxes: mailboxes,
            listeners: (deviceListener, httpListener, linkListener), seed: nil, connectionLimit: limit,
            census: ConnectionCensus(limit: limit), appCensus: AppCensus(configuration.apps),
            memoryBudget: Budget(
                key: "memoryBytes", cap: configuration.usedMemoryBytes(machine: MachineMemory.bytes())),
            storeBudget: Budget(key: "storeBytes", cap: configuration.storeBytes),
            broadcastBudget: Budget(key: "broadcastBytes", cap: configuration.broadcastBytes),
            listBudget: Budget(key: "listStoreBytes", cap: configuration.listStoreBytes))
        try store.start(
            sinks: mailboxes.map { mailbox in { @Sendable events in mailbox.post(.store(events)) } })
        let parts = ShardRecovery.divide(recovery, among: shards, environment)
        let starts = try Mailbox<SystemError?>()
        var started: [OSThread] = []
        for index in 0..<shards {
            let part = parts[index]
            let mailbox = mailboxes[index]
            let thread = try OSThread(name: "shard-\(index)") {
                do throws(SystemError) {
                    var shard = try Shard(index: index, environment: environment, mailbox: mailbox, recovery: part)
                    starts.post(nil)
                    shard.run()
                } catch {
                    starts.post(error)
                }
            }
            started.append(thread)
        }
        threads = started
        // Ready means that every shard runs: with one missing, its devices would find nobody.
        if let failure = try Self.firstFailure(of: shards, starts) {
            stop()
            throw failure
        }
        MachineMemory.trim()
    }

    /// All of them or none.
    private static func listen(_ addresses: [SocketAddress]) throws(SystemError) -> [Int32] {
        var listeners: [Int32] = []
        do throws(SystemError) {
            for address in addresses { listeners.append(try Socket.listen(address)) }
            return listeners
        } catch {
            for listener in listeners { Socket.close(listener) }
            throw error
        }
    }

    private static func firstFailure(of shards: Int, _ starts: Mailbox<SystemError?>) throws -> SystemError? {
        let poller = try Poller()
        try poller.add(starts.descriptor, .readable, token: 0)
        var told: [SystemError?] = []
        while told.count < shards {
            _ = poller.wait(milliseconds: -1)
            var batch: [SystemError?] = []
            starts.drain(into: &batch)
            told += batch
        }
        return told.compactMap { $0 }.first
    }

    /// The sum of all shards, as each sees itself now.
    package func snapshot(_ tell: @escaping @Sendable (ShardSnapshot) -> Void) {
        let gathered = SnapshotSum(expected: mailboxes.count, tell: tell)
        for mailbox in mailboxes { mailbox.post(.snapshot { gathered.add($0) }) }
    }

    /// An operator says that the machine's clock, which made a step, is right; whether it had.
    package func confirmClockStep() -> Bool { clock.confirmStep() }

    private static func note(_ notice: ClockDiscipline.Notice) {
        switch notice {
        case .stepped(let by):
            EventLog.write(
                .error, "wall clock stepped; the gateway's time does not follow yet",
                ["aheadMs": "\(by.inMilliseconds)", "followsInSeconds": "600", "orAtOnce": "signal USR1"])
        case .confirmed(let by):
            EventLog.write(.warning, "wall clock step is followed slowly", ["aheadMs": "\(by.inMilliseconds)"])
        case .settled: EventLog.write(.info, "wall clock and the gateway's time agree")
        }
    }

    /// Takes no more work, finishes what was accepted, and returns when all of it is on disk.
    package func stop() {
        // They may need long, and nothing is lost with them.
        timeline?.refuseQuestions()
        for mailbox in mailboxes { mailbox.post(.drain) }
        for thread in threads { thread.join() }
        for listener in listeners { Socket.close(listener) }
        wake.close()
        receipts?.close()
        timeline?.close()
        store.close()
    }

    /// nil when no app wants receipts.
    private static func receipts(
        _ configuration: GatewayConfiguration, clock: @escaping @Sendable () -> Instant
    ) throws -> (any ReceiptChannel)? {
        let clients = configuration.apps.all.compactMap { app in
            app.receipts.map { ReceiptSender.Client(app: app.id, masterSecret: app.masterSecret, target: $0) }
        }
        return clients.isEmpty ? nil : try ReceiptSender(clients, policy: configuration.receipts, clock: clock)
    }

    /// A log in memory is smaller than one on disk may be.
    private static let memoryTimelineBytes = 64 << 20

    static func timeline(
        _ configuration: GatewayConfiguration, clock: @escaping @Sendable () -> Instant
    ) throws -> (any Timeline)? {
        guard let bytes = configuration.timelineBytes else { return nil }
        var options = TimelineOptions(clock: clock)
        options.age = configuration.timelineAge
        options.report = { EventLog.write(.error, "timeline", ["reason": $0.description]) }
        switch configuration.store {
        case .embedded(let folder):
            options.bytes = bytes
            // Two segments above where pushes are refused: the log has given way before that.
            options.reservedBytes = configuration.usedDiskReserve + 2 * configuration.segmentBytes
            return try EmbeddedTimeline(options, disk: FileDisk(folder: folder + "/timeline"))
        case .memory:
            options.bytes = min(bytes, memoryTimelineBytes)
            return try EmbeddedTimeline(options, disk: MemoryDisk(remembersSyncs: false))
        }
    }
}

/// No way to wake anybody: every stub is refused, and recorded as that.
final class NoChannel: WakeChannel {
    func request(_ stub: StubRequest, answer: @escaping @Sendable (StubAnswer) -> Void) {
        answer(.refused("this gateway has no wake-up channel"))
    }

    func close() {}
}

/// Adds the shards' snapshots as they come.
private final class SnapshotSum: Sendable {
    private let state: Mutex<(missing: Int, sum: ShardSnapshot)>
    private let tell: @Sendable (ShardSnapshot) -> Void

    init(expected: Int, tell: @escaping @Sendable (ShardSnapshot) -> Void) {
        state = Mutex((expected, ShardSnapshot()))
        self.tell = tell
    }

    func add(_ snapshot: ShardSnapshot) {
        let complete: ShardSnapshot? = state.withLock { state in
            state.missing -= 1
            state.sum = state.sum + snapshot
            return state.missing == 0 ? state.sum : nil
        }
        if let complete { tell(complete) }
    }
}
