package import FerryCore

/// Everything up to and including `seq` has been handed to the app.
package struct AckFrame: FrameBody, BitwiseCopyable {
    package static var type: FrameType { .ack }
    package var seq: Seq

    package init(seq: Seq) { self.seq = seq }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        seq = Seq(try reader.varint())
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) { writer.varint(seq.rawValue) }
}

/// The app is in the foreground again: a new session on the same connection.
package struct ForegroundFrame: FrameBody, BitwiseCopyable {
    package static var type: FrameType { .foreground }
    package var lastSeq: Seq

    package init(lastSeq: Seq) { self.lastSeq = lastSeq }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        lastSeq = Seq(try reader.varint())
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) { writer.varint(lastSeq.rawValue) }
}

/// The device's APNs token has changed.
package struct DeviceTokenFrame: FrameBody {
    package static var type: FrameType { .deviceToken }
    package var change: TokenChange

    package init(change: TokenChange) { self.change = change }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        let environment = try reader.byte()
        let bytes = try reader.string(limit: Limits.pushTokenBytes)
        change = try TokenChange(environment: environment, bytes: bytes)
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) {
        writer.byte(change.environmentByte)
        writer.string(change.tokenBytes)
    }
}
