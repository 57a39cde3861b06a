internal import FerryAPNS
internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerryReceipts
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import Synchronization
internal import Testing

/// A whole gateway in which nothing moves unless the test moves it: bytes are in a socket when they are sent, a shard reads
/// and answers when it is turned, the disk syncs when it is told to, and time stands still. So each order of two events is
/// one test.
final class RaceWorld {
    static let appSecret = Array("the app's secret".utf8)
    /// Milliseconds, in whole ticks of the timer wheel, so that a timer is due in the very tick that a test means.
    static let grace = 4_800
    static let cooldown = 6_400
    static let ackDeadline = 9_600
    static let tick = Int(TimerWheel.tickMilliseconds)
    let app: AppID
    let apiToken: String
    let clock = HandClock()
    private(set) var configuration: GatewayConfiguration
    private(set) var disk = MemoryDisk()
    private var tables = MemoryTables()
    private var store: SteppedStore
    private(set) var gateway: SteppedGateway
    private(set) var wake = HeldWake()
    /// Where the app wants receipts.
    let receipts: HeldReceipts?
    private var peers: [RacePeer] = []

    init(shards: Int = 1, wantsReceipts: Bool = false, _ change: (inout GatewayConfiguration) -> Void = { _ in }) throws
    {
        EventLog.silence()
        let app = try #require(AppID("raced"))
        let identity = try #require(Identity(key: [UInt8](repeating: 7, count: 32)))
        let entry = App(
            id: app, key: "key", secret: String(decoding: Self.appSecret, as: UTF8.self), masterSecret: "master",
            name: nil, topic: nil, receipts: wantsReceipts ? ReceiptTarget(url: "http://raced") : nil)
        var configuration = GatewayConfiguration(identity: identity)
        configuration.apps = AppRegistry([entry])
        configuration.shards = shards
        configuration.connectionLimit = 64
        configuration.segmentBytes = 16_384
        configuration.keptSegments = 1
        configuration.delivery.reattachGrace = .milliseconds(Self.grace)
        configuration.delivery.stubCooldown = .milliseconds(Self.cooldown)
        configuration.session.ackDeadline = .milliseconds(Self.ackDeadline)
        change(&configuration)
        self.app = app
        self.configuration = configuration
        apiToken = identity.apiToken(
            app: entry, expiresAt: clock.now + .seconds(8_640_000), nonce: [1, 2, 3, 4, 5, 6, 7, 8])
        receipts = wantsReceipts ? HeldReceipts() : nil
        (store, gateway) = try Self.start(configuration, disk, tables, wake, receipts, clock)
    }

    private static func start(
        _ configuration: GatewayConfiguration, _ disk: MemoryDisk, _ tables: MemoryTables, _ wake: HeldWake,
        _ receipts: HeldReceipts?, _ clock: HandClock
    ) throws -> (SteppedStore, SteppedGateway) {
        var options = StoreOptions(folder: "raced", clock: { clock.now })
        options.segmentBytes = configuration.segmentBytes
        options.keptSegments = configuration.keptSegments
        options.diskReserveBytes = configuration.diskReserveBytes ?? options.diskReserveBytes
        options.namesMessages = receipts != nil
        let store = try SteppedStore.inMemory(options, disk: disk, tables: tables)
        let gateway = try SteppedGateway(
            configuration, store: store, wake: wake, receipts: receipts, seed: 1, clock: { clock.now },
            wallClock: { clock.wall },
            raise: { _ in })
        return (store, gateway)
    }

    // MARK: - What moves

    /// One turn of each shard, or of one.
    func turn(_ shard: Int? = nil) {
        for index in 0..<gateway.shards where shard ?? index == index { gateway.turn(index) }
    }

    /// The disk takes what it was given, and the tables and readers what they were asked; shards learn of it at their turn.
    func sync() { store.step() }

    /// Some of the store's workers get a turn, and the others stand still.
    func step(_ workers: SteppedStore.Workers) { store.step(workers) }

    /// Turns and syncs until there is nothing left to do without time, bytes or an answer of the wake-up channel.
    func settle() {
        for _ in 0..<8 {
            for _ in 0..<3 { turn() }
            sync()
        }
        for _ in 0..<3 { turn() }
    }

    /// Time passes; nothing else happens.
    func pass(_ milliseconds: Int) { clock.advance(milliseconds) }

    /// The next syncs, or writes, of the disk fail.
    func hurt(_ change: (inout MemoryDisk.Faults) -> Void) {
        var faults = MemoryDisk.Faults()
        change(&faults)
        disk.inject(faults)
    }

    /// The next look-ups in the tables fail.
    func hurtTables(_ change: (inout MemoryTables.Faults) -> Void) {
        var faults = MemoryTables.Faults()
        change(&faults)
        tables.inject(faults)
    }

    /// The power is cut and comes back: what was not synced is lost, every connection with it.
    func cutPower() throws {
        gateway.die()
        for peer in peers { peer.close() }
        peers = []
        disk = disk.afterCrash(.lost)
        tables = tables.afterCrash()
        wake = HeldWake()
        (store, gateway) = try Self.start(configuration, disk, tables, wake, receipts, clock)
    }

    /// Makes the gateway let go of all devices that are offline and have nothing kept: what the journal says of them goes to
    /// the tables, and they rest until they leave memory. With `isLastTickLeft` they leave at the next turn.
    func forgetResting(isLastTickLeft: Bool = false) throws {
        let filler = try RaceDevice(self, number: 200, hasToken: false)
        let backend = try RaceBackend(self)
        // What is live only ends at once, and its record takes room in the journal all the same.
        for number in 0..<60 {
            backend.post(
                String(repeating: "x", count: 1_000) + String(number), to: filler, request: "filler-request-\(number)",
                ttl: nil)
            if number % 10 == 9 { settle() }
        }
        try #require(backend.answers().areOnline == [Bool](repeating: false, count: 60))
        let before = gateway.snapshot.devices
        for _ in 0..<2 {
            try #require(gateway.snapshot.devices == before)
            pass(60_000)
            if !isLastTickLeft { turn() }
        }
    }

    // MARK: - Who connects

    func connect(backend: Bool = false, to shard: Int = 0) throws -> RacePeer {
        let (theirs, ours) = try Socket.pair()
        if backend {
            gateway.connectBackend(theirs, to: shard)
        } else {
            gateway.connectDevice(theirs, to: shard)
        }
        let peer = RacePeer(descriptor: ours)
        peers.append(peer)
        return peer
    }

    // MARK: - What is seen

    /// How much of this kind waits for something.
    func waiting(_ name: String) -> Int {
        gateway.leftovers.filter { $0.name == name }.reduce(0) { $0 + $1.count }
    }

    var kept: Int { gateway.snapshot.keptMessages }
    var sessions: Int { gateway.snapshot.sessions }
    func ended(_ state: DeliveryState) -> Int { Int(gateway.snapshot.ended[Int(state.rawValue)]) }

    /// Everybody hangs up and every stub is answered; nothing may be left of what happened, in memory or, after a power cut,
    /// on the disk, but `kept` messages.
    func checkEnd(kept: Int, sourceLocation: SourceLocation = #_sourceLocation) throws {
        settle()
        wake.answerAll()
        for peer in peers { peer.close() }
        settle()
        wake.answerAll()
        // Acks wait so long for what else goes to the disk.
        pass(2)
        settle()
        let snapshot = gateway.snapshot
        let left = gateway.leftovers.filter { $0.count != 0 }.map { "\($0.count) \($0.name)" }
        #expect(left == [], "left over", sourceLocation: sourceLocation)
        #expect(snapshot.sessions == 0, "sessions", sourceLocation: sourceLocation)
        #expect(snapshot.connections == 0, "connections", sourceLocation: sourceLocation)
        #expect(snapshot.keptMessages == kept, "kept", sourceLocation: sourceLocation)
        try cutPower()
        #expect(self.kept == kept, "kept after a power cut", sourceLocation: sourceLocation)
        let found = gateway.leftovers.filter { $0.count != 0 }.map { "\($0.count) \($0.name)" }
        #expect(found == [], "left over after a power cut", sourceLocation: sourceLocation)
    }
}

/// The only time of a race, moved by hand.
final class HandClock: Sendable {
    private let milliseconds = Atomic<Int64>(1_700_000_000_000)
    var now: Instant { Instant(milliseconds: milliseconds.load(ordering: .relaxed)) }
    /// What other machines' clocks show.
    var wall: Instant { now + .milliseconds(stepped.load(ordering: .relaxed)) }
    private let stepped = Atomic<Int64>(0)
    /// Somebody sets the machine's clock.
    func step(_ by: Int) { stepped.add(Int64(by), ordering: .relaxed) }
    func advance(_ by: Int) { milliseconds.add(Int64(by), ordering: .relaxed) }
}

/// A wake-up channel that answers when it is told to.
final class HeldWake: WakeChannel {
    private typealias Answer = @Sendable (StubAnswer) -> Void
    private let state = Mutex<(stubs: [StubRequest], open: [Answer])>(([], []))

    func request(_ stub: StubRequest, answer: @escaping @Sendable (StubAnswer) -> Void) {
        state.withLock { state in
            state.stubs.append(stub)
            state.open.append(answer)
        }
    }

    /// Everything that was ever asked for.
    var stubs: [StubRequest] { state.withLock { $0.stubs } }
    var count: Int { stubs.count }

    func answerAll(_ answer: StubAnswer = .accepted) {
        let open = state.withLock { state in
            defer { state.open = [] }
            return state.open
        }
        for tell in open { tell(answer) }
    }

    func close() {}
}

/// A way to backends' endpoints that takes all at once, or nothing.
final class HeldReceipts: ReceiptChannel {
    private let state = Mutex<(told: [EndedMessage], isOpen: Bool)>(([], true))

    /// What it has taken, in any life.
    var told: [EndedMessage] { state.withLock { $0.told } }
    /// Takes nothing from now on, or all again: what it was offered meanwhile waits for the next life.
    func open(_ isOpen: Bool) { state.withLock { $0.isOpen = isOpen } }

    func offer(_ batch: ReceiptBatch, told tell: @escaping @Sendable (ReceiptProgress) -> Void) {
        let isTaken = state.withLock { state in
            guard state.isOpen else { return false }
            for entry in batch.entries {
                if case .ended(let message)? = Receipt(entry.row) { state.told.append(message) }
            }
            return true
        }
        if isTaken { tell(.taken) }
    }

    func close() {}
}

/// The other end of a connection to the gateway.
final class RacePeer {
    private let descriptor: Int32
    private var isClosed = false
    /// The gateway has closed its end.
    private(set) var isEnded = false
    private var bytes: [UInt8] = []

    init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    /// The bytes are in the gateway's socket when this returns.
    func send(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
        let sent = bytes.withUnsafeBytes { Socket.send(descriptor, $0) }
        #expect(sent == .moved(bytes.count), sourceLocation: sourceLocation)
    }

    /// The end of the connection is in the gateway's socket when this returns.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        Socket.close(descriptor)
    }

    /// All bytes that have come and were not taken.
    func received() -> [UInt8] {
        withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { buffer in
            while !isClosed, !isEnded, case let transfer = Socket.receive(descriptor, into: buffer) {
                switch transfer {
                case .moved(let count): bytes.append(contentsOf: buffer[..<count])
                case .wouldBlock: return
                case .ended, .failed: isEnded = true
                }
            }
        }
        return bytes
    }

    func take(_ count: Int) { bytes.removeFirst(count) }
}
