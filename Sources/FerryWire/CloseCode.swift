/// Why a gateway closes a connection. The number's thousand tells the device its duty, so that a code made after a client
/// was built is still obeyed. `protocol-spec/registry/close-codes.json` says the same; a test compares.
package struct CloseCode: RawRepresentable, Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    package let rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// What a device does after a close.
    package enum Duty: Hashable, Sendable, CaseIterable {
        /// Come back after a delay that grows from 1 s to 5 min.
        case reconnectWithBackoff
        /// Come back at once; a second time within a minute, with back-off.
        case reconnectAtOnce
        /// Forget the identity, then register; at once, then with back-off.
        case registerAnew
        /// Stay away until the app comes to the foreground again.
        case stopUntilForeground
        /// Stay away until software or configuration changes.
        case stop
    }

    package static let stopping = Self(rawValue: 1000)
    package static let overloaded = Self(rawValue: 1001)
    package static let keepAliveExpired = Self(rawValue: 1002)
    package static let ackDeadlineExpired = Self(rawValue: 1003)
    package static let tooSlow = Self(rawValue: 1004)
    package static let noAcknowledgement = Self(rawValue: 1005)
    package static let storeUnavailable = Self(rawValue: 1006)
    package static let tooManyConnections = Self(rawValue: 1007)
    package static let handshakeTooLong = Self(rawValue: 1008)
    package static let logInAgain = Self(rawValue: 2000)
    package static let unknownDevice = Self(rawValue: 3000)
    package static let generationRetired = Self(rawValue: 3001)
    package static let wrongDeviceProof = Self(rawValue: 3002)
    package static let deviceRemoved = Self(rawValue: 3003)
    package static let takenOver = Self(rawValue: 4000)
    package static let protocolError = Self(rawValue: 5000)
    package static let unsupportedVersion = Self(rawValue: 5001)
    package static let unknownApp = Self(rawValue: 5002)
    package static let wrongAppSecret = Self(rawValue: 5003)
    package static let frameTooLarge = Self(rawValue: 5004)
    package static let fieldOutOfRange = Self(rawValue: 5005)
    package static let acknowledgedUnsent = Self(rawValue: 5006)
    package static let linkRefused = Self(rawValue: 5007)

    package static let all: [CloseCode] = [
        stopping, overloaded, keepAliveExpired, ackDeadlineExpired, tooSlow, noAcknowledgement, storeUnavailable,
        tooManyConnections, handshakeTooLong, logInAgain, unknownDevice, generationRetired, wrongDeviceProof,
        deviceRemoved, takenOver,
        protocolError, unsupportedVersion, unknownApp, wrongAppSecret, frameTooLarge, fieldOutOfRange,
        acknowledgedUnsent, linkRefused,
    ]

    /// By range; a number outside all ranges asks for no more than a lost connection does.
    package var duty: Duty {
        switch rawValue {
        case 2000...2999: .reconnectAtOnce
        case 3000...3999: .registerAnew
        case 4000...4999: .stopUntilForeground
        case 5000...5999: .stop
        default: .reconnectWithBackoff
        }
    }

    /// A sentence part for people, without the number.
    package var text: String {
        switch self {
        case .stopping: "the gateway is stopping"
        case .overloaded: "the gateway is overloaded"
        case .keepAliveExpired: "nothing was heard within the keep-alive time"
        case .ackDeadlineExpired: "nothing was heard while messages awaited their acknowledgement"
        case .tooSlow: "the connection takes messages too slowly"
        case .noAcknowledgement: "messages were not acknowledged for too long"
        case .storeUnavailable: "the gateway's store is not available"
        case .tooManyConnections: "the gateway has too many connections"
        case .handshakeTooLong: "the handshake took too long"
        case .logInAgain: "log in again"
        case .unknownDevice: "the device is not known"
        case .generationRetired: "the device's secret has been replaced"
        case .wrongDeviceProof: "the device's proof is wrong"
        case .deviceRemoved: "the device was removed"
        case .takenOver: "a newer session of the same device took over"
        case .protocolError: "a frame broke the protocol"
        case .unsupportedVersion: "the protocol version is not supported"
        case .unknownApp: "the app is not known"
        case .wrongAppSecret: "the app secret is wrong"
        case .frameTooLarge: "a frame is too large"
        case .fieldOutOfRange: "a field is out of its range"
        case .acknowledgedUnsent: "a message was acknowledged that was never sent"
        case .linkRefused: "the app is not known, or its master secret is wrong"
        default: "closed for a reason that this version does not know"
        }
    }

    /// Such as "4000 (a newer session of the same device took over)".
    package var description: String { "\(rawValue) (\(text))" }
}
