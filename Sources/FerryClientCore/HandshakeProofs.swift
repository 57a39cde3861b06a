internal import FerryCore
package import FerryWire

/// The bodies of one connection's handshake as they travelled, and the proofs over them.
package struct HandshakeProofs: Sendable {
    /// The cryptography that a proof needs, from whoever has it.
    package struct Cipher: Sendable {
        /// HMAC-SHA-256 (RFC 2104): 32 bytes for a key and a message.
        let mac: @Sendable (_ key: [UInt8], _ message: [UInt8]) -> [UInt8]
        /// Whether both are the same, in a time that does not tell where they differ.
        let isEqual: @Sendable ([UInt8], [UInt8]) -> Bool

        package init(
            mac: @escaping @Sendable (_ key: [UInt8], _ message: [UInt8]) -> [UInt8],
            isEqual: @escaping @Sendable ([UInt8], [UInt8]) -> Bool
        ) {
            self.mac = mac
            self.isEqual = isEqual
        }
    }

    private let appSecret: [UInt8]
    private let cipher: Cipher
    private var hello: [UInt8] = []
    private var challenge: [UInt8] = []
    private var request: [UInt8] = []

    package init(appSecret: [UInt8], cipher: Cipher) {
        self.appSecret = appSecret
        self.cipher = cipher
    }

    package mutating func sent(_ frame: HelloFrame) { hello = frame.body() }
    package mutating func received(challenge body: UnsafeRawBufferPointer) { challenge = Array(body) }

    /// The frame with its proof. nil for a login without a secret, or a frame that carries no proof.
    package mutating func prove(_ frame: DeviceFrame, deviceSecret: [UInt8]?) -> DeviceFrame? {
        switch frame {
        case .login(var login):
            guard let deviceSecret else { return nil }
            let signed = Transcript.login(hello: hello, challenge: challenge, signedPart: login.signedPart())
            guard let proof = Bytes32(cipher.mac(deviceSecret, signed)) else { return nil }
            login.proof = proof
            request = login.body()
            return .login(login)
        case .register(var register):
            let signed = Transcript.register(hello: hello, challenge: challenge, signedPart: register.signedPart())
            guard let proof = Bytes32(cipher.mac(appSecret, signed)) else { return nil }
            register.proof = proof
            request = register.body()
            return .register(register)
        case .hello, .ack, .ping, .pong, .background, .foreground, .bye, .deviceToken, .unknownSkippable: return nil
        }
    }

    /// Whether the proof in a `registered` or `welcome` is the gateway's.
    package func isProven(_ frame: GatewayFrame, body: UnsafeRawBufferPointer, deviceSecret: [UInt8]?) -> Bool {
        guard let signed = SignedBody.signedPart(of: body) else { return false }
        switch frame {
        case .registered(let registered):
            let made = cipher.mac(
                appSecret,
                Transcript.registered(hello: hello, challenge: challenge, register: request, signedPart: signed))
            return cipher.isEqual(made, registered.proof.bytes)
        case .welcome(let welcome):
            guard let deviceSecret else { return false }
            let made = cipher.mac(
                deviceSecret,
                Transcript.welcome(hello: hello, challenge: challenge, request: request, signedPart: signed))
            return cipher.isEqual(made, welcome.proof.bytes)
        case .challenge, .push, .gap, .ping, .pong, .resumed, .tokenSaved, .close, .unknownSkippable: return false
        }
    }
}
