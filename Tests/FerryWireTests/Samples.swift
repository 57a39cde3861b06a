internal import FerryCore
internal import FerryWire

/// One or more frames of every kind, with extremes in their fields.
enum Samples {
    struct Missing: Error {}

    static func unwrap<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw Missing() }
        return value
    }

    static func bytes32(_ fill: UInt8) throws -> Bytes32 { try unwrap(Bytes32((0..<32).map { fill &+ $0 })) }

    static let identifier = Identifier128(high: 0x0011_2233_4455_6677, low: 0x8899_aabb_ccdd_eeff)

    static func deviceFrames() throws -> [DeviceFrame] {
        let app = try unwrap(AppID("demo-app"))
        let longApp = try unwrap(AppID(String(repeating: "a", count: 64)))
        let token = try unwrap(PushToken(environment: .production, bytes: [UInt8](repeating: 7, count: 128)))
        let small = try unwrap(PushToken(environment: .sandbox, bytes: [1]))
        return [
            .hello(HelloFrame(nonce: try bytes32(1))),
            .hello(HelloFrame(version: .max, nonce: .zero)),
            .login(LoginFrame(appID: app, cid: CID(identifier), generation: 1, proof: try bytes32(9))),
            .login(
                LoginFrame(
                    appID: longApp, cid: CID(identifier), generation: .max, epoch: Epoch(.max), lastSeq: Seq(.max),
                    wishes: AttachWishes(keepAlive: .max, window: .max, capabilities: .init(rawValue: .max)),
                    extensions: AttachExtensions(
                        deviceToken: .set(token), clientInfo: String(repeating: "é", count: 32)),
                    proof: try bytes32(200))),
            .login(
                LoginFrame(
                    appID: app, cid: CID(identifier), generation: 0,
                    extensions: AttachExtensions(deviceToken: .clear, clientInfo: ""))),
            .register(RegisterFrame(appID: app, installationKey: try bytes32(3), proof: try bytes32(4))),
            .register(
                RegisterFrame(
                    appID: app, installationKey: try bytes32(3), wishes: AttachWishes(keepAlive: 5, window: 1),
                    extensions: AttachExtensions(deviceToken: .set(small)))),
            .ack(AckFrame(seq: .zero)), .ack(AckFrame(seq: Seq(127))), .ack(AckFrame(seq: Seq(.max))),
            .ping, .pong, .background, .bye,
            .foreground(ForegroundFrame(lastSeq: Seq(300))),
            .deviceToken(DeviceTokenFrame(change: .clear)),
            .deviceToken(DeviceTokenFrame(change: .set(token))),
            .deviceToken(DeviceTokenFrame(change: .set(small))),
        ]
    }

    static func gatewayFrames() throws -> [GatewayFrame] {
        let task = TaskID(identifier, monthDay: 1231, kind: .single)
        return [
            .challenge(ChallengeFrame(nonce: try bytes32(5))),
            .registered(
                RegisteredFrame(cid: CID(identifier), generation: 3, secret: try bytes32(6), proof: try bytes32(7))),
            .welcome(
                WelcomeFrame(sessionID: SessionID(rawValue: 1), epoch: Epoch(2), isResumed: false, proof: .zero)),
            .welcome(
                WelcomeFrame(
                    sessionID: SessionID(rawValue: .max), epoch: Epoch(.max), isResumed: true, serverTime: .max,
                    keepAlive: .max, window: .max, windowBytes: .max, keptMessages: .max, keptBytes: .max,
                    proof: try bytes32(8))),
            .push(
                PushFrame(seq: Seq(1), messageID: MessageID(identifier), taskID: task.description, payload: [])),
            .push(
                PushFrame(
                    seq: Seq(.max), flags: .offLine, messageID: MessageID(identifier), taskID: "",
                    payload: Array(0...255))),
            .push(
                PushFrame(
                    seq: Seq(2), flags: [.offLine, .compressed], messageID: MessageID(identifier), taskID: "t",
                    payload: [1, 0x78])),
            .welcome(
                WelcomeFrame(
                    sessionID: SessionID(rawValue: 1), epoch: Epoch(2), isResumed: false, compressesPayloads: true,
                    proof: .zero)),
            .gap(GapFrame(Gap(upTo: Seq(12), expired: 2, overflowed: .max))),
            .gap(GapFrame(seq: .zero, upTo: .zero, count: 0)),
            .gap(GapFrame(seq: Seq(.max), upTo: Seq(.max), count: .max, expired: .max, overflowed: .max)),
            .ping, .pong,
            .resumed(
                ResumedFrame(sessionID: SessionID(rawValue: 77), isResumed: true, keptMessages: 3, keptBytes: 999)),
            .tokenSaved(TokenSavedFrame(environment: nil)),
            .tokenSaved(TokenSavedFrame(environment: .production)),
            .close(CloseFrame(code: .takenOver)),
            .close(CloseFrame(code: CloseCode(rawValue: .max), text: "", retryAfter: .max)),
        ]
    }

    /// One whole frame in `bytes`: its type and a copy of its body; nil when there is not exactly one.
    static func open(_ bytes: [UInt8], bodyLimit: Int = Limits.gatewayFrameBytes) -> (type: UInt8, body: [UInt8])? {
        bytes.withUnsafeBytes { raw in
            guard case .frame(let type, let body, let consumed) = FrameSplitter.split(raw, bodyLimit: bodyLimit),
                consumed == raw.count
            else { return nil }
            return (type, Array(body))
        }
    }

    static func device(_ type: UInt8, _ body: [UInt8]) -> Result<DeviceFrame, WireError> {
        body.withUnsafeBytes { raw in
            do throws(WireError) { return .success(try DeviceFrame.decode(type: type, body: raw)) } catch {
                return .failure(error)
            }
        }
    }

    static func gateway(_ type: UInt8, _ body: [UInt8]) -> Result<GatewayFrame, WireError> {
        body.withUnsafeBytes { raw in
            do throws(WireError) { return .success(try GatewayFrame.decode(type: type, body: raw)) } catch {
                return .failure(error)
            }
        }
    }
}
