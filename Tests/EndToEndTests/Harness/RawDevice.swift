internal import FerryCore
internal import FerryIO
internal import FerryWire

/// What a device knows of itself after its registration.
struct TestIdentity: Hashable {
    var cid: CID
    var generation: UInt64
    var secret: [UInt8]
    var installationKey: Bytes32
}

/// A device that says exactly what a test wants it to say, also what is wrong.
final class RawDevice {
    let socket: ByteSocket
    let app: TestApp
    private(set) var identity: TestIdentity?
    private(set) var welcome: WelcomeFrame?
    private(set) var lastAcked = Seq.zero
    private var buffer: [UInt8] = []
    private var hello: [UInt8] = []
    private var challenge: [UInt8] = []
    private var request: [UInt8] = []
    /// Whether pings of the gateway are answered, and not shown to the test.
    var answersPings = true

    init(_ world: World, app: TestApp = .first, hasSmallBuffer: Bool = false) async throws {
        socket = try await ByteSocket(to: world.devices, hasSmallBuffer: hasSmallBuffer)
        self.app = app
    }

    // MARK: - Frames

    func send(_ frame: DeviceFrame) async throws { try await socket.send(frame.encoded()) }
    func ack(_ seq: Seq) async throws {
        lastAcked = max(lastAcked, seq)
        try await send(.ack(AckFrame(seq: seq)))
    }

    private func nextRaw(within patience: Duration) async throws -> (type: UInt8, body: [UInt8])? {
        while true {
            let found: (type: UInt8, body: [UInt8], consumed: Int)? = try buffer.withUnsafeBytes { bytes in
                switch FrameSplitter.split(bytes, bodyLimit: Limits.gatewayFrameBytes) {
                case .incomplete: return nil
                case .frame(let type, let body, let consumed): return (type, Array(body), consumed)
                case .tooLarge, .malformed: throw Unexpected("the gateway sent what is no frame")
                }
            }
            if let found {
                buffer.removeFirst(found.consumed)
                return (found.type, found.body)
            }
            guard let bytes = try await socket.receive(within: patience) else { return nil }
            buffer += bytes
        }
    }

    private func read(within patience: Duration) async throws -> (frame: GatewayFrame, body: [UInt8])? {
        while let (type, body) = try await nextRaw(within: patience) {
            let frame = try body.withUnsafeBytes { try GatewayFrame.decode(type: type, body: $0) }
            if answersPings, frame == .ping {
                try await send(.pong)
                continue
            }
            return (frame, body)
        }
        return nil
    }

    /// The next frame; nil when the connection has ended.
    func next(within patience: Duration = patience) async throws -> GatewayFrame? {
        try await read(within: patience)?.frame
    }

    func push() async throws -> PushFrame {
        let frame = try await next()
        guard case .push(let push)? = frame else { throw Unexpected("\(Self.show(frame)) instead of a push") }
        return push
    }

    func pushes(_ count: Int) async throws -> [PushFrame] {
        var pushes: [PushFrame] = []
        while pushes.count < count { pushes.append(try await push()) }
        return pushes
    }

    /// Takes `count` pushes, acknowledges each, and answers their texts.
    func take(_ count: Int) async throws -> [PushFrame] {
        var pushes: [PushFrame] = []
        while pushes.count < count {
            let push = try await push()
            pushes.append(push)
            try await ack(push.seq)
        }
        return pushes
    }

    func gap() async throws -> GapFrame {
        let frame = try await next()
        guard case .gap(let gap)? = frame else { throw Unexpected("\(Self.show(frame)) instead of a gap") }
        return gap
    }

    /// Waits for the close, over whatever comes before it. The connection must end behind it.
    func closeCode() async throws -> CloseCode {
        while let frame = try await next() {
            guard case .close(let close) = frame else { continue }
            guard try await next() == nil else { throw Unexpected("something came after a close") }
            return close.code
        }
        throw Unexpected("the connection ended without a close")
    }

    /// Everything that the gateway sent before it had read what was sent to it up to now.
    func settled() async throws -> [GatewayFrame] {
        try await send(.ping)
        var frames: [GatewayFrame] = []
        while let frame = try await next() {
            if frame == .pong { return frames }
            frames.append(frame)
        }
        throw Unexpected("the connection ended")
    }

    private static func show(_ frame: GatewayFrame?) -> String { frame.map { "\($0)" } ?? "the connection's end" }

    // MARK: - Handshake

    func sayHello() async throws {
        guard let nonce = Bytes32(Cryptography.random(32)) else { throw Unexpected("no nonce") }
        let frame = HelloFrame(nonce: nonce)
        hello = frame.body()
        try await send(.hello(frame))
        guard case (.challenge, let body)? = try await read(within: patience) else { throw Unexpected("no challenge") }
        challenge = body
    }

    /// The last `hello`, as it travelled.
    var helloBytes: [UInt8] { [FrameType.hello.rawValue, UInt8(hello.count)] + hello }

    /// The frame that registers, with its proof.
    func registration(
        key: Bytes32? = nil, token: TokenChange? = nil, secret: String? = nil, appID: String? = nil
    ) throws -> RegisterFrame {
        guard let key = key ?? Bytes32(Cryptography.random(32)), let appID = AppID(appID ?? app.id) else {
            throw Unexpected("no installation key")
        }
        var frame = RegisterFrame(
            appID: appID, installationKey: key, extensions: AttachExtensions(deviceToken: token))
        let signed = Transcript.register(hello: hello, challenge: challenge, signedPart: frame.signedPart())
        frame.proof = Bytes32(Cryptography.hmacSHA256(key: Array((secret ?? app.secret).utf8), signed)) ?? .zero
        request = frame.body()
        return frame
    }

    /// The frame that logs in, with its proof.
    func loginFrame(_ identity: TestIdentity, at place: StreamPlace = .none, wishes: AttachWishes = AttachWishes())
        throws -> LoginFrame
    {
        guard let appID = AppID(app.id) else { throw Unexpected("no app id") }
        var frame = LoginFrame(
            appID: appID, cid: identity.cid, generation: identity.generation, epoch: place.epoch,
            lastSeq: place.lastSeq, wishes: wishes)
        let signed = Transcript.login(hello: hello, challenge: challenge, signedPart: frame.signedPart())
        frame.proof = Bytes32(Cryptography.hmacSHA256(key: identity.secret, signed)) ?? .zero
        request = frame.body()
        return frame
    }

    /// From `hello` to `welcome` with a new identity.
    @discardableResult
    func register(key: Bytes32? = nil, token: String? = nil) async throws -> TestIdentity {
        try await sayHello()
        var change: TokenChange?
        if let token {
            guard let bytes = Hexadecimal.decode(token), let token = PushToken(environment: .sandbox, bytes: bytes)
            else { throw Unexpected("\(token) is no token") }
            change = .set(token)
        }
        let frame = try registration(key: key, token: change)
        try await send(.register(frame))
        guard case (.registered(let registered), let body)? = try await read(within: patience) else {
            throw Unexpected("not registered")
        }
        let signed = Array(body.dropLast(WireLimits.proofBytes))
        let proof = Cryptography.hmacSHA256(
            key: Array(app.secret.utf8),
            Transcript.registered(hello: hello, challenge: challenge, register: request, signedPart: signed))
        guard proof == registered.proof.bytes else { throw Unexpected("the gateway's proof is wrong") }
        let identity = TestIdentity(
            cid: registered.cid, generation: registered.generation, secret: registered.secret.bytes,
            installationKey: frame.installationKey)
        try await takeWelcome(identity)
        if token != nil {
            guard case .tokenSaved? = try await next() else { throw Unexpected("the token was not saved") }
        }
        return identity
    }

    /// From `hello` to `welcome`.
    @discardableResult
    func login(
        _ identity: TestIdentity, at place: StreamPlace = .none, window: UInt64 = 0, keepAlive: UInt64 = 0,
        capabilities: AttachWishes.Capabilities = []
    ) async throws -> WelcomeFrame {
        try await sayHello()
        let wishes = AttachWishes(keepAlive: keepAlive, window: window, capabilities: capabilities)
        try await send(.login(try loginFrame(identity, at: place, wishes: wishes)))
        return try await takeWelcome(identity)
    }

    @discardableResult
    private func takeWelcome(_ identity: TestIdentity) async throws -> WelcomeFrame {
        let answer = try await read(within: patience)
        guard case (.welcome(let welcome), let body)? = answer else {
            throw Unexpected("\(Self.show(answer?.frame)) instead of a welcome")
        }
        let signed = Array(body.dropLast(WireLimits.proofBytes))
        let proof = Cryptography.hmacSHA256(
            key: identity.secret,
            Transcript.welcome(hello: hello, challenge: challenge, request: request, signedPart: signed))
        guard proof == welcome.proof.bytes else { throw Unexpected("the gateway's proof is wrong") }
        self.identity = identity
        self.welcome = welcome
        return welcome
    }

    func close() { socket.close() }

    /// Leaves in order: the gateway has read all when this returns.
    func sayBye() async throws {
        try await send(.bye)
        while try await next() != nil {}
    }
}

/// Where a client has stopped.
struct StreamPlace {
    var epoch: Epoch
    var lastSeq: Seq
    static let none = StreamPlace(epoch: .none, lastSeq: .zero)
}

extension PushFrame {
    var text: String { String(decoding: payload, as: UTF8.self) }
    var isOffLine: Bool { flags.contains(.offLine) }
}
