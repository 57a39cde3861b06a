internal import FerryClientCore
internal import FerryCore
internal import FerryIO
internal import FerryWire

/// The proofs of one connection's handshake, as a client computes and checks them.
struct ClientProofs {
    let appSecret: [UInt8]
    private var hello: [UInt8] = []
    private var challenge: [UInt8] = []
    private var request: [UInt8] = []

    init(appSecret: [UInt8]) { self.appSecret = appSecret }

    mutating func sent(_ frame: HelloFrame) { hello = frame.body() }
    mutating func received(challenge body: UnsafeRawBufferPointer) { challenge = Array(body) }

    mutating func prove(_ frame: DeviceFrame, secret: [UInt8]?) -> DeviceFrame? {
        switch frame {
        case .login(var login):
            guard let secret else { return nil }
            let signed = Transcript.login(hello: hello, challenge: challenge, signedPart: login.signedPart())
            login.proof = Bytes32(Cryptography.hmacSHA256(key: secret, signed)) ?? .zero
            request = login.body()
            return .login(login)
        case .register(var register):
            let signed = Transcript.register(hello: hello, challenge: challenge, signedPart: register.signedPart())
            register.proof = Bytes32(Cryptography.hmacSHA256(key: appSecret, signed)) ?? .zero
            request = register.body()
            return .register(register)
        case .hello, .ack, .ping, .pong, .background, .foreground, .bye, .deviceToken, .unknownSkippable: return nil
        }
    }

    func isProven(_ frame: GatewayFrame, body: UnsafeRawBufferPointer, secret: [UInt8]?) -> Bool {
        guard let signed = SignedBody.signedPart(of: body) else { return false }
        switch frame {
        case .registered(let registered):
            let transcript = Transcript.registered(
                hello: hello, challenge: challenge, register: request, signedPart: signed)
            return Cryptography.hmacSHA256(key: appSecret, transcript) == registered.proof.bytes
        case .welcome(let welcome):
            let transcript = Transcript.welcome(
                hello: hello, challenge: challenge, request: request, signedPart: signed)
            return secret.map { Cryptography.hmacSHA256(key: $0, transcript) == welcome.proof.bytes } ?? false
        case .challenge, .push, .gap, .ping, .pong, .resumed, .tokenSaved, .close, .unknownSkippable: return false
        }
    }
}
