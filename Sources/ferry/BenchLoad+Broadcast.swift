internal import FerryCore
internal import FerryIO
internal import FerryWire

/// What of a run belongs to messages for everybody: the connection that sends them, what came of them, and the pings that
/// tell how long a device waits for a word while one is under way.
struct BenchBroadcasts {
    var descriptor: Int32 = -1
    var input: [UInt8] = []
    var token = ""
    /// Sent; answered; and how often one has reached a device.
    var sent: UInt64 = 0
    var answered: UInt64 = 0
    var delivered: UInt64 = 0
    /// From when a broadcast was sent until a device had it.
    var deliveries = BenchHistogram()
    var pings = BenchHistogram()
    /// When devices asked, by their index.
    var pinged: [Int: UInt64] = [:]
    /// 0: nobody asks.
    var nextPing: UInt64 = 0
    /// The run's part of request ids.
    let run = Hexadecimal.encode(Cryptography.random(6))
}

/// Messages for everybody, by `POST /push/all`.
extension BenchLoad {
    static var broadcastBit: UInt64 { 1 << 33 }
    private static var pingEvery: UInt64 { 1_000_000 }

    mutating func openBroadcaster(token: String) throws(BenchFailure) {
        broadcasts.token = token
        do throws(SystemError) {
            broadcasts.descriptor = try Socket.connect(to: settings.http)
            try poller.add(broadcasts.descriptor, .readable, token: Self.broadcastBit)
        } catch {
            throw BenchFailure(sentence: error.description)
        }
    }

    /// Broadcasts one after the other, each when the last device has the one before and it was answered, until so many are
    /// through or the time is over. Single messages go beside them where there is a rate.
    mutating func broadcast(
        _ phase: String, messages limit: Int, seconds: Int?
    ) throws(BenchFailure) -> BenchWindow {
        self.phase = phase
        deliveries.reset()
        broadcasts.pings.reset()
        broadcasts.deliveries.reset()
        let window = BenchWindow.begin(tally, settings)
        let start = BenchClock.nanoseconds
        let end = seconds.map { start + UInt64($0) * 1_000_000_000 } ?? UInt64.max
        let first = tally.published
        let firstSent = broadcasts.sent
        lastMove = start
        now = start
        if settings.rate != nil { broadcasts.nextPing = start }
        while !isStopped {
            let isOver = isBroadcastOver
            let isLast = now >= end || broadcasts.sent - firstSent >= UInt64(limit)
            // Without broadcasts at all, the time ends it.
            if isLast && isOver && (limit > 0 || now >= end) { break }
            if isOver && !isLast { try sendBroadcast() }
            if settings.rate != nil, now < end {
                publishDue(first: first, limit: .max, start: start, toAll: false)
            }
            askDevices()
            try step(milliseconds: settings.rate == nil ? 20 : pause(first: first, start: start, limit: .max))
        }
        broadcasts.nextPing = 0
        broadcasts.pinged = [:]
        return window.end(tally, settings)
    }

    private var isBroadcastOver: Bool {
        broadcasts.answered == broadcasts.sent
            && broadcasts.delivered == broadcasts.sent * UInt64(settings.devices - problems.failedDevices)
    }

    private mutating func sendBroadcast() throws(BenchFailure) {
        let stamp = BenchStamp.text(BenchClock.nanoseconds)
        let filler = String(repeating: BenchStamp.broadcastMark, count: settings.payloadBytes - BenchStamp.bytes)
        let request = "\(broadcasts.run)-broadcast-\(broadcasts.sent)"
        let body =
            #"{"request_id":"\#(request)","audience":"all","push_message":{"transmission":"\#(stamp)\#(filler)"}}"#
        let head = """
            POST /v2/\(settings.appID)/push/all HTTP/1.1\r
            Host: \(settings.http)\r
            Content-Type: application/json;charset=utf-8\r
            Content-Length: \(body.utf8.count)\r
            token: \(broadcasts.token)\r
            \r

            """
        let bytes = Array((head + body).utf8)
        let sent = bytes.withUnsafeBytes { Socket.send(broadcasts.descriptor, $0) }
        guard sent == .moved(bytes.count) else { throw BenchFailure(sentence: "a broadcast could not be sent") }
        broadcasts.sent += 1
    }

    mutating func broadcasterEvent() throws(BenchFailure) {
        switch Socket.receive(broadcasts.descriptor, into: readBuffer) {
        case .moved(let count): broadcasts.input += readBuffer[..<count]
        case .wouldBlock: return
        case .ended, .failed: throw BenchFailure(sentence: "the gateway closed the connection of broadcasts")
        }
        guard let answer = broadcasts.input.withUnsafeBytes({ BenchAnswer.read($0) }) else { return }
        let body = broadcasts.input[(answer.size - answer.bodySize)..<answer.size]
        broadcasts.input.removeFirst(answer.size)
        guard answer.status == 200 else {
            let text = String(decoding: body.prefix(200), as: UTF8.self)
            throw BenchFailure(sentence: "the gateway refused a broadcast: HTTP \(answer.status) \(text)")
        }
        broadcasts.answered += 1
    }

    /// A device has one. It is not counted among single messages.
    mutating func tookBroadcast(_ sentAt: UInt64, _ received: UInt64) {
        broadcasts.delivered += 1
        broadcasts.deliveries.record(received > sentAt ? received - sentAt : 0)
    }

    // MARK: - Pings

    /// One device a millisecond asks whether the gateway is there.
    private mutating func askDevices() {
        guard broadcasts.nextPing > 0, now >= broadcasts.nextPing else { return }
        broadcasts.nextPing = max(broadcasts.nextPing + Self.pingEvery, now - 10 * Self.pingEvery)
        let index = anyDevice()
        guard devices[index].phase == .online, broadcasts.pinged[index] == nil else { return }
        broadcasts.pinged[index] = BenchClock.nanoseconds
        send(index, [FrameType.ping.rawValue, 0])
    }

    mutating func answeredPing(_ index: Int) {
        guard let asked = broadcasts.pinged.removeValue(forKey: index) else { return }
        broadcasts.pings.record(BenchClock.nanoseconds - asked)
    }
}

extension BenchCommand {
    /// First broadcasts alone. With `--rate` then single messages at that rate, without and with broadcasts beside them.
    static func broadcast(
        _ load: inout BenchLoad, _ report: inout BenchReport, _ token: String
    ) throws(BenchFailure) {
        let settings = load.settings
        try load.attach(0..<settings.devices, .stay, "connecting")
        try load.openBroadcaster(token: token)
        let alone = load.broadcasts.delivered
        let window = try load.broadcast("broadcast", messages: settings.messages ?? 1, seconds: nil)
        let delivered = load.broadcasts.delivered - alone
        report.window(window, perMillionOf: delivered)
        report.set("delivered", delivered)
        report.set("deliveredPerSecond", Double(delivered) / window.seconds, digits: 1)
        report.latency("latency", load.broadcasts.deliveries)
        guard settings.rate != nil else { return }
        try load.openBackends(token: token)
        for (name, messages) in [("without", 0), ("with", Int.max)] where !load.isStopped {
            let before = load.broadcasts.sent
            let window = try load.broadcast(name + " broadcasts", messages: messages, seconds: settings.seconds)
            report.begin(name)
            report.window(window, per: \.delivered)
            report.set("broadcasts", load.broadcasts.sent - before)
            report.latency("latency", load.deliveries)
            report.latency("pingLatency", load.broadcasts.pings)
            report.latency("broadcastLatency", load.broadcasts.deliveries)
            report.end()
            try load.drain()
        }
    }
}
