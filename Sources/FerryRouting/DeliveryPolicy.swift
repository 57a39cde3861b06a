package import FerryCore

/// The limits and times by which a device's messages are kept and its owner is woken.
package struct DeliveryPolicy: Hashable, Sendable {
    /// Kept messages of one device.
    package var messageCap: Cap = 1_000
    /// Their payload bytes.
    package var byteCap: Cap = 4_194_304
    package var capPolicy = CapPolicy.dropOldest
    /// How long a device whose connection was lost still counts as online.
    package var reattachGrace = Duration.seconds(5)
    /// How long after a default stub the next one waits.
    package var stubCooldown = Duration.seconds(5)
    /// How long the wake-up channel has for a message whose strategy begins there.
    package var handOverTime = Duration.seconds(10)

    package init() {}
}

/// Whether a device is there (`architecture`: online, or lost less than the grace ago; else offline).
package enum Presence: Hashable, Sendable, BitwiseCopyable {
    case offline
    /// A live session.
    case attached(SessionID)
    /// The session was lost; the device is offline at this time if it has not come back.
    case grace(until: Instant)
    /// Found at a start of the gateway, which does not know for how long it was away: offline, but no stub is asked for until
    /// then, since the device may be about to come back.
    case restored(until: Instant)

    /// The live session.
    package var session: SessionID? { if case .attached(let session) = self { session } else { nil } }

    package var isOnline: Bool {
        switch self {
        case .offline, .restored: false
        case .attached, .grace: true
        }
    }
}

/// Why a session ended, as far as presence is concerned.
package enum SessionEnd: UInt8, Hashable, Sendable, CaseIterable {
    /// The connection broke, or was closed for silence or slowness: the device may be back in a moment.
    case lost
    /// The app said that it goes to the background; acknowledgements still count.
    case background
    /// The client said good-bye.
    case bye
}
