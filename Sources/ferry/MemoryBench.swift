internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerryWire
internal import Synchronization

/// Very many sessions with a gateway in this process: the same shard as in service, with its store, its timeline and their
/// threads, on one folder of the file system; only the sockets are lines in memory. The shard is turned by the load's
/// thread, whose time within turns counts as the gateway's together with that of the store's threads.
///
/// `MemoryBench+Devices` holds the devices' side, `MemoryBench+Backend` the one backend's, `MemoryBench+Phases` what is
/// measured; this file what all of them stand on.
struct MemoryBench: ~Copyable {
    let settings: MemoryBenchSettings
    let signals: ProcessSignals
    let clock = BenchHandClock()
    let network: MemoryNetwork
    let gateway: SteppedGateway

    var devices: [MemoryBenchDevice]
    var handshakes: [Int32: BenchHandshake] = [:]
    /// The device of each line, by its place in the network; -1: none of this process's devices.
    var owners: [Int32] = []
    var epoch = Epoch.none
    /// Granted by the gateway, in nanoseconds.
    var keepAlive: UInt64 = 240_000_000_000
    /// The next device to say that it is there, a fraction of one that is due, and up to when they have spoken.
    var nextToSpeak = 0
    var speakingDue = 0.0
    var spokenUntil: UInt64 = 0
    /// Devices that are attached, counted as they are welcomed and as they lose their line.
    var attached = 0

    var backend = MemoryBenchBackend()
    /// xorshift; devices are drawn from it, the same in every run.
    var draw: UInt64 = 0x9e37_79b9_7f4a_7c15

    var tally = BenchTally()
    var deliveries = BenchHistogram()
    var timesSinglesOnly = false
    var problems = BenchProblems()
    /// Of this thread, within the gateway's turns, in nanoseconds.
    private var turning: UInt64 = 0
    /// The longest turn since it was last asked for, in nanoseconds of this thread.
    var longestTurn: UInt64 = 0
    var isStopped = false
    var lastMove = BenchClock.nanoseconds
    private var lastMoved: UInt64 = 0
    private var nextSignalLook: UInt64 = 0
    private var news: [Int32] = []

    private static let patience: UInt64 = 30_000_000_000

    init(_ settings: MemoryBenchSettings, folder: String, signals: ProcessSignals) throws {
        self.settings = settings
        self.signals = signals
        network = MemoryNetwork(watchers: 1)
        // Both are there from the start, so that they do not grow while memory is measured.
        devices = Array(repeating: MemoryBenchDevice(), count: settings.sessions)
        owners = Array(repeating: -1, count: settings.sessions + 16)
        let clock = clock
        clock.follow()
        gateway = try SteppedGateway.open(
            settings.configuration, folder: folder, network: network, seed: UInt64.random(in: 1...UInt64.max),
            clock: { clock.now })
        spokenUntil = clock.nanoseconds
    }

    // MARK: - Turns

    /// One turn of the gateway, then all that came of it. `wait`: milliseconds to wait for the store when nothing else is to
    /// be done. `follows`: time is the machine's; else it stands until somebody moves it.
    mutating func turn(wait: Int32 = 0, follows: Bool = true) throws(BenchFailure) {
        if follows { clock.follow() }
        keepLinkAlive()
        let before = BenchClock.threadNanoseconds
        gateway.turn(0, wait: wait)
        let used = BenchClock.threadNanoseconds - before
        turning += used
        longestTurn = max(longestTurn, used)
        takeNews()
        if follows { try watch() }
    }

    private mutating func takeNews() {
        var batch: [Int32] = []
        swap(&batch, &news)
        network.takeNews(into: &batch)
        for line in batch {
            let (bytes, isOver) = network.peerTakes(line)
            if backend.owns(line) {
                backendNews(line, bytes, isOver: isOver)
            } else {
                deviceNews(line, bytes, isOver: isOver)
            }
        }
        swap(&batch, &news)
    }

    private mutating func watch() throws(BenchFailure) {
        let now = BenchClock.nanoseconds
        if now >= nextSignalLook {
            nextSignalLook = now + 50_000_000
            if signals.wait(milliseconds: 0) { isStopped = true }
        }
        if tally.moves != lastMoved {
            lastMoved = tally.moves
            lastMove = now
        } else if now - lastMove > Self.patience {
            throw BenchFailure(
                sentence: "nothing has come from the gateway for \(Self.patience / 1_000_000_000) seconds"
                    + problems.sentence)
        }
    }

    /// CPU time of the gateway so far, in seconds: its turns, and all other threads of this process, which are the store's.
    var gatewaySeconds: Double {
        let others = BenchClock.processNanoseconds &- BenchClock.threadNanoseconds
        return Double(turning &+ others) / 1e9
    }

    /// The part of it that was spent in turns.
    var turnSeconds: Double { Double(turning) / 1e9 }

    /// Resident bytes of the process that are not the load's and not under way between the two.
    var ownBytes: Double {
        guard let gauge = ProcessGauge.readSelf() else { return 0 }
        let load =
            devices.count * MemoryLayout<MemoryBenchDevice>.stride + owners.count * MemoryLayout<Int32>.stride
            + network.heldBytes + network.bytesUnderWay
        return Double(gauge.anonymousBytes) - Double(load)
    }
}

/// Time as the gateway of a bench in memory sees it: the machine's, and what was skipped of it.
final class BenchHandClock: Sendable {
    private let reading = Atomic<UInt64>(0)
    private let skipped = Atomic<UInt64>(0)
    private let start = WallClock().now
    private let began = BenchClock.nanoseconds

    var nanoseconds: UInt64 { reading.load(ordering: .relaxed) }
    var now: Instant { start.advanced(byMilliseconds: Int64(nanoseconds / 1_000_000)) }

    /// Moves to the machine's time.
    func follow() {
        reading.store(BenchClock.nanoseconds - began + skipped.load(ordering: .relaxed), ordering: .relaxed)
    }

    /// Moves on by so much that has not passed, and stays there until it is moved again.
    func skip(nanoseconds: UInt64) {
        skipped.add(nanoseconds, ordering: .relaxed)
        reading.add(nanoseconds, ordering: .relaxed)
    }
}
