internal import FerryCore
internal import FerryIO
internal import FerryWire

/// The bodies of one connection's handshake as they travelled, and the proofs over them.
struct HandshakeProofs {
    let appSecret: [UInt8]
    private var hello: [UInt8] = []
    private var challenge: [UInt8] = []
    private var request: [UInt8] = []

    init(appSecret: [UInt8]) { self.appSecret = appSecret }

    mutating func sent(_ frame: HelloFrame) { hello = frame.body() }
    mutating func received(challenge body: UnsafeRawBufferPointer) { challenge = Array(body) }

    /// The frame with its proof. nil for a login without a secret, or a frame that carries no proof.
    mutating func prove(_ frame: DeviceFrame, deviceSecret: [UInt8]?) -> DeviceFrame? {
        switch frame {
        case .login(var login):
            guard let deviceSecret else { return nil }
            let signed = Transcript.login(hello: hello, challenge: challenge, signedPart: login.signedPart())
            guard let proof = Bytes32(Cryptography.hmacSHA256(key: deviceSecret, signed)) else { return nil }
            login.proof = proof
            request = login.body()
            return .login(login)
        case .register(var register):
            let signed = Transcript.register(hello: hello, challenge: challenge, signedPart: register.signedPart())
            guard let proof = Bytes32(Cryptography.hmacSHA256(key: appSecret, signed)) else { return nil }
            register.proof = proof
            request = register.body()
            return .register(register)
        case .hello, .ack, .ping, .pong, .background, .foreground, .bye, .deviceToken, .unknownSkippable: return nil
        }
    }

    /// Whether the proof in a `registered` or `welcome` is the gateway's.
    func isProven(_ frame: GatewayFrame, body: UnsafeRawBufferPointer, deviceSecret: [UInt8]?) -> Bool {
        guard let signed = SignedBody.signedPart(of: body) else { return false }
        switch frame {
        case .registered(let registered):
            let made = Cryptography.hmacSHA256(
                key: appSecret,
                Transcript.registered(hello: hello, challenge: challenge, register: request, signedPart: signed))
            return Cryptography.isEqual(made, registered.proof.bytes)
        case .welcome(let welcome):
            guard let deviceSecret else { return false }
            let made = Cryptography.hmacSHA256(
                key: deviceSecret,
                Transcript.welcome(hello: hello, challenge: challenge, request: request, signedPart: signed))
            return Cryptography.isEqual(made, welcome.proof.bytes)
        case .challenge, .push, .gap, .ping, .pong, .resumed, .tokenSaved, .close, .unknownSkippable: return false
        }
    }
}

/// OpenSSL's random bytes, eight at a time.
struct CryptographicRandom: RandomNumberGenerator {
    mutating func next() -> UInt64 {
        Cryptography.random(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
