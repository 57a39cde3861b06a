package import FerryCore
package import FerryWire

/// What makes a device the same device tomorrow: the gateway gave it, the client keeps it.
package struct DeviceIdentity: Hashable, Sendable {
    package var cid: CID
    package var generation: UInt64
    package var secret: Bytes32

    package init(cid: CID, generation: UInt64, secret: Bytes32) {
        self.cid = cid
        self.generation = generation
        self.secret = secret
    }
}

/// All that a client keeps across its runs.
package struct ClientRecord: Hashable, Sendable {
    package var identity: DeviceIdentity?
    /// Made before the first registration, so that one whose answer was lost leads to the same identity again.
    package var installationKey: Bytes32?
    package var epoch: Epoch
    /// Everything of `epoch` up to here has been handed to the app.
    package var lastSeq: Seq

    package init(
        identity: DeviceIdentity? = nil, installationKey: Bytes32? = nil, epoch: Epoch = .none, lastSeq: Seq = .zero
    ) {
        self.identity = identity
        self.installationKey = installationKey
        self.epoch = epoch
        self.lastSeq = lastSeq
    }
}
