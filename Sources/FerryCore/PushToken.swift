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

    /// Where an index of token holders keeps this token of this app: FNV-1a, finished as splitmix64 is. Two tokens may share
    /// one; who relies on a match compares the tokens themselves.
    package func digest(app: AppID) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        for byte in app.text.utf8 { add(byte) }
        add(0)
        add(environment.rawValue)
        for byte in bytes { add(byte) }
        hash = (hash ^ (hash >> 30)) &* 0xbf58_476d_1ce4_e5b9
        hash = (hash ^ (hash >> 27)) &* 0x94d0_49bb_1331_11eb
        return hash ^ (hash >> 31)
    }

    /// nil when the token is empty or longer than `Limits.pushTokenBytes`.
    package init?(environment: PushEnvironment, bytes: [UInt8]) {
        guard (1...Limits.pushTokenBytes).contains(bytes.count) else { return nil }
        self.environment = environment
        self.bytes = bytes
    }
}
