package import FerryCore

/// A frame from a device.
package enum DeviceFrame: Hashable, Sendable {
    case hello(HelloFrame)
    case login(LoginFrame)
    case register(RegisterFrame)
    case ack(AckFrame)
    case ping
    case pong
    case background
    case foreground(ForegroundFrame)
    case bye
    case deviceToken(DeviceTokenFrame)
    /// A type that this version does not know and may skip (not during the handshake: there it is 5000).
    case unknownSkippable(UInt8)

    /// Reads one body. Allocates nothing for `ack`, `ping`, `pong`, `foreground`.
    /// - Throws: 5000 for a malformed body, a gateway's frame, or an unknown type that must be understood; 5005 for a
    ///   field out of its range.
    package static func decode(type: UInt8, body: UnsafeRawBufferPointer) throws(WireError) -> DeviceFrame {
        guard let known = FrameType(rawValue: type) else {
            guard FrameType.isSkippable(type) else { throw .mustUnderstand }
            return .unknownSkippable(type)
        }
        var reader = BodyReader(body)
        switch known {
        case .ack: return .ack(try AckFrame(body: body))
        case .ping:
            try reader.end()
            return .ping
        case .pong:
            try reader.end()
            return .pong
        case .background:
            try reader.end()
            return .background
        case .bye:
            try reader.end()
            return .bye
        case .hello: return .hello(try HelloFrame(body: body))
        case .login: return .login(try LoginFrame(body: body))
        case .register: return .register(try RegisterFrame(body: body))
        case .foreground: return .foreground(try ForegroundFrame(body: body))
        case .deviceToken: return .deviceToken(try DeviceTokenFrame(body: body))
        case .challenge, .registered, .welcome, .push, .gap, .resumed, .tokenSaved, .close: throw .wrongDirection
        case .linkLogin, .linkPush, .linkWelcome, .linkAnswer: return .unknownSkippable(type)
        }
    }

    /// Appends the whole frame. A skipped unknown frame has nothing to write.
    package func encode(into writer: inout ByteWriter) {
        switch self {
        case .hello(let frame): frame.encode(into: &writer)
        case .login(let frame): frame.encode(into: &writer)
        case .register(let frame): frame.encode(into: &writer)
        case .ack(let frame): frame.encode(into: &writer)
        case .ping: writer.raw([FrameType.ping.rawValue, 0])
        case .pong: writer.raw([FrameType.pong.rawValue, 0])
        case .background: writer.raw([FrameType.background.rawValue, 0])
        case .foreground(let frame): frame.encode(into: &writer)
        case .bye: writer.raw([FrameType.bye.rawValue, 0])
        case .deviceToken(let frame): frame.encode(into: &writer)
        case .unknownSkippable: break
        }
    }

    package func encoded() -> [UInt8] {
        var writer = ByteWriter()
        encode(into: &writer)
        return writer.bytes
    }
}
