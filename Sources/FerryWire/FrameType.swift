/// The first byte of a frame. `protocol-spec/registry/frame-types.json` says the same; a test compares.
package enum FrameType: UInt8, Sendable, CaseIterable {
    case hello = 0x01
    case login = 0x02
    case register = 0x03
    case ack = 0x04
    case ping = 0x05
    case pong = 0x06
    case background = 0x07
    case foreground = 0x08
    case bye = 0x09
    case deviceToken = 0x0a
    case linkLogin = 0x21
    case linkPush = 0x22
    case challenge = 0x41
    case registered = 0x42
    case welcome = 0x43
    case push = 0x44
    case gap = 0x45
    case resumed = 0x46
    case tokenSaved = 0x47
    case close = 0x4f
    case linkWelcome = 0x61
    case linkAnswer = 0x62

    /// Whether a device may send it.
    package var isFromDevice: Bool {
        switch self {
        case .hello, .login, .register, .ack, .ping, .pong, .background, .foreground, .bye, .deviceToken: true
        case .challenge, .registered, .welcome, .push, .gap, .resumed, .tokenSaved, .close: false
        case .linkLogin, .linkPush, .linkWelcome, .linkAnswer: false
        }
    }

    /// Whether a gateway may send it to a device.
    package var isFromGateway: Bool {
        switch self {
        case .ping, .pong, .challenge, .registered, .welcome, .push, .gap, .resumed, .tokenSaved, .close: true
        case .hello, .login, .register, .ack, .background, .foreground, .bye, .deviceToken: false
        case .linkLogin, .linkPush, .linkWelcome, .linkAnswer: false
        }
    }

    /// Whether it is known on a backend's link and nowhere else: to devices it is a type that they do not know.
    package var isOfLinks: Bool {
        switch self {
        case .linkLogin, .linkPush, .linkWelcome, .linkAnswer: true
        case .hello, .login, .register, .ack, .ping, .pong, .background, .foreground, .bye, .deviceToken, .challenge,
            .registered, .welcome, .push, .gap, .resumed, .tokenSaved, .close:
            false
        }
    }

    /// Whether a receiver that does not know this type may skip the frame (0x00...0x7f) or must give up (0x80...0xff).
    package static func isSkippable(_ rawType: UInt8) -> Bool { rawType < 0x80 }
}
