package import FerryCore

/// The part of a push that is the same for all devices of a broadcast, written once: all of its body behind `seq` and flags.
package struct SharedPush: Sendable {
    private let tail: [UInt8]

    /// - Precondition: `payload` has at most `Limits.payloadBytes`.
    package init(messageID: MessageID, taskID: TaskID, payload: [UInt8]) {
        precondition(payload.count <= Limits.payloadBytes)
        var writer = ByteWriter()
        writer.identifier(messageID.value)
        writer.string(taskID.description.utf8)
        writer.string(payload)
        tail = writer.bytes
    }

    /// Bytes of the whole frame.
    package func encodedSize(seq: Seq) -> Int {
        let body = bodySize(seq)
        return 1 + ByteWriter.varintSize(UInt64(body)) + body
    }

    private func bodySize(_ seq: Seq) -> Int { ByteWriter.varintSize(seq.rawValue) + 1 + tail.count }

    /// Writes the whole frame to the start of `buffer`, which has room for `encodedSize`; answers that size.
    package func write(to buffer: UnsafeMutableRawBufferPointer, seq: Seq, flags: PushFrame.Flags) -> Int {
        var writer = RawWriter(buffer)
        writer.byte(FrameType.push.rawValue)
        writer.varint(UInt64(bodySize(seq)))
        writer.varint(seq.rawValue)
        writer.byte(flags.rawValue)
        let end = writer.offset + tail.count
        tail.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: buffer[writer.offset..<end]).copyMemory(from: $0)
        }
        return end
    }
}
