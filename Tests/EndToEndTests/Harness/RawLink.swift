internal import FerryCore
internal import FerryIO
internal import FerryWire

/// A backend's link that says exactly what a test wants it to say, also what is wrong.
final class RawLink {
    let socket: ByteSocket
    let app: TestApp
    private(set) var welcome: LinkWelcomeFrame?
    /// Pushes sent so far: the number of the last one.
    private(set) var sent: UInt64 = 0
    private var buffer: [UInt8] = []
    private var hello: [UInt8] = []
    private var challenge: [UInt8] = []

    init(_ world: World, app: TestApp = .first, hasSmallBuffer: Bool = false, opens: Bool = true) async throws {
        socket = try await ByteSocket(to: world.links, hasSmallBuffer: hasSmallBuffer)
        self.app = app
        if opens { try await open() }
    }

    func close() { socket.close() }

    func send(_ frame: LinkBackendFrame) async throws { try await socket.send(frame.encoded()) }

    /// Sends a push; its number.
    @discardableResult
    func push(_ push: LinkPushFrame) async throws -> UInt64 {
        try await socket.send(push.encoded())
        sent += 1
        return sent
    }

    static func freshID() -> Identifier128 {
        Identifier128(bytes: Cryptography.random(16)) ?? Identifier128(high: 0, low: 0)
    }

    /// All in one write.
    @discardableResult
    func push(_ cid: CID, all texts: [String], ids: [Identifier128]? = nil) async throws -> UInt64 {
        let frames = texts.enumerated().flatMap { index, text in
            LinkPushFrame(id: ids?[index] ?? Self.freshID(), cid: cid, payload: Array(text.utf8)).encoded()
        }
        try await socket.send(frames)
        sent += UInt64(texts.count)
        return sent
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

    /// The next frame; nil when the connection has ended.
    func next(within patience: Duration = patience) async throws -> LinkGatewayFrame? {
        guard let (type, body) = try await nextRaw(within: patience) else { return nil }
        return try body.withUnsafeBytes { try LinkGatewayFrame.decode(type: type, body: $0) }
    }

    /// Takes answers until everything up to `number` has one; the refusals among them.
    @discardableResult
    func answers(upTo number: UInt64) async throws -> [LinkRefusal] {
        var refusals: [LinkRefusal] = []
        var last: UInt64 = 0
        while last < number {
            let frame = try await next()
            guard case .answer(let answer)? = frame else {
                throw Unexpected("\(frame.map { "\($0)" } ?? "the end") instead of an answer")
            }
            guard answer.upTo > last else { throw Unexpected("an answer says nothing new") }
            last = answer.upTo
            refusals += answer.refusals
        }
        guard last == number else { throw Unexpected("answered up to \(last), sent \(number)") }
        return refusals
    }

    /// Waits for the close, over whatever comes before it, and answers also the last number that was answered before.
    func close() async throws -> (code: CloseCode, retryAfter: UInt64, answered: UInt64) {
        var answered: UInt64 = 0
        while let frame = try await next() {
            if case .answer(let answer) = frame { answered = answer.upTo }
            guard case .close(let close) = frame else { continue }
            guard try await next() == nil else { throw Unexpected("something came after a close") }
            return (close.code, close.retryAfter, answered)
        }
        throw Unexpected("the link ended without a close")
    }

    // MARK: - Handshake

    func sayHello() async throws {
        guard let nonce = Bytes32(Cryptography.random(32)) else { throw Unexpected("no nonce") }
        let frame = HelloFrame(nonce: nonce)
        hello = frame.body()
        try await send(.hello(frame))
        guard let (type, body) = try await nextRaw(within: patience), type == FrameType.challenge.rawValue else {
            throw Unexpected("no challenge")
        }
        challenge = body
    }

    func login(appID: String? = nil, secret: String? = nil) throws -> LinkLoginFrame {
        guard let appID = AppID(appID ?? app.id) else { throw Unexpected("no app id") }
        var frame = LinkLoginFrame(appID: appID)
        let signed = Transcript.linkLogin(hello: hello, challenge: challenge, signedPart: frame.signedPart())
        frame.proof = Bytes32(Cryptography.hmacSHA256(key: Array((secret ?? app.masterSecret).utf8), signed)) ?? .zero
        return frame
    }

    /// From `hello` to the welcome, whose proof is checked.
    func open() async throws {
        try await sayHello()
        let login = try login()
        try await send(.login(login))
        guard let (type, body) = try await nextRaw(within: patience), type == FrameType.linkWelcome.rawValue else {
            throw Unexpected("no welcome")
        }
        let welcome = try body.withUnsafeBytes { try LinkWelcomeFrame(body: $0) }
        let transcript = Transcript.linkWelcome(
            hello: hello, challenge: challenge, login: login.body(), signedPart: body.dropLast(32))
        guard Cryptography.hmacSHA256(key: Array(app.masterSecret.utf8), transcript) == welcome.proof.bytes else {
            throw Unexpected("the gateway's proof is wrong")
        }
        self.welcome = welcome
    }
}
