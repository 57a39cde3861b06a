internal import FerryCore
internal import FerryIO
internal import FerryWire

/// The load: all devices and backends of a run on one thread, so that what it costs is known and the same each time.
///
/// `BenchLoad+Devices` holds the devices' side, `BenchLoad+Backends` the publishers', `BenchLoad+Broadcast`
/// messages for everybody, `BenchLoad+Return` the way back to a
/// gateway that was away; this file the loop and the phases.
struct BenchLoad: ~Copyable {
    /// What a device does once it has been welcomed.
    enum Plan: Equatable {
        case stay
        case leave
        /// Leaves when it has this many messages.
        case collect(Int)
    }

    let settings: BenchSettings
    let signals: ProcessSignals
    let poller: Poller
    let readBuffer: UnsafeMutableRawBufferPointer

    var devices: [BenchDevice]
    var handshakes: [Int: BenchHandshake] = [:]
    /// Bytes of frames that are not whole yet, by device.
    var unfinished: [Int: [UInt8]] = [:]
    var plan = Plan.stay
    /// Devices with a backlog, which collect it and go whatever the plan of the others is; the next of them to come.
    var crowd = 0..<0
    var nextOfCrowd = 0
    /// Whether `--rate` holds; a backlog is filled as fast as it goes.
    var isPaced = true
    /// Devices that are where `plan` wants them, or have failed.
    var settled = 0
    var openSockets = 0
    /// Granted by the gateway, in nanoseconds.
    var keepAlive: UInt64 = 240_000_000_000
    var lateAcks: [(device: Int32, due: UInt64)] = []
    var lateAcksHead = 0
    /// Messages are not handed to an app, so they must come again.
    var takesNothing = false
    /// Devices that lost their connection, in the order in which they try again; nil where a loss is a failure.
    var returning: [Int]?
    /// Why they lost it.
    var setbacks = BenchProblems()

    var broadcasts = BenchBroadcasts()
    var backends: [BenchBackend] = []
    var nextBackend = 0
    var template: BenchTemplate?
    var batchTemplate: BenchBatchTemplate?
    var linkTemplate: BenchLinkTemplate?
    /// In nanoseconds.
    var linksSpeakAt: UInt64 = 0
    /// xorshift; devices are drawn from it, the same in every run.
    var draw: UInt64 = 0x9e37_79b9_7f4a_7c15

    var tally = BenchTally()
    var deliveries = BenchHistogram()
    var answers = BenchHistogram()
    /// Since the last progress line.
    var recent = BenchHistogram()
    var problems = BenchProblems()

    var now = BenchClock.nanoseconds
    var isStopped = false
    var phase = "connecting"
    var lastMove = BenchClock.nanoseconds
    private var lastMoved: UInt64 = 0
    private var nextSecond = BenchClock.nanoseconds + 1_000_000_000
    private var nextSignalLook: UInt64 = 0
    private var reported = BenchTally()
    private var reportedGauge: ProcessGauge?
    private let began = BenchClock.nanoseconds

    static let backendBit: UInt64 = 1 << 32
    static let handshakesAtOnce = 256
    private static let patience: UInt64 = 15_000_000_000

    init(_ settings: BenchSettings, signals: ProcessSignals) throws(SystemError) {
        let poller = try Poller()
        self.settings = settings
        self.signals = signals
        devices = Array(repeating: BenchDevice(), count: settings.devices)
        readBuffer = .allocate(byteCount: 131_072, alignment: 64)
        reportedGauge = settings.gatewayProcess.flatMap { ProcessGauge.read(process: $0) }
        self.poller = poller
    }

    deinit { readBuffer.deallocate() }

    // MARK: - The loop

    /// One round: what came, acks that are due, a progress line each second.
    mutating func step(milliseconds: Int32) throws(BenchFailure) {
        let count = poller.wait(milliseconds: milliseconds)
        now = BenchClock.nanoseconds
        for position in 0..<count {
            let event = poller.event(position)
            if event.token & Self.broadcastBit != 0 {
                try broadcasterEvent()
            } else if event.token & Self.backendBit != 0 {
                try backendEvent(Int(event.token & ~Self.backendBit), writable: event.writable)
            } else {
                try deviceEvent(Int(event.token), writable: event.writable)
            }
        }
        sendLateAcks()
        if now >= nextSignalLook {
            nextSignalLook = now + 50_000_000
            if signals.wait(milliseconds: 0) { isStopped = true }
        }
        if now >= nextSecond { everySecond() }
        try watchForStall()
    }

    private mutating func everySecond() {
        nextSecond += 1_000_000_000
        if nextSecond <= now { nextSecond = now + 1_000_000_000 }
        keepAlives()
        keepLinksAlive()
        let gauge = settings.gatewayProcess.flatMap { ProcessGauge.read(process: $0) }
        let line = BenchProgress(
            phase: phase, seconds: (now - began) / 1_000_000_000, before: reported, after: tally, recent: recent,
            gaugeBefore: reportedGauge, gauge: gauge)
        line.print()
        reported = tally
        reportedGauge = gauge
        recent.reset()
    }

    /// A gateway that says nothing for long ends the run; without this it would wait for ever.
    private mutating func watchForStall() throws(BenchFailure) {
        let moves = tally.moves &+ broadcasts.delivered &+ broadcasts.answered
        if moves != lastMoved {
            lastMoved = moves
            lastMove = now
        } else if now - lastMove > Self.patience {
            throw BenchFailure(
                sentence: "nothing has come from the gateway for \(Self.patience / 1_000_000_000) seconds "
                    + "while \(phase)\(problems.sentence)")
        }
    }

    /// Nothing is expected to come for a while, and that is right.
    mutating func rest(seconds: Double, _ phase: String) throws(BenchFailure) {
        self.phase = phase
        let end = BenchClock.nanoseconds + UInt64(seconds * 1e9)
        while now < end && !isStopped {
            lastMove = now
            try step(milliseconds: 50)
        }
    }

    // MARK: - Phases

    /// Brings the devices of `range` in and leaves each as `plan` says.
    mutating func attach(_ range: Range<Int>, _ plan: Plan, _ phase: String) throws(BenchFailure) {
        self.phase = phase
        self.plan = plan
        settled = 0
        var next = range.lowerBound
        lastMove = BenchClock.nanoseconds
        let most = plan == .stay ? Int.max : BenchSettings.passingSockets
        while settled < range.count && !isStopped {
            while next < range.upperBound, handshakes.count < Self.handshakesAtOnce, openSockets < most {
                try connect(next)
                next += 1
            }
            try step(milliseconds: 20)
        }
        if settled == range.count, problems.failedDevices == range.count {
            throw BenchFailure(sentence: "no device could attach" + problems.sentence)
        }
    }

    /// Publishes until `limit` messages are out or `seconds` are over, and answers what happened meanwhile.
    mutating func publish(
        _ phase: String, messages limit: UInt64, seconds: Int?, toAll: Bool
    ) throws(BenchFailure) -> BenchWindow {
        self.phase = phase
        deliveries.reset()
        answers.reset()
        let window = BenchWindow.begin(tally, settings)
        let start = BenchClock.nanoseconds
        let end = seconds.map { start + UInt64($0) * 1_000_000_000 } ?? UInt64.max
        let first = tally.published
        lastMove = start
        now = start
        while !isStopped && now < end {
            publishDue(first: first, limit: limit, start: start, toAll: toAll)
            try bringCrowd()
            if isPublished(first, limit, toAll: toAll) { break }
            try step(milliseconds: pause(first: first, start: start, limit: limit))
        }
        return window.end(tally, settings)
    }

    /// With a limit, the window ends when the last of them has come to its end.
    private func isPublished(_ first: UInt64, _ limit: UInt64, toAll: Bool) -> Bool {
        guard tally.published - first >= limit else { return false }
        return toAll ? tally.unanswered == 0 : tally.unanswered == 0 && tally.outstanding == 0
    }

    /// Waits for what is still on its way, at most 10 seconds.
    mutating func drain() throws(BenchFailure) {
        phase = "waiting for the rest"
        let end = BenchClock.nanoseconds + 10_000_000_000
        while now < end && !isStopped && (tally.unanswered > 0 || tally.outstanding > 0) {
            try step(milliseconds: 20)
        }
    }

    /// How long the poller may wait. Its steps are milliseconds: closer due times are reached by short naps.
    func pause(first: UInt64, start: UInt64, limit: UInt64) -> Int32 {
        guard isPaced, settings.rate != nil, tally.published - first < limit else { return 20 }
        let due = dueTime(tally.published - first, start)
        guard due > now else { return 1 }
        if due - now >= 2_000_000 { return Int32(clamping: (due - now) / 1_000_000 - 1) }
        BenchClock.pause(nanoseconds: min(due - now, 50_000))
        return 0
    }
}
