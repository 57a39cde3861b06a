internal import FerryAPI
package import FerryAPNS
package import FerryCore
package import FerryIO
package import FerryReceipts
package import FerryStore

/// The gateway without threads, listeners or a clock of its own: the same shards, each turned by hand. What it does depends on
/// nothing but its configuration, its store, its seed, and what it is given in what order. For simulation.
package final class SteppedGateway {
    private final class Box {
        var shard: Shard
        init(_ shard: consuming Shard) { self.shard = shard }
    }

    private let boxes: [Box]
    private let census: ConnectionCensus
    /// Closes what `open` opened.
    private var closeStore: () -> Void = {}

    /// Starts `store`, whose recovery must not have been taken. `clock` is asked once a turn; before the first it has to be
    /// `raise`d to the last time that is on disk. `wallClock` nil: no other time is known. `network`, with a watcher for each
    /// shard: where connections come from that are no sockets.
    package init(
        _ configuration: GatewayConfiguration, store: any MessageStore, wake: any WakeChannel,
        receipts: (any ReceiptChannel)? = nil,
        timeline: (any Timeline)? = nil, seed: UInt64, clock: @escaping @Sendable () -> Instant,
        wallClock: (@Sendable () -> Instant)? = nil, network: MemoryNetwork? = nil, raise: (Instant) -> Void
    ) throws {
        let recovery = store.takeRecovery()
        raise(recovery.lastTime)
        let shards = max(1, configuration.shards)
        var mailboxes: [Mailbox<ShardMessage>] = []
        for _ in 0..<shards { mailboxes.append(try Mailbox<ShardMessage>()) }
        let limit = configuration.connectionLimit ?? 1_024
        census = ConnectionCensus(limit: limit)
        let environment = ShardEnvironment(
            configuration: configuration, clock: clock, wallClock: wallClock ?? clock, epoch: recovery.epoch,
            store: store, wake: wake, receipts: receipts,
            timeline: timeline, composer: StubComposer(title: configuration.stubTitle, text: configuration.stubText),
            mailboxes: mailboxes,
            listeners: nil, seed: seed, connectionLimit: limit, census: census,
            appCensus: AppCensus(configuration.apps),
            memoryBudget: Budget(key: "memoryBytes", cap: configuration.usedMemoryBytes(machine: nil)),
            storeBudget: Budget(key: "storeBytes", cap: configuration.storeBytes),
            broadcastBudget: Budget(key: "broadcastBytes", cap: configuration.broadcastBytes),
            listBudget: Budget(key: "listStoreBytes", cap: configuration.listStoreBytes))
        try store.start(sinks: mailboxes.map { mailbox in { @Sendable events in mailbox.post(.store(events)) } })
        let parts = ShardRecovery.divide(recovery, among: shards, environment)
        var boxes: [Box] = []
        for index in 0..<shards {
            boxes.append(
                Box(
                    try Shard(
                        index: index, environment: environment, mailbox: mailboxes[index], recovery: parts[index],
                        network: network)))
        }
        self.boxes = boxes
    }

    /// Opens the store and the timeline that the configuration names, with their threads, for shards that are turned by hand.
    /// `close` ends it.
    package static func open(
        _ configuration: GatewayConfiguration, folder: String, network: MemoryNetwork, seed: UInt64,
        clock: @escaping @Sendable () -> Instant
    ) throws -> SteppedGateway {
        var options = Gateway.storeOptions(configuration, clock: clock)
        options.folder = folder
        let store = try EmbeddedStore.open(options)
        var configuration = configuration
        configuration.store = .embedded(folder: folder)
        let timeline: (any Timeline)?
        let gateway: SteppedGateway
        do {
            timeline = try Gateway.timeline(configuration, clock: clock)
            gateway = try SteppedGateway(
                configuration, store: store, wake: NoChannel(), timeline: timeline, seed: seed, clock: clock,
                network: network, raise: { _ in })
        } catch {
            store.close()
            throw error
        }
        gateway.closeStore = {
            timeline?.close()
            store.close()
        }
        return gateway
    }

    package var shards: Int { boxes.count }

    /// One turn of one shard, which waits up to `wait` milliseconds for something to happen. Whether it left something for
    /// another turn.
    @discardableResult
    package func turn(_ shard: Int, wait: Int32 = 0) -> Bool {
        boxes[shard].shard.tick(wait: wait)
        return boxes[shard].shard.hasMoreToDo
    }

    /// Gives a device's connection, a non-blocking stream socket or a line of the network, to a shard, which closes it in the
    /// end.
    package func connectDevice(_ descriptor: Int32, to shard: Int) { connect(descriptor, .handshake, shard) }

    /// The same for a backend's connection.
    package func connectBackend(_ descriptor: Int32, to shard: Int) { connect(descriptor, .http, shard) }

    /// The same for a backend's link.
    package func connectLink(_ descriptor: Int32, to shard: Int) { connect(descriptor, .link, shard) }

    private func connect(_ descriptor: Int32, _ kind: Connection.Kind, _ shard: Int) {
        let transport = Transport(descriptor: descriptor)
        guard census.enter() else { return boxes[shard].shard.close(transport) }
        let peer = SocketAddress(address: SocketAddress.loopback, port: 0)
        boxes[shard].shard.admit(transport, peer, kind)
    }

    /// The sum over all shards.
    package var snapshot: ShardSnapshot {
        boxes.reduce(ShardSnapshot()) { $0 + $1.shard.snapshot() }
    }

    /// Begins an orderly stop: go on turning all shards until `isDrained`, then `die`.
    package func beginStop() {
        for box in boxes { box.shard.mailbox.post(.drain) }
    }

    /// Whether every shard has finished what it had to.
    package var isDrained: Bool {
        var result = true
        for box in boxes where !box.shard.isDrained() { result = false }
        return result
    }

    /// What waits for something, by name; all are 0 in a gateway at rest.
    package var leftovers: [(name: String, count: Int)] {
        boxes.flatMap { $0.shard.leftovers }
    }

    /// Lanes of receipts that have something to tell.
    package var openReceipts: Int {
        boxes.reduce(0) { sum, box in
            sum + box.shard.receiptDesk.openLanes + (box.shard.receiptDesk.hasFresh ? 1 : 0)
        }
    }

    /// Bytes that the kernel has not taken yet, for each device's connection that has any.
    package var outputs: [(descriptor: Int32, bytes: Int)] { boxes.flatMap { $0.shard.outputs } }

    /// Drops every connection, as the end of the process would. The store is not told: it may be crashed or closed.
    package func die() {
        for box in boxes { box.shard.closeAll() }
    }

    /// The end of a gateway that was opened with its store; what was accepted is on disk.
    package func close() {
        die()
        closeStore()
        closeStore = {}
    }
}
