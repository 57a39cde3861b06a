internal import FerryAPNS
internal import FerryClientCore
internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerryReceipts
internal import FerryRouting
internal import FerryStore
internal import FerryWire

/// A gateway, its disk, its network, its devices and backends, and the time, all in one thread and all from one seed.
final class World {
    static let appSecret = Array("the app's secret".utf8)
    let app: AppID
    let clock = VirtualClock()
    /// As the gateway's machine has it.
    let gatewayClock: GatewayClock
    let identity: Identity
    private let entry: App
    let trace: Trace
    let ledger: Ledger
    var scenario: Scenario
    var dice: Dice
    let keepAlive: Int
    /// Whether backends come over links; else over HTTP. Never both, since a post has another id on each.
    let isOverLinks: Bool
    private let seed: UInt64
    static let masterSecret = "master"

    // The machine.
    let configuration: GatewayConfiguration
    var disk: MemoryDisk
    var tables = MemoryTables()
    var store: SteppedStore?
    /// Here the timeline loses nothing that was written: only so its answers are certain.
    let timelineDisk = MemoryDisk(folder: "timeline", remembersSyncs: false)
    var gateway: SteppedGateway?
    /// The gateway's way to connections that are no sockets.
    var network: MemoryNetwork?
    var wake = SlowWake()
    var waitingStubs: [(request: SlowWake.Request, device: Int)] = []
    /// Where the app wants receipts: in a third of all worlds.
    var receipts: SlowReceipts?
    var waitingReceipts: [SlowReceipts.Offer] = []
    /// Of its own, so that all else of a seed stays as it is.
    var receiptDice: Dice
    /// When a gateway that is down starts again, in steps.
    var startsAtStep = 0
    /// A clean stop is under way until then at the latest.
    var stopsUntil: Instant?
    /// Messages of this life that are in no counter but `kept` from the start.
    var restored = 0
    var diskHealsAtStep: Int?
    /// Workers of the store that have no turn until a step.
    var idleWorkers: (workers: SteppedStore.Workers, untilStep: Int) = ([], 0)
    /// Since when the journal's oldest segment is to go.
    var segmentWait = SegmentWait()
    var unclogsAtStep: [Int: Int] = [:]

    // The others.
    var links: [Link] = []
    private var linkCount = 0
    var clients: [ScriptedClient] = []
    var backends: [ScriptedBackend] = []
    /// The number of each device's push token, if it has one.
    var tokenNumbers: [Int?] = []
    /// The API token that backends use now, by its index in the ledger.
    private var currentAPIToken = 0
    var isHealing = false
    private(set) var violation: Violation?

    init(seed: UInt64, trace: Trace) throws {
        guard let app = AppID("simulated"), let identity = Identity(key: [UInt8](repeating: 7, count: 32)) else {
            throw Violation(promise: "simulation", what: "the world cannot be made")
        }
        self.app = app
        self.identity = identity
        self.trace = trace
        gatewayClock = GatewayClock(clock)
        dice = Dice(seed: seed)
        receiptDice = Dice(seed: ~seed)
        scenario = Scenario(&dice)
        keepAlive = dice.within(5...60)
        // Not drawn, so that all else of a seed stays as it is.
        scenario.stops = seed % 4 == 1 ? 10 : 0
        scenario.schedules = seed % 8 == 1 || seed % 8 == 3 ? 300 : 0
        isOverLinks = seed % 3 == 2
        self.seed = seed
        entry = App(
            id: app, key: "key", secret: String(decoding: Self.appSecret, as: UTF8.self),
            masterSecret: Self.masterSecret,
            name: nil, topic: nil,
            receipts: seed % 3 == 1
                ? ReceiptTarget(url: "http://simulated", tellsPresence: seed % 2 == 1) : nil)
        var configuration = GatewayConfiguration(identity: identity)
        configuration.apps = AppRegistry([entry])
        configuration.delivery = scenario.delivery
        configuration.session = scenario.session
        configuration.segmentBytes = scenario.segmentBytes
        configuration.keptSegments = 1
        configuration.connectionLimit = 512
        // Nor is this. Where little fits into a socket it is to be filled.
        configuration.compressionBytes = seed % 5 == 4 || scenario.sendBuffer != nil ? nil : 32
        // More than any world has.
        configuration.broadcastsPerApp = 1_000
        configuration.broadcastsPerHour = 100_000
        configuration.broadcastWakesPerSecond = seed % 3 == 0 ? 20 : 1_000
        // Contents are read back, and again and again.
        if seed % 3 == 1 { configuration.listContentBytes = 1 }
        if dice.chance(150) { configuration.unsyncedBytes = dice.within(2_000...20_000) }
        if dice.chance(100) { configuration.storeBytes = Cap(dice.within(2_000...20_000)) }
        if let capacity = scenario.requestCapacity {
            configuration.requestBytes = IdempotencyWindow.bytesPerEntry * capacity * Self.shardsAtMost
        }
        self.configuration = configuration
        disk = MemoryDisk()
        ledger = Ledger(scenario, gatewayClock, trace)
        tokenNumbers = (0..<scenario.devices).map { dice.chance(800) ? $0 : nil }
        makeAPIToken()
        ledger.recovered = { [weak self] cid in self?.recovered(cid) }
        try startGateway()
        for device in 0..<scenario.devices {
            let acknowledges = !dice.chance(scenario.neverAcknowledging)
            let client = ScriptedClient(device: device, record: ClientRecord(), acknowledges: acknowledges, world: self)
            clients.append(client)
            client.handle(.started)
        }
        backends = (0..<scenario.backends).map { ScriptedBackend(number: $0, world: self) }
    }

    static let shardsAtMost = 3

    /// Whether the device's client takes compressed payloads.
    func takesCompressed(_ device: Int) -> Bool { (seed / 5 + UInt64(device)) % 2 == 0 }

    func token(of device: Int) -> PushToken? {
        guard tokenNumbers.indices.contains(device), let number = tokenNumbers[device] else { return nil }
        return PushToken(environment: .sandbox, bytes: Array("token-\(number)".utf8))
    }

    func cidText(_ device: Int) -> String { ledger.devices[device].cid?.description ?? "" }

    func makeAPIToken() {
        currentAPIToken = ledger.apiTokens.count
        let token = identity.apiToken(
            app: entry, expiresAt: clock.now + .seconds(8_640_000), nonce: dice.bytes(8))
        ledger.apiTokens.append(APITokenFacts(text: token))
    }

    /// Mostly the one that is good for certain.
    func pickAPIToken() -> Int {
        isHealing || !dice.chance(50) ? currentAPIToken : dice.below(ledger.apiTokens.count)
    }

    // MARK: - Violations

    func report(_ found: Violation) { if violation == nil { violation = found } }

    func check(_ body: () throws(Violation) -> Void) {
        do throws(Violation) { try body() } catch { report(error) }
    }

    // MARK: - The network

    /// A new connection; nil when nobody listens.
    func connect(device: Int?) -> Link? {
        guard let gateway, stopsUntil == nil else { return nil }
        // Every second is a line in memory, so that one promise holds for both kinds.
        let memory = linkCount % 2 == 0 ? nil : network
        guard let (theirs, ours) = memory.map({ line($0) }) ?? (try? Socket.pair(sendBuffer: scenario.sendBuffer))
        else { return nil }
        linkCount += 1
        let link = Link(
            number: linkCount, device: device, descriptor: ours, gatewayDescriptor: theirs, memory: memory)
        links.append(link)
        let shard = dice.below(gateway.shards)
        if let device {
            ledger.linkOpened(device)
            gateway.connectDevice(theirs, to: shard)
        } else if isOverLinks {
            gateway.connectLink(theirs, to: shard)
        } else {
            gateway.connectBackend(theirs, to: shard)
        }
        trace.note("connect", linkCount, device ?? -1, shard)
        return link
    }

    private func line(_ memory: MemoryNetwork) -> (Int32, Int32) {
        let name = memory.open()
        return (name, name)
    }

    /// How many bytes the network moves at once.
    func portion() -> Int {
        if isHealing { return 65_536 }
        return dice.chance(700) ? 65_536 : dice.within(1...40)
    }

    /// What the gateway has sent enters the network.
    func drainLinks() {
        for link in links {
            let wasGone = link.isGatewayGone
            let bytes = link.drain()
            if !bytes.isEmpty, link.device != nil {
                check { () throws(Violation) in
                    let isStream = try link.tapOut.add(bytes) { (type, body) throws(Violation) in
                        let frame: GatewayFrame
                        do throws(WireError) {
                            frame = try GatewayFrame.decode(type: type, body: body)
                        } catch {
                            throw Violation(promise: "wire", what: "the gateway sent no frame: \(error)")
                        }
                        try ledger.left(frame, link)
                    }
                    if !isStream { throw Violation(promise: "wire", what: "the gateway sent no frames") }
                }
            }
            if link.isGatewayGone, !wasGone {
                trace.note("gone", link.number)
                ledger.gatewayClosed(link)
            }
        }
        check { () throws(Violation) in try ledger.checkTakeovers(links) }
        links.removeAll { link in
            guard link.isFinished else { return false }
            if link.isPeerGone { link.close() }
            return link.isPeerGone
        }
    }

    func feed(_ link: Link) {
        let taken = link.feed(portion())
        if link.isEndTold, let device = link.device { ledger.sessionLost(link, device) }
        guard !taken.isEmpty, link.device != nil, link.facts.isFramed else { return }
        check { () throws(Violation) in
            link.facts.isFramed =
                try link.tapIn.add(taken) { (type, body) throws(Violation) in
                    guard let frame = try? DeviceFrame.decode(type: type, body: body) else {
                        link.facts.isFramed = false
                        return
                    }
                    ledger.fed(frame, link)
                } && link.facts.isFramed
        }
        if !link.facts.isFramed { ledger.lostSight(link) }
    }
}
