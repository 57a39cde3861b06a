package import FerryCore

/// A backend opens its link for one app.
package struct LinkLoginFrame: SignedFrameBody {
    package static var type: FrameType { .linkLogin }
    package var appID: AppID
    /// Bits; none are defined in version 1, unknown ones are ignored.
    package var capabilities: UInt64
    package var proof: Bytes32

    package init(appID: AppID, capabilities: UInt64 = 0, proof: Bytes32 = .zero) {
        self.appID = appID
        self.capabilities = capabilities
        self.proof = proof
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        let parts = try SignedBody.split(body)
        var reader = BodyReader(parts.signed)
        appID = try reader.appID()
        capabilities = try reader.varint()
        try reader.end()
        proof = parts.proof
    }

    package func writeSignedPart(to writer: inout ByteWriter) {
        writer.string(appID.text.utf8)
        writer.varint(capabilities)
    }
}

/// The link is open: from here on the backend may push.
package struct LinkWelcomeFrame: SignedFrameBody {
    package static var type: FrameType { .linkWelcome }
    /// Milliseconds since 1970, for information.
    package var serverTime: UInt64
    /// Seconds, 1 at least.
    package var keepAlive: UInt64
    /// Pushes without an answer, 1 at least.
    package var window: UInt64
    /// Bytes of their bodies, `Limits.linkFrameBytes` at least: any push fits an empty window.
    package var windowBytes: UInt64
    package var proof: Bytes32

    package init(
        serverTime: UInt64, keepAlive: UInt64, window: UInt64, windowBytes: UInt64, proof: Bytes32 = .zero
    ) {
        self.serverTime = serverTime
        self.keepAlive = keepAlive
        self.window = window
        self.windowBytes = windowBytes
        self.proof = proof
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        let parts = try SignedBody.split(body)
        var reader = BodyReader(parts.signed)
        serverTime = try reader.varint()
        keepAlive = try reader.varint()
        window = try reader.varint()
        windowBytes = try reader.varint()
        guard keepAlive > 0, window > 0, windowBytes >= UInt64(Limits.linkFrameBytes) else {
            throw WireError(.fieldOutOfRange, "a keep-alive or a window is out of its range")
        }
        try reader.end()
        proof = parts.proof
    }

    package func writeSignedPart(to writer: inout ByteWriter) {
        writer.varint(serverTime)
        writer.varint(keepAlive)
        writer.varint(window)
        writer.varint(windowBytes)
    }
}
