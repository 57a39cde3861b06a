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
    package let isLiveOnly: Bool
    package let hasOwnAlert: Bool
    /// A broadcast's: its content, its record and its end belong to all devices. No cap counts it, no stub stands for it, and
    /// the device's row knows nothing of it.
    package let isShared: Bool
    /// Its content is its task's, of which there is one for many devices: `payloadBytes` counts for the device, and takes no
    /// room of its own.
    package let isReference: Bool
    /// The device was offline, or a stub was asked for, between acceptance and now (P4).
    package var wasOffline: Bool
    package var stub: Stub
    /// Of a reference: the shard's number for its task; 0 for none.
    package let taskSlot: UInt16

    package init(
        seq: Seq, expiresAt: Instant, location: RecordLocation, payloadBytes: UInt32, isLiveOnly: Bool,
        hasOwnAlert: Bool, wasOffline: Bool, stub: Stub, isShared: Bool = false,
        isReference: Bool = false, taskSlot: UInt16 = 0
    ) {
        self.seq = seq
        self.expiresAt = expiresAt
        self.location = location
        self.payloadBytes = payloadBytes
        self.isLiveOnly = isLiveOnly
        self.hasOwnAlert = hasOwnAlert
        self.wasOffline = wasOffline
        self.stub = stub
        self.isShared = isShared
        self.isReference = isReference
        self.taskSlot = taskSlot
    }
}
