package import FerryCore

/// What the RAM index holds of a message that is not acknowledged yet: 40 bytes, and the payload stays on disk.
package struct KeptMessage: Hashable, Sendable, BitwiseCopyable {
    /// How far the wake-up for this message has come.
    package enum Stub: UInt8, Sendable, BitwiseCopyable, CaseIterable {
        /// None is due: the device was online.
        case none
        /// To be asked for as soon as the device is offline and the cool-down allows.
        case due
        /// Asked for and not answered yet.
        case requested
        /// Answered, well or badly.
        case settled
        /// The device has no token.
        case noToken
        /// Live only, without an alert of its own.
        case notWanted
    }

    package let seq: Seq
    /// Of a broadcast the distant future, until it is told that its time is over.
    package internal(set) var expiresAt: Instant
    package let location: RecordLocation
    package let payloadBytes: UInt32
    /// Expires with the session instead of with a time.
    package var isLiveOnly: Bool { flags & Flag.liveOnly != 0 }
    package var hasOwnAlert: Bool { flags & Flag.ownAlert != 0 }
    /// A broadcast's: its content, its record and its end belong to all devices. No cap counts it, a stub is asked for it only
    /// when `.wakeWanted` says so, and the device's row knows nothing of it.
    package var isShared: Bool { flags & Flag.shared != 0 }
    /// Its content is its task's, of which there is one for many devices: `payloadBytes` counts for the device, and takes no
    /// room of its own.
    package var isReference: Bool { flags & Flag.reference != 0 }
    /// By which ways it goes.
    package internal(set) var route: DeliveryRoute
    /// The device was offline, or a stub was asked for, between acceptance and now (P4).
    package var wasOffline: Bool
    package var stub: Stub
    /// Of a reference: the shard's number for its task; 0 for none.
    package let taskSlot: UInt16
    /// What never changes, in one byte.
    private let flags: UInt8

    private enum Flag {
        static let liveOnly: UInt8 = 1
        static let ownAlert: UInt8 = 2
        static let shared: UInt8 = 4
        static let reference: UInt8 = 8
    }

    /// It is with the wake-up channel, or about to be. Until that has answered nothing behind it in the stream is sent.
    package var isHandingOver: Bool { route.handsOver && (stub == .due || stub == .requested) }

    /// Whether a gap in the stream tells of it when it is dropped.
    package var isMissedWhenDropped: Bool { !isLiveOnly && route != .wakeOnly }

    package init(
        seq: Seq, expiresAt: Instant, location: RecordLocation, payloadBytes: UInt32, isLiveOnly: Bool,
        hasOwnAlert: Bool, wasOffline: Bool, stub: Stub, isShared: Bool = false, isReference: Bool = false,
        route: DeliveryRoute = .ownFirst, taskSlot: UInt16 = 0
    ) {
        self.seq = seq
        self.expiresAt = expiresAt
        self.location = location
        self.payloadBytes = payloadBytes
        flags =
            (isLiveOnly ? Flag.liveOnly : 0) | (hasOwnAlert ? Flag.ownAlert : 0) | (isShared ? Flag.shared : 0)
            | (isReference ? Flag.reference : 0)
        self.wasOffline = wasOffline
        self.stub = stub
        self.route = route
        self.taskSlot = taskSlot
    }
}
