package import FerryCore

/// What a device asks for itself, in `login` and `register`. The gateway grants in `welcome`.
package struct AttachWishes: Hashable, Sendable, BitwiseCopyable {
    /// Seconds; 0 leaves it to the gateway.
    package var keepAlive: UInt64
    /// Messages; 0 leaves it to the gateway.
    package var window: UInt64
    /// What the device can do; unknown bits are ignored.
    package var capabilities: Capabilities

    package struct Capabilities: OptionSet, Hashable, Sendable, BitwiseCopyable {
        package let rawValue: UInt64
        package init(rawValue: UInt64) { self.rawValue = rawValue }
        /// Takes pushes whose payload is compressed.
        package static let compressedPayloads = Capabilities(rawValue: 1)
        /// Takes pushes of every kind, not only transmissions.
        package static let typedContents = Capabilities(rawValue: 2)
    }

    package init(keepAlive: UInt64 = 0, window: UInt64 = 0, capabilities: Capabilities = []) {
        self.keepAlive = keepAlive
        self.window = window
        self.capabilities = capabilities
    }

    init(reading reader: inout BodyReader) throws(WireError) {
        keepAlive = try reader.varint()
        window = try reader.varint()
        capabilities = Capabilities(rawValue: try reader.varint())
    }

    func write(to writer: inout ByteWriter) {
        writer.varint(keepAlive)
        writer.varint(window)
        writer.varint(capabilities.rawValue)
    }
}

/// A device that has an identity attaches with it.
package struct LoginFrame: SignedFrameBody {
    package static var type: FrameType { .login }
    package var appID: AppID
    package var cid: CID
    /// As `registered` told it.
    package var generation: UInt64
    package var epoch: Epoch
    /// The last `seq` of `epoch` that was handed to the app.
    package var lastSeq: Seq
    package var wishes: AttachWishes
    package var extensions: AttachExtensions
    package var proof: Bytes32

    package init(
        appID: AppID, cid: CID, generation: UInt64, epoch: Epoch = .none, lastSeq: Seq = .zero,
        wishes: AttachWishes = AttachWishes(), extensions: AttachExtensions = AttachExtensions(), proof: Bytes32 = .zero
    ) {
        self.appID = appID
        self.cid = cid
        self.generation = generation
        self.epoch = epoch
        self.lastSeq = lastSeq
        self.wishes = wishes
        self.extensions = extensions
        self.proof = proof
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        let parts = try SignedBody.split(body)
        var reader = BodyReader(parts.signed)
        appID = try reader.appID()
        cid = CID(try reader.identifier())
        generation = try reader.varint()
        epoch = Epoch(try reader.uint64())
        lastSeq = Seq(try reader.varint())
        wishes = try AttachWishes(reading: &reader)
        extensions = try AttachExtensions(reading: &reader)
        proof = parts.proof
    }

    package func writeSignedPart(to writer: inout ByteWriter) {
        writer.string(appID.text.utf8)
        writer.identifier(cid.value)
        writer.varint(generation)
        writer.uint64(epoch.rawValue)
        writer.varint(lastSeq.rawValue)
        wishes.write(to: &writer)
        extensions.write(to: &writer)
    }
}

/// A device that has no identity asks for one. The same installation key gets the same identity again.
package struct RegisterFrame: SignedFrameBody {
    package static var type: FrameType { .register }
    package var appID: AppID
    /// Made by the client and stored before it is sent.
    package var installationKey: Bytes32
    package var wishes: AttachWishes
    package var extensions: AttachExtensions
    package var proof: Bytes32

    package init(
        appID: AppID, installationKey: Bytes32, wishes: AttachWishes = AttachWishes(),
        extensions: AttachExtensions = AttachExtensions(), proof: Bytes32 = .zero
    ) {
        self.appID = appID
        self.installationKey = installationKey
        self.wishes = wishes
        self.extensions = extensions
        self.proof = proof
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        let parts = try SignedBody.split(body)
        var reader = BodyReader(parts.signed)
        appID = try reader.appID()
        installationKey = try reader.bytes32()
        wishes = try AttachWishes(reading: &reader)
        extensions = try AttachExtensions(reading: &reader)
        proof = parts.proof
    }

    package func writeSignedPart(to writer: inout ByteWriter) {
        writer.string(appID.text.utf8)
        writer.raw(installationKey.bytes)
        wishes.write(to: &writer)
        extensions.write(to: &writer)
    }
}
