package import FerryCore

/// A frame from a gateway.
package enum GatewayFrame: Hashable, Sendable {
    case challenge(ChallengeFrame)
    case registered(RegisteredFrame)
    case welcome(WelcomeFrame)
    case push(PushFrame)
    case gap(GapFrame)
    case ping
    case pong
    case resumed(ResumedFrame)
    case tokenSaved(TokenSavedFrame)
    case close(CloseFrame)
    /// A type that this version does not know and may skip (not during the handshake).
    case unknownSkippable(UInt8)

    /// Reads one body.
    /// - Throws: 5000 for a malformed body, a device's frame, or an unknown type that must be understood; 5005 for a
    ///   field out of its range. A device has nobody to send a code to: it drops the connection.
    package static func decode(type: UInt8, body: UnsafeRawBufferPointer) throws(WireError) -> GatewayFrame {
        guard let known = FrameType(rawValue: type) else {
            guard FrameType.isSkippable(type) else { throw .mustUnderstand }
            return .unknownSkippable(type)
        }
        var reader = BodyReader(body)
        switch known {
        case .push: return .push(try PushFrame(body: body))
        case .gap: return .gap(try GapFrame(body: body))
        case .ping:
            try reader.end()
            return .ping
        case .pong:
            try reader.end()
            return .pong
        case .challenge: return .challenge(try ChallengeFrame(body: body))
        case .registered: return .registered(try RegisteredFrame(body: body))
        case .welcome: return .welcome(try WelcomeFrame(body: body))
        case .resumed: return .resumed(try ResumedFrame(body: body))
        case .tokenSaved: return .tokenSaved(try TokenSavedFrame(body: body))
        case .close: return .close(try CloseFrame(body: body))
        case .hello, .login, .register, .ack, .background, .foreground, .bye, .deviceToken: throw .wrongDirection
        case .linkLogin, .linkPush, .linkWelcome, .linkAnswer: return .unknownSkippable(type)
        }
    }

    /// Appends the whole frame. A skipped unknown frame has nothing to write.
    package func encode(into writer: inout ByteWriter) {
        switch self {
        case .challenge(let frame): frame.encode(into: &writer)
        case .registered(let frame): frame.encode(into: &writer)
        case .welcome(let frame): frame.encode(into: &writer)
        case .push(let frame): frame.encode(into: &writer)
        case .gap(let frame): frame.encode(into: &writer)
        case .ping: writer.raw([FrameType.ping.rawValue, 0])
        case .pong: writer.raw([FrameType.pong.rawValue, 0])
        case .resumed(let frame): frame.encode(into: &writer)
        case .tokenSaved(let frame): frame.encode(into: &writer)
        case .close(let frame): frame.encode(into: &writer)
        case .unknownSkippable: break
        }
    }

    package func encoded() -> [UInt8] {
        var writer = ByteWriter()
        encode(into: &writer)
        return writer.bytes
    }
}
