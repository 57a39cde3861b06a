/// A frame from a backend on its link.
package enum LinkBackendFrame: Hashable, Sendable {
    case hello(HelloFrame)
    case login(LinkLoginFrame)
    case push(LinkPushFrame)
    case ping
    case pong
    /// A type that this version does not know and may skip (not during the handshake: there it is 5000).
    case unknownSkippable(UInt8)

    /// Reads one body.
    /// - Throws: 5000 for a malformed body, a frame that no backend sends, or an unknown type that must be understood;
    ///   5005 for a field out of its range.
    package static func decode(type: UInt8, body: UnsafeRawBufferPointer) throws(WireError) -> LinkBackendFrame {
        guard let known = FrameType(rawValue: type) else {
            guard FrameType.isSkippable(type) else { throw .mustUnderstand }
            return .unknownSkippable(type)
        }
        var reader = BodyReader(body)
        switch known {
        case .linkPush: return .push(try LinkPushFrame(body: body))
        case .ping:
            try reader.end()
            return .ping
        case .pong:
            try reader.end()
            return .pong
        case .hello: return .hello(try HelloFrame(body: body))
        case .linkLogin: return .login(try LinkLoginFrame(body: body))
        case .login, .register, .ack, .background, .foreground, .bye, .deviceToken, .challenge, .registered, .welcome,
            .push, .gap, .resumed, .tokenSaved, .close, .linkWelcome, .linkAnswer:
            throw .wrongDirection
        }
    }

    /// The whole frame. A skipped unknown frame has nothing to write.
    package func encoded() -> [UInt8] {
        switch self {
        case .hello(let frame): frame.encoded()
        case .login(let frame): frame.encoded()
        case .push(let frame): frame.encoded()
        case .ping: [FrameType.ping.rawValue, 0]
        case .pong: [FrameType.pong.rawValue, 0]
        case .unknownSkippable: []
        }
    }
}

/// A frame from a gateway on a backend's link.
package enum LinkGatewayFrame: Hashable, Sendable {
    case challenge(ChallengeFrame)
    case welcome(LinkWelcomeFrame)
    case answer(LinkAnswerFrame)
    case ping
    case pong
    case close(CloseFrame)
    /// A type that this version does not know and may skip (not during the handshake).
    case unknownSkippable(UInt8)

    /// Reads one body; throws as `LinkBackendFrame.decode`.
    package static func decode(type: UInt8, body: UnsafeRawBufferPointer) throws(WireError) -> LinkGatewayFrame {
        guard let known = FrameType(rawValue: type) else {
            guard FrameType.isSkippable(type) else { throw .mustUnderstand }
            return .unknownSkippable(type)
        }
        var reader = BodyReader(body)
        switch known {
        case .linkAnswer: return .answer(try LinkAnswerFrame(body: body))
        case .ping:
            try reader.end()
            return .ping
        case .pong:
            try reader.end()
            return .pong
        case .challenge: return .challenge(try ChallengeFrame(body: body))
        case .linkWelcome: return .welcome(try LinkWelcomeFrame(body: body))
        case .close: return .close(try CloseFrame(body: body))
        case .hello, .login, .register, .ack, .background, .foreground, .bye, .deviceToken, .registered, .welcome,
            .push, .gap, .resumed, .tokenSaved, .linkLogin, .linkPush:
            throw .wrongDirection
        }
    }

    /// The whole frame. A skipped unknown frame has nothing to write.
    package func encoded() -> [UInt8] {
        switch self {
        case .challenge(let frame): frame.encoded()
        case .welcome(let frame): frame.encoded()
        case .answer(let frame): frame.encoded()
        case .ping: [FrameType.ping.rawValue, 0]
        case .pong: [FrameType.pong.rawValue, 0]
        case .close(let frame): frame.encoded()
        case .unknownSkippable: []
        }
    }
}
