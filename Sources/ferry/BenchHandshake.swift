internal import FerryIO
internal import FerryWire

/// What a handshake needs until its welcome: the bodies under the proofs. The gateway's own proofs are not checked here, that
/// would be the load's time and not the gateway's.
struct BenchHandshake {
    let hello: [UInt8]
    var challenge: [UInt8] = []

    /// The frame's bytes, its proof in it.
    func prove(_ login: LoginFrame, secret: Bytes32) -> [UInt8] {
        var login = login
        let text = Transcript.login(hello: hello, challenge: challenge, signedPart: login.signedPart())
        login.proof = Self.proof(secret.bytes, text)
        return login.encoded()
    }

    func prove(_ register: RegisterFrame, appSecret: [UInt8]) -> [UInt8] {
        var register = register
        let text = Transcript.register(hello: hello, challenge: challenge, signedPart: register.signedPart())
        register.proof = Self.proof(appSecret, text)
        return register.encoded()
    }

    func prove(_ login: LinkLoginFrame, masterSecret: String) -> [UInt8] {
        var login = login
        let text = Transcript.linkLogin(hello: hello, challenge: challenge, signedPart: login.signedPart())
        login.proof = Self.proof(Array(masterSecret.utf8), text)
        return login.encoded()
    }

    private static func proof(_ key: [UInt8], _ text: [UInt8]) -> Bytes32 {
        Bytes32(Cryptography.hmacSHA256(key: key, text)) ?? .zero
    }
}
