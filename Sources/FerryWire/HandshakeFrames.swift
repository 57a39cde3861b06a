package import FerryCore

/// The first frame of a connection.
package struct HelloFrame: FrameBody {
    package static var type: FrameType { .hello }
    /// The highest version that the client speaks.
    package var version: UInt64
    package var nonce: Bytes32

    package init(version: UInt64 = WireLimits.version, nonce: Bytes32) {
        self.version = version
        self.nonce = nonce
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        version = try reader.varint()
        nonce = try reader.bytes32()
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) {
        writer.varint(version)
        writer.raw(nonce.bytes)
    }
}

/// The gateway's answer to `hello`.
package struct ChallengeFrame: FrameBody {
    package static var type: FrameType { .challenge }
    /// The version of this connection, at most the client's.
    package var version: UInt64
    package var nonce: Bytes32

    package init(version: UInt64 = WireLimits.version, nonce: Bytes32) {
        self.version = version
        self.nonce = nonce
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        version = try reader.varint()
        nonce = try reader.bytes32()
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) {
        writer.varint(version)
        writer.raw(nonce.bytes)
    }
}
