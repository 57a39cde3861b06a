internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerryWire

/// One device of a bench in memory. There are very many, so it holds what the next login needs and no more.
struct MemoryBenchDevice {
    enum Phase: UInt8 {
        case away
        /// `hello` is out.
        case greeted
        /// `login` or `register` is out.
        case asked
        case online
    }

    var cid = Identifier128(high: 0, low: 0)
    var secret = Bytes32.zero
    var lastSeq: UInt64 = 0
    var generation: UInt32 = 0
    /// -1 while it is away.
    var line: Int32 = -1
    var phase = Phase.away
    var isRegistered = false
}

extension MemoryBench {
    mutating func connect(_ index: Int) {
        let line = network.open()
        setOwner(of: line, Int32(index))
        devices[index].line = line
        devices[index].phase = .greeted
        let hello = HelloFrame(nonce: Bytes32(Cryptography.random(32)) ?? .zero)
        handshakes[line] = BenchHandshake(hello: hello.body())
        network.peerSends(line, hello.encoded())
        gateway.connectDevice(line, to: 0)
    }

    func owner(of line: Int32) -> Int { Int(owners[-2 - Int(line)]) }

    private mutating func setOwner(of line: Int32, _ device: Int32) {
        let place = -2 - Int(line)
        if place >= owners.count { owners.append(contentsOf: repeatElement(-1, count: place + 1 - owners.count)) }
        owners[place] = device
    }

    mutating func deviceNews(_ line: Int32, _ bytes: [UInt8], isOver: Bool) {
        let index = owner(of: line)
        guard index >= 0, devices[index].line == line else { return }
        let before = devices[index].lastSeq
        bytes.withUnsafeBytes { splitFrames(index, $0) }
        // One for all that came together.
        if devices[index].lastSeq > before, devices[index].phase == .online {
            network.peerSends(line, AckFrame(seq: Seq(devices[index].lastSeq)).encoded())
        }
        if isOver {
            problems.note("the gateway closed a device's connection while \(devices[index].phase)")
            problems.failedDevices += 1
            leave(index)
        }
    }

    /// The gateway sends a frame whole or not at all as long as a line has room, and here it always has.
    private mutating func splitFrames(_ index: Int, _ bytes: UnsafeRawBufferPointer) {
        let received = BenchClock.nanoseconds
        var offset = 0
        while offset < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            guard
                case .frame(let type, let body, let size) = FrameSplitter.split(
                    rest, bodyLimit: Limits.gatewayFrameBytes)
            else {
                problems.note("a frame from the gateway is not whole")
                return
            }
            offset += size
            if type == FrameType.push.rawValue {
                deliver(index, body, received)
            } else {
                receive(index, type, body)
            }
        }
    }

    private mutating func deliver(_ index: Int, _ body: UnsafeRawBufferPointer, _ received: UInt64) {
        guard let push = BenchPush.read(body), let stamp = BenchStamp.read(push.payload) else {
            problems.note("a push is not of this run")
            return
        }
        guard push.seq > devices[index].lastSeq else {
            tally.repeats += 1
            return
        }
        devices[index].lastSeq = push.seq
        tally.delivered += 1
        if stamp.isBroadcast { tally.broadcast += 1 }
        // Beside singles only those are timed.
        if stamp.isBroadcast && timesSinglesOnly { return }
        deliveries.record(received > stamp.due ? received - stamp.due : 0)
    }

    private mutating func receive(_ index: Int, _ type: UInt8, _ body: UnsafeRawBufferPointer) {
        guard let frame = try? GatewayFrame.decode(type: type, body: body) else {
            problems.note("a frame from the gateway is not understood")
            return
        }
        switch frame {
        case .challenge: prove(index, challenge: Array(body))
        case .registered(let registered):
            devices[index].cid = registered.cid.value
            devices[index].secret = registered.secret
            devices[index].generation = UInt32(truncatingIfNeeded: registered.generation)
            devices[index].isRegistered = true
        case .welcome(let welcome):
            handshakes[devices[index].line] = nil
            if !welcome.isResumed { devices[index].lastSeq = 0 }
            epoch = welcome.epoch
            keepAlive = min(keepAlive, welcome.keepAlive &* 1_000_000_000)
            devices[index].phase = .online
            attached += 1
            tally.welcomes += 1
        case .gap(let gap):
            tally.dropped &+= gap.count
            devices[index].lastSeq = max(devices[index].lastSeq, gap.seq.rawValue)
        case .ping: network.peerSends(devices[index].line, [FrameType.pong.rawValue, 0])
        case .close(let close): problems.note("closed by the gateway: \(close.code) \(close.text)")
        case .pong, .resumed, .tokenSaved, .unknownSkippable, .push: break
        }
    }

    private mutating func prove(_ index: Int, challenge: [UInt8]) {
        let line = devices[index].line
        guard var handshake = handshakes[line] else { return }
        handshake.challenge = challenge
        devices[index].phase = .asked
        if devices[index].isRegistered {
            let login = LoginFrame(
                appID: settings.app.id, cid: CID(devices[index].cid), generation: UInt64(devices[index].generation),
                epoch: epoch, lastSeq: Seq(devices[index].lastSeq))
            network.peerSends(line, handshake.prove(login, secret: devices[index].secret))
        } else {
            // Only where somebody is to be woken, so that all else stays as it was.
            let token = settings.online.flatMap { _ in
                PushToken(environment: .sandbox, bytes: Cryptography.random(32)).map { TokenChange.set($0) }
            }
            let register = RegisterFrame(
                appID: settings.app.id, installationKey: Bytes32(Cryptography.random(32)) ?? .zero,
                extensions: AttachExtensions(deviceToken: token))
            network.peerSends(line, handshake.prove(register, appSecret: Array(settings.app.secret.utf8)))
        }
    }

    /// The device hangs up, without a word.
    mutating func leave(_ index: Int) {
        let line = devices[index].line
        guard line < -1 else { return }
        if devices[index].phase == .online { attached -= 1 }
        devices[index].phase = .away
        devices[index].line = -1
        handshakes[line] = nil
        owners[-2 - Int(line)] = -1
        network.peerCloses(line)
    }

    /// Everybody says something once in half of the granted time, one after the other. Answers how many spoke.
    @discardableResult
    mutating func keepAlives(among count: Int) -> Int {
        let now = clock.nanoseconds
        speakingDue += Double(now - spokenUntil) * Double(count) / (Double(keepAlive) / 2)
        spokenUntil = now
        let due = Int(speakingDue)
        speakingDue -= Double(due)
        for _ in 0..<due {
            if nextToSpeak >= count { nextToSpeak = 0 }
            let index = nextToSpeak
            nextToSpeak += 1
            if devices[index].phase == .online { network.peerSends(devices[index].line, [FrameType.ping.rawValue, 0]) }
        }
        return due
    }
}
