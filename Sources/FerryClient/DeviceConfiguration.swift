/// Which gateway a device attaches to, as which app, and with what wishes.
public struct DeviceConfiguration: Sendable {
    /// Apple's two push services.
    public enum Environment: String, Sendable {
        /// For development builds.
        case sandbox
        /// For the App Store and TestFlight.
        case production
    }

    /// Where Apple's push service finds this device.
    public struct DeviceToken: Sendable, Hashable {
        /// Which service knows the token.
        public var environment: Environment
        /// 1...128 bytes, as the system gave them.
        public var bytes: [UInt8]

        /// Makes a token of what the system gave.
        public init(environment: Environment, bytes: [UInt8]) {
            self.environment = environment
            self.bytes = bytes
        }
    }

    /// `HOST:PORT` of the gateway's device port, with an IPv4 address or `localhost`.
    public var server: String
    /// The app's id.
    public var appID: String
    /// The app's secret for devices (not the master secret).
    public var appSecret: String
    /// Told to the gateway at every login; nil tells nothing.
    public var deviceToken: DeviceToken?
    /// Name and version of the app, for the gateway's log; at most 64 bytes of it are sent.
    public var clientInfo: String?
    /// How often to say something on a quiet connection, in seconds; 0 leaves it to the gateway.
    public var keepAliveSeconds: UInt64 = 0
    /// How many messages may be unacknowledged; 0 leaves it to the gateway.
    public var window: UInt64 = 0
    /// Whether the gateway may send long payloads compressed. The app gets them as they were sent either way.
    public var takesCompressedPayloads = true
    /// false only in tests: messages are taken and never acknowledged, and come again after the next start.
    public var acknowledges = true

    /// Makes a configuration with the gateway's defaults.
    public init(server: String, appID: String, appSecret: String) {
        self.server = server
        self.appID = appID
        self.appSecret = appSecret
    }
}

/// What keeps a client from being made.
public enum DeviceClientError: Error, Sendable, CustomStringConvertible {
    /// A part of the configuration cannot be used; the text says which and why.
    case configuration(String)
    /// The identity store could not be read, or holds something else.
    case store(String)
    /// The system refused.
    case system(String)

    /// One sentence.
    public var description: String {
        switch self {
        case .configuration(let text), .store(let text), .system(let text): text
        }
    }
}
