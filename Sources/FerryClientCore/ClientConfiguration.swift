package import FerryCore
package import FerryWire

/// What an app decides about its client.
package struct ClientConfiguration: Hashable, Sendable {
    package var appID: AppID
    package var wishes: AttachWishes
    /// Said at every login until it changes; nil says nothing.
    package var deviceToken: TokenChange?
    /// Name and version of the software, for the gateway's log.
    package var clientInfo: String?
    /// false: a client for tests that takes messages and never acknowledges them. It also does not move `lastSeq`, which
    /// would acknowledge them at the next login.
    package var acknowledges: Bool
    package var acknowledging = AckPolicy()

    package init(
        appID: AppID, wishes: AttachWishes = AttachWishes(), deviceToken: TokenChange? = nil, clientInfo: String? = nil,
        acknowledges: Bool = true
    ) {
        self.appID = appID
        self.wishes = wishes
        self.deviceToken = deviceToken
        self.clientInfo = clientInfo
        self.acknowledges = acknowledges
    }
}

/// A client's own times and sizes; `protocol-spec/registry/limits.json`, kind "client".
package enum ClientLimits {
    /// From the start of connecting to the welcome.
    package static let handshake: Duration = .seconds(30)
    /// From the client's ping, or its `foreground`, to the next byte or the answer.
    package static let answer: Duration = .seconds(30)
    package static let ackDelay: Duration = .seconds(1)
    package static let ackEvery: UInt64 = 32
    package static let backoffFirst: Duration = .seconds(1)
    package static let backoffMaximum: Duration = .seconds(300)
    /// A session that lasted so long puts the back-off to its start.
    package static let backoffReset: Duration = .seconds(60)
    /// A second close within this that says "at once" is obeyed with back-off.
    package static let atOnceAgain: Duration = .seconds(60)
    package static let retryAfterMaximum: Duration = .seconds(3_600)
    /// A longer grant is taken as this: a client that never pings finds out about a dead connection too late.
    package static let keepAliveMaximum: Duration = .seconds(86_400)
}
