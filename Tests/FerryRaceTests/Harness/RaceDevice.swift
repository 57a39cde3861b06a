internal import FerryClientCore
internal import FerryCore
internal import FerryIO
internal import FerryWire
internal import Testing

/// A device with its identity and the connections that it makes, one after the other or at once.
final class RaceDevice {
    private let world: RaceWorld
    private(set) var cid = CID(Identifier128(high: 0, low: 0))
    private var secret: [UInt8] = []
    private var generation: UInt64 = 0
    private(set) var epoch = Epoch.none
    private let key: Bytes32
    let token: PushToken?

    /// Registers, is welcomed, says `bye`: known, and offline.
    init(_ world: RaceWorld, number: UInt8 = 1, hasToken: Bool = true) throws {
        self.world = world
        key = try #require(Bytes32([UInt8](repeating: number, count: 32)))
        token = hasToken ? PushToken(environment: .sandbox, bytes: Array("token-\(number)".utf8)) : nil
        let line = try RaceLine(world, self, shard: 0)
        try line.sayHello()
        line.introduce(register: key)
        world.settle()
        let frames = line.frames()
        guard case .registered(let registered)? = frames.first else { throw RaceFailure("no registration: \(frames)") }
        cid = registered.cid
        secret = registered.secret.bytes
        generation = registered.generation
        guard case .welcome(let welcome)? = frames.dropFirst().first else { throw RaceFailure("no welcome: \(frames)") }
        epoch = welcome.epoch
        line.send(.bye)
        world.settle()
        try #require(line.isEnded)
    }

    /// A connection up to the gateway's challenge: one frame before its session.
    func greet(shard: Int = 0) throws -> RaceLine {
        let line = try RaceLine(world, self, shard: shard)
        try line.sayHello()
        return line
    }

    /// A session; what the gateway sends right behind the welcome is not taken yet.
    func attach(
        lastSeq: Seq = .zero, window: UInt64 = 0, capabilities: AttachWishes.Capabilities = []
    ) throws -> RaceLine {
        let line = try greet()
        line.login(lastSeq: lastSeq, window: window, capabilities: capabilities)
        // Not `settle`: a read of what is kept may stay under way.
        for _ in 0..<3 { world.turn() }
        if !line.hasWelcome { world.settle() }
        try #require(line.takeWelcome() != nil)
        return line
    }

    fileprivate func loginFrame(
        _ app: AppID, lastSeq: Seq, window: UInt64, capabilities: AttachWishes.Capabilities
    ) -> LoginFrame {
        LoginFrame(
            appID: app, cid: cid, generation: generation, epoch: epoch, lastSeq: lastSeq,
            wishes: AttachWishes(window: window, capabilities: capabilities))
    }

    fileprivate var deviceSecret: [UInt8] { secret }
}

struct RaceFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// One connection of a device.
final class RaceLine {
    private let world: RaceWorld
    private let device: RaceDevice
    private let peer: RacePeer
    private var proofs: HandshakeProofs
    private static let cipher = HandshakeProofs.Cipher(
        mac: { Cryptography.hmacSHA256(key: $0, $1) }, isEqual: { Cryptography.isEqual($0, $1) })
    private var arrived: [GatewayFrame] = []

    init(_ world: RaceWorld, _ device: RaceDevice, shard: Int) throws {
        self.world = world
        self.device = device
        peer = try world.connect(to: shard)
        proofs = HandshakeProofs(appSecret: RaceWorld.appSecret, cipher: Self.cipher)
    }

    // MARK: - Sending

    func send(_ frames: DeviceFrame...) { peer.send(frames.flatMap { $0.encoded() }) }
    func ack(_ seq: Seq) { send(.ack(AckFrame(seq: seq))) }
    func close() { peer.close() }

    func sayHello() throws {
        let hello = HelloFrame(nonce: try #require(Bytes32([UInt8](repeating: 5, count: 32))))
        proofs.sent(hello)
        send(.hello(hello))
        // The second turn takes the socket off the poller's list: from now on what comes first is read first.
        for _ in 0..<2 { world.turn() }
        read()
        guard case .challenge? = arrived.first else { throw RaceFailure("no challenge: \(arrived)") }
        arrived.removeFirst()
    }

    func introduce(register key: Bytes32) {
        let token = device.token.map { TokenChange.set($0) }
        prove(
            .register(
                RegisterFrame(
                    appID: world.app, installationKey: key, extensions: AttachExtensions(deviceToken: token))))
    }

    /// The login is in the gateway's socket when this returns.
    func login(lastSeq: Seq = .zero, window: UInt64 = 0, capabilities: AttachWishes.Capabilities = []) {
        prove(
            .login(device.loginFrame(world.app, lastSeq: lastSeq, window: window, capabilities: capabilities)))
    }

    private func prove(_ frame: DeviceFrame) {
        guard let proven = proofs.prove(frame, deviceSecret: device.deviceSecret) else {
            Issue.record("no proof")
            return
        }
        send(proven)
    }

    // MARK: - Receiving

    private func read() {
        let bytes = peer.received()
        var used = 0
        bytes.withUnsafeBytes { bytes in
            while true {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[used...])
                switch FrameSplitter.split(rest, bodyLimit: Limits.gatewayFrameBytes) {
                case .incomplete: return
                case .tooLarge, .malformed:
                    Issue.record("the gateway sent what is no frame")
                    return
                case .frame(let type, let body, let count):
                    used += count
                    do {
                        let frame = try GatewayFrame.decode(type: type, body: body)
                        if case .challenge = frame { proofs.received(challenge: body) }
                        arrived.append(frame)
                    } catch {
                        Issue.record("the gateway sent what is no frame: \(error)")
                    }
                }
            }
        }
        peer.take(used)
    }

    /// All frames that came since the last look; `token-saved` is not told.
    func frames() -> [GatewayFrame] {
        read()
        defer { arrived = [] }
        return arrived.filter { if case .tokenSaved = $0 { false } else { true } }
    }

    fileprivate var hasWelcome: Bool {
        read()
        if case .welcome? = arrived.first { return true }
        return false
    }

    /// The welcome, if it is what comes next.
    func takeWelcome() -> WelcomeFrame? {
        read()
        guard case .welcome(let welcome)? = arrived.first else { return nil }
        arrived.removeFirst()
        return welcome
    }

    /// What the stream had since the last look; any other frame is told by its name.
    func stream() -> [Entry] {
        frames().map { frame in
            switch frame {
            case .push(let push): .push(String(decoding: push.payload, as: UTF8.self), push.flags.contains(.offLine))
            case .gap(let gap): .gap(expired: Int(gap.expired), overflowed: Int(gap.overflowed))
            case .close(let close): .close(close.code)
            case .ping: .ping
            case .pong: .pong
            case .resumed: .resumed
            default: .other("\(frame)")
            }
        }
    }

    enum Entry: Equatable {
        case push(String, _ offLine: Bool)
        case gap(expired: Int, overflowed: Int)
        case close(CloseCode)
        case ping
        case pong
        case resumed
        case other(String)
    }

    /// The pushes since the last look; other frames are skipped.
    func pushes() -> [PushFrame] { frames().compactMap { if case .push(let push) = $0 { push } else { nil } } }

    /// The gateway has closed the connection.
    var isEnded: Bool {
        read()
        return peer.isEnded
    }
}
