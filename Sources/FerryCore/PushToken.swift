/// Which of Apple's two push services knows a token.
package enum PushEnvironment: UInt8, Sendable, CaseIterable {
    case sandbox = 1
    case production = 2

    package var name: String { self == .sandbox ? "sandbox" : "production" }

    package init?(name: String) {
        switch name {
        case "sandbox": self = .sandbox
        case "production": self = .production
        default: return nil
        }
    }
}

/// Where APNs finds a device.
package struct PushToken: Hashable, Sendable {
    package let environment: PushEnvironment
    /// 1...`Limits.pushTokenBytes` bytes.
    package let bytes: [UInt8]

    /// nil when the token is empty or longer than `Limits.pushTokenBytes`.
    package init?(environment: PushEnvironment, bytes: [UInt8]) {
        guard (1...Limits.pushTokenBytes).contains(bytes.count) else { return nil }
        self.environment = environment
        self.bytes = bytes
    }
}
