package import FerryCore

/// The identity that a registration led to; `welcome` follows at once.
package struct RegisteredFrame: SignedFrameBody {
    package static var type: FrameType { .registered }
    package var cid: CID
    package var generation: UInt64
    package var secret: Bytes32
    package var proof: Bytes32

    package init(cid: CID, generation: UInt64, secret: Bytes32, proof: Bytes32 = .zero) {
        self.cid = cid
        self.generation = generation
        self.secret = secret
        self.proof = proof
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        let parts = try SignedBody.split(body)
        var reader = BodyReader(parts.signed)
        cid = CID(try reader.identifier())
        generation = try reader.varint()
        secret = try reader.bytes32()
        try reader.end()
        proof = parts.proof
    }

    package func writeSignedPart(to writer: inout ByteWriter) {
        writer.identifier(cid.value)
        writer.varint(generation)
        writer.raw(secret.bytes)
    }
}

/// The session has begun, with what the gateway grants.
package struct WelcomeFrame: SignedFrameBody {
    package static var type: FrameType { .welcome }
    package var sessionID: SessionID
    package var epoch: Epoch
    /// The epoch matched and `lastSeq` was honoured.
    package var isResumed: Bool
    /// Pushes on this connection may be compressed. Other bits of the flags are ignored.
    package var compressesPayloads: Bool
    package var serverTime: UInt64
    /// Seconds, at least 1.
    package var keepAlive: UInt64
    /// Messages that may be unacknowledged, at least 1.
    package var window: UInt64
    /// At least 1.
    package var windowBytes: UInt64
    package var keptMessages: UInt64
    package var keptBytes: UInt64
    package var proof: Bytes32

    package init(
        sessionID: SessionID, epoch: Epoch, isResumed: Bool, compressesPayloads: Bool = false, serverTime: UInt64 = 0,
        keepAlive: UInt64 = WireLimits.keepAliveDefaultSeconds, window: UInt64 = WireLimits.windowDefault,
        windowBytes: UInt64 = WireLimits.windowBytesDefault, keptMessages: UInt64 = 0, keptBytes: UInt64 = 0,
        proof: Bytes32 = .zero
    ) {
        self.sessionID = sessionID
        self.epoch = epoch
        self.isResumed = isResumed
        self.compressesPayloads = compressesPayloads
        self.serverTime = serverTime
        self.keepAlive = keepAlive
        self.window = window
        self.windowBytes = windowBytes
        self.keptMessages = keptMessages
        self.keptBytes = keptBytes
        self.proof = proof
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        let parts = try SignedBody.split(body)
        var reader = BodyReader(parts.signed)
        sessionID = SessionID(rawValue: try reader.uint64())
        epoch = Epoch(try reader.uint64())
        let flags = try reader.byte()
        isResumed = flags & 1 != 0
        compressesPayloads = flags & 2 != 0
        serverTime = try reader.varint()
        keepAlive = try reader.varint()
        window = try reader.varint()
        windowBytes = try reader.varint()
        keptMessages = try reader.varint()
        keptBytes = try reader.varint()
        try reader.end()
        proof = parts.proof
        guard keepAlive > 0, window > 0, windowBytes > 0 else {
            throw WireError(.fieldOutOfRange, "a granted keep-alive or window is zero")
        }
    }

    package func writeSignedPart(to writer: inout ByteWriter) {
        writer.uint64(sessionID.rawValue)
        writer.uint64(epoch.rawValue)
        writer.byte((isResumed ? 1 : 0) | (compressesPayloads ? 2 : 0))
        writer.varint(serverTime)
        writer.varint(keepAlive)
        writer.varint(window)
        writer.varint(windowBytes)
        writer.varint(keptMessages)
        writer.varint(keptBytes)
    }
}
