internal import FerryCore
internal import FerrySession
internal import FerryWire

/// Frames and policies for the tests of this module.
enum Sample {
    static let nonce = Bytes32([UInt8](repeating: 7, count: 32)) ?? .zero
    static let deviceNonce = Bytes32([UInt8](repeating: 9, count: 32)) ?? .zero

    static func hello(version: UInt64 = 1) -> DeviceFrame { .hello(HelloFrame(version: version, nonce: deviceNonce)) }

    static let login: DeviceFrame? = AppID("app").map {
        .login(LoginFrame(appID: $0, cid: CID(Identifier128(high: 1, low: 2)), generation: 3, lastSeq: Seq(4)))
    }

    static let register: DeviceFrame? = AppID("app").map { .register(RegisterFrame(appID: $0, installationKey: nonce)) }

    /// A frame's body as it travels.
    static func body(_ frame: DeviceFrame) -> [UInt8] {
        let bytes = frame.encoded()
        // The type, then a length of one or two bytes.
        return Array(bytes.dropFirst(bytes.count > 1 && bytes[1] & 0x80 != 0 ? 3 : 2))
    }

    /// Milliseconds where the default has seconds, so that a search sees every boundary.
    static var quickPolicy: SessionPolicy {
        var policy = SessionPolicy()
        policy.ackDeadline = .milliseconds(4)
        policy.progressDeadline = .milliseconds(9)
        policy.slowDeadline = .milliseconds(6)
        return policy
    }

    static let quickKeepAlive = Duration.milliseconds(8)
}
