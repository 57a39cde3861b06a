internal import FerryCore
internal import FerryIO
internal import FerryWire

/// One device of the load.
struct BenchDevice {
    enum Phase: UInt8 {
        case away
        case connecting
        /// `hello` is out.
        case greeted
        /// `login` or `register` is out.
        case asked
        case online
        /// `bye` is out.
        case leaving
    }

    var phase = Phase.away
    var isRegistered = false
    /// The run's plan for it came true.
    var isSettled = false
    var isAckQueued = false
    var unacknowledged: UInt16 = 0
    var descriptor: Int32 = -1
    var received: Int32 = 0
    var cid = Identifier128(high: 0, low: 0)
    var secret = Bytes32.zero
    var generation: UInt64 = 0
    var epoch = Epoch.none
    var lastSeq: UInt64 = 0
    /// When it last sent anything.
    var sentAt: UInt64 = 0
}

extension BenchLoad {
    /// Devices come from several addresses, as one has too few ports for many connections to one place.
    private func source(_ index: Int) -> UInt32 {
        guard settings.server.isLoopback else { return 0 }
        let addresses = min(200, 8 + settings.devices / 10_000)
        return SocketAddress.loopback + 1 + UInt32(index % addresses)
    }

    mutating func connect(_ index: Int) throws(BenchFailure) {
        let descriptor: Int32
        do throws(SystemError) {
            descriptor = try Socket.connect(to: settings.server, from: source(index))
        } catch {
            try cannotConnect(index, error)
            return
        }
        openSockets += 1
        devices[index].descriptor = descriptor
        devices[index].isSettled = false
        devices[index].received = 0
        devices[index].unacknowledged = 0
        let hello = HelloFrame(nonce: Bytes32(Cryptography.random(32)) ?? .zero)
        handshakes[index] = BenchHandshake(hello: hello.body())
        // On loopback the connection is there at once; else the greeting waits until it is.
        let isSent = send(index, hello.encoded())
        devices[index].phase = isSent ? .greeted : .connecting
        do throws(SystemError) {
            try poller.add(descriptor, isSent ? .readable : [.readable, .writable], token: UInt64(index))
        } catch {
            try cannotConnect(index, error)
        }
    }

    private mutating func cannotConnect(_ index: Int, _ error: SystemError) throws(BenchFailure) {
        if returning != nil {
            setbacks.note(error.description)
            return lose(index)
        }
        if tally.welcomes == 0 { throw BenchFailure(sentence: "\(error) (is the gateway running?)") }
        problems.note(error.description)
        lose(index)
    }

    /// Whether all of it left. Device frames are small, so that a full send buffer means a connection that is stuck.
    @discardableResult
    mutating func send(_ index: Int, _ bytes: [UInt8]) -> Bool {
        devices[index].sentAt = now
        return bytes.withUnsafeBytes { Socket.send(devices[index].descriptor, $0) } == .moved(bytes.count)
    }

    mutating func deviceEvent(_ index: Int, writable: Bool) throws(BenchFailure) {
        guard devices[index].descriptor >= 0 else { return }
        if devices[index].phase == .connecting {
            let code = Socket.error(of: devices[index].descriptor)
            guard code == 0 else {
                try cannotConnect(index, SystemError("connect to \(settings.server)", code))
                return
            }
            guard writable, let handshake = handshakes[index] else { return }
            devices[index].phase = .greeted
            var hello = ByteWriter()
            hello.byte(FrameType.hello.rawValue)
            hello.string(handshake.hello)
            send(index, hello.bytes)
            try? poller.modify(devices[index].descriptor, .readable, token: UInt64(index))
            return
        }
        switch Socket.receive(devices[index].descriptor, into: readBuffer) {
        case .moved(let count):
            tally.receivedBytes += UInt64(count)
            readFrames(index, count)
        case .wouldBlock: break
        case .ended: ended(index)
        case .failed(let code):
            noteLoss(SystemError("receive as a device", code).description)
            lose(index)
        }
    }

    private mutating func readFrames(_ index: Int, _ count: Int) {
        let received = BenchClock.nanoseconds
        let bytes = UnsafeRawBufferPointer(rebasing: readBuffer[..<count])
        let kept = unfinished.isEmpty ? nil : unfinished.removeValue(forKey: index)
        if let kept {
            let joined = kept + bytes
            joined.withUnsafeBytes { splitFrames(index, $0, received) }
        } else {
            splitFrames(index, bytes, received)
        }
        acknowledge(index)
    }

    private mutating func splitFrames(_ index: Int, _ bytes: UnsafeRawBufferPointer, _ received: UInt64) {
        var offset = 0
        while devices[index].descriptor >= 0 {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            switch FrameSplitter.split(rest, bodyLimit: Limits.gatewayFrameBytes) {
            case .incomplete:
                if !rest.isEmpty { unfinished[index] = Array(rest) }
                return
            case .tooLarge, .malformed:
                problems.note("a frame from the gateway is malformed")
                lose(index)
            case .frame(let type, let body, let consumed):
                offset += consumed
                if type == FrameType.push.rawValue {
                    deliver(index, body, received)
                } else {
                    receive(index, type, body)
                }
            }
        }
    }

    private mutating func deliver(_ index: Int, _ body: UnsafeRawBufferPointer, _ received: UInt64) {
        guard let push = BenchPush.read(body), let stamp = stamp(of: push) else {
            problems.note("a push is not of this run")
            return
        }
        if takesNothing { return }
        devices[index].unacknowledged &+= 1
        guard push.seq > devices[index].lastSeq else {
            tally.repeats += 1
            return
        }
        devices[index].lastSeq = push.seq
        if settings.mode == .broadcast, stamp.isBroadcast { return tookBroadcast(stamp.due, received) }
        devices[index].received += 1
        tally.delivered += 1
        // What lay there for long says nothing about how fast it came.
        guard !crowd.contains(index) else { return }
        let latency = received > stamp.due ? received - stamp.due : 0
        deliveries.record(latency)
        recent.record(latency)
    }

    private mutating func stamp(of push: BenchPush) -> BenchStamp.Reading? {
        guard push.flags.contains(.compressed) else { return BenchStamp.read(push.payload) }
        guard let parts = try? CompressedPayload.split(push.payload),
            let original = Inflation.inflate(parts.stream, count: parts.originalCount)
        else { return nil }
        tally.compressed += 1
        return original.withUnsafeBytes { BenchStamp.read($0) }
    }

    private mutating func receive(_ index: Int, _ type: UInt8, _ body: UnsafeRawBufferPointer) {
        let frame: GatewayFrame
        do throws(WireError) {
            frame = try GatewayFrame.decode(type: type, body: body)
        } catch {
            problems.note("a frame from the gateway is not understood")
            lose(index)
            return
        }
        switch frame {
        case .challenge: prove(index, challenge: Array(body))
        case .registered(let registered):
            devices[index].cid = registered.cid.value
            devices[index].secret = registered.secret
            devices[index].generation = registered.generation
            devices[index].isRegistered = true
        case .welcome(let welcome): welcomed(index, welcome)
        case .gap(let gap):
            tally.dropped &+= gap.count
            devices[index].lastSeq = max(devices[index].lastSeq, gap.seq.rawValue)
            devices[index].unacknowledged &+= 1
        case .ping: send(index, [FrameType.pong.rawValue, 0])
        case .close(let close): problems.note("closed by the gateway: \(close.code) \(close.text)")
        case .pong: answeredPing(index)
        case .resumed, .tokenSaved, .unknownSkippable, .push: break
        }
    }

    private mutating func prove(_ index: Int, challenge: [UInt8]) {
        guard var handshake = handshakes[index] else { return }
        handshake.challenge = challenge
        handshakes[index] = handshake
        devices[index].phase = .asked
        if devices[index].isRegistered {
            let login = LoginFrame(
                appID: settings.appID, cid: CID(devices[index].cid), generation: devices[index].generation,
                epoch: devices[index].epoch, lastSeq: Seq(devices[index].lastSeq), wishes: wishes)
            send(index, handshake.prove(login, secret: devices[index].secret))
        } else {
            let register = RegisterFrame(
                appID: settings.appID, installationKey: Bytes32(Cryptography.random(32)) ?? .zero, wishes: wishes,
                extensions: AttachExtensions(deviceToken: token()))
            send(index, handshake.prove(register, appSecret: settings.appSecret))
        }
    }

    private var wishes: AttachWishes { AttachWishes(capabilities: settings.compresses ? .compressedPayloads : []) }

    /// Only where a stub would be wrong and must not be missed for want of a token.
    private func token() -> TokenChange? {
        guard settings.mode == .reconnect else { return nil }
        return PushToken(environment: .sandbox, bytes: Cryptography.random(32)).map { .set($0) }
    }

    private mutating func welcomed(_ index: Int, _ welcome: WelcomeFrame) {
        handshakes[index] = nil
        tally.welcomes += 1
        devices[index].phase = .online
        if !welcome.isResumed { devices[index].lastSeq = 0 }
        devices[index].epoch = welcome.epoch
        keepAlive = min(keepAlive, welcome.keepAlive &* 1_000_000_000)
        switch plan(of: index) {
        case .stay: settle(index)
        case .leave: sayBye(index, after: [])
        case .collect(let count): if count == 0 { sayBye(index, after: []) }
        }
    }

    private mutating func sayBye(_ index: Int, after bytes: [UInt8]) {
        devices[index].phase = .leaving
        send(index, bytes + [FrameType.bye.rawValue, 0])
    }

    private mutating func settle(_ index: Int) {
        guard !devices[index].isSettled else { return }
        devices[index].isSettled = true
        settled += 1
    }

    /// The gateway has hung up: as it should after `bye`, or a loss.
    private mutating func ended(_ index: Int) {
        guard devices[index].phase == .leaving else {
            noteLoss("the gateway closed a device's connection while \(devices[index].phase)")
            lose(index)
            return
        }
        tally.left += 1
        closeSocket(index)
        settle(index)
    }

    private mutating func noteLoss(_ text: String) {
        if returning == nil { problems.note(text) } else { setbacks.note(text) }
    }

    mutating func lose(_ index: Int) {
        if returning != nil {
            closeSocket(index)
            if devices[index].isSettled { settled -= 1 }
            devices[index].isSettled = false
            returning?.append(index)
            return
        }
        problems.failedDevices += 1
        closeSocket(index)
        settle(index)
    }

    private mutating func closeSocket(_ index: Int) {
        handshakes[index] = nil
        unfinished[index] = nil
        devices[index].phase = .away
        guard devices[index].descriptor >= 0 else { return }
        Socket.close(devices[index].descriptor)
        devices[index].descriptor = -1
        openSockets -= 1
    }

    // MARK: - Acknowledging

    private mutating func acknowledge(_ index: Int) {
        guard devices[index].phase == .online else { return }
        if case .collect(let count) = plan(of: index), devices[index].received >= count {
            sayBye(index, after: ack(index))
            return
        }
        guard devices[index].unacknowledged > 0 else { return }
        switch settings.acks {
        case .none: break
        case .each: sendAck(index)
        case .late:
            if devices[index].unacknowledged >= 32 {
                sendAck(index)
            } else if !devices[index].isAckQueued {
                devices[index].isAckQueued = true
                lateAcks.append((Int32(index), now + 1_000_000_000))
            }
        }
    }

    private func ack(_ index: Int) -> [UInt8] { AckFrame(seq: Seq(devices[index].lastSeq)).encoded() }

    private mutating func sendAck(_ index: Int) {
        devices[index].unacknowledged = 0
        devices[index].sentAt = now
        let seq = devices[index].lastSeq
        let descriptor = devices[index].descriptor
        // By hand, since this is done for every message.
        withUnsafeTemporaryAllocation(byteCount: 12, alignment: 1) { frame in
            var count = 2
            var rest = seq
            while rest >= 0x80 {
                frame[count] = UInt8(truncatingIfNeeded: rest) | 0x80
                rest >>= 7
                count += 1
            }
            frame[count] = UInt8(rest)
            count += 1
            frame[0] = FrameType.ack.rawValue
            frame[1] = UInt8(count - 2)
            _ = Socket.send(descriptor, UnsafeRawBufferPointer(rebasing: frame[..<count]))
        }
    }

    mutating func sendLateAcks() {
        while lateAcksHead < lateAcks.count, lateAcks[lateAcksHead].due <= now {
            let index = Int(lateAcks[lateAcksHead].device)
            lateAcksHead += 1
            devices[index].isAckQueued = false
            if devices[index].phase == .online, devices[index].unacknowledged > 0 { sendAck(index) }
        }
        if lateAcksHead > 65_536 {
            lateAcks.removeFirst(lateAcksHead)
            lateAcksHead = 0
        }
    }

    /// Whoever has been silent for half the granted time says something.
    mutating func keepAlives() {
        for index in devices.indices where devices[index].phase == .online {
            if now > devices[index].sentAt + keepAlive / 2 { send(index, [FrameType.ping.rawValue, 0]) }
        }
    }
}
