package import FerryCore

/// One message on its way to the app.
package struct PushFrame: FrameBody {
    package static var type: FrameType { .push }

    /// Bits of the flags byte. Unknown ones are ignored.
    package struct Flags: OptionSet, Hashable, Sendable, BitwiseCopyable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        /// The device was offline at some time since acceptance, or a wake-up stub was asked for (P4).
        package static let offLine = Flags(rawValue: 1)
        /// The payload travels compressed (`CompressedPayload`). Nothing in this frame's coding looks into it.
        package static let compressed = Flags(rawValue: 2)
        /// Bits 2 and 3 together are a number, the kind of the payload.
        package static let kindBits = Flags(rawValue: 12)

        /// Of a payload as it is. Not from a literal: a set made of one is made element by element.
        package init(_ kind: ContentKind, isOffLine: Bool) { rawValue = kind.rawValue << 2 | (isOffLine ? 1 : 0) }

        /// nil for a kind that this version does not know.
        package var kind: ContentKind? { ContentKind(rawValue: intersection(.kindBits).rawValue >> 2) }
    }

    package var seq: Seq
    package var flags: Flags
    package var messageID: MessageID
    /// Opaque to devices.
    package var taskID: String
    /// At most `Limits.payloadBytes`; any bytes. As it travels: `unpacked` makes the original of a compressed one.
    package var payload: [UInt8]

    package init(seq: Seq, flags: Flags = [], messageID: MessageID, taskID: String, payload: [UInt8]) {
        self.seq = seq
        self.flags = flags
        self.messageID = messageID
        self.taskID = taskID
        self.payload = payload
    }

    package init(body: UnsafeRawBufferPointer) throws(WireError) {
        var reader = BodyReader(body)
        seq = Seq(try reader.varint())
        flags = Flags(rawValue: try reader.byte())
        messageID = MessageID(try reader.identifier())
        taskID = try reader.text(limit: WireLimits.taskIDBytes)
        payload = Array(try reader.string(limit: Limits.payloadBytes))
        try reader.end()
    }

    package func writeBody(to writer: inout ByteWriter) {
        writer.varint(seq.rawValue)
        writer.byte(flags.rawValue)
        writer.identifier(messageID.value)
        writer.string(taskID.utf8)
        writer.string(payload)
    }
}

/// The gateway's own way to write a push: no value, no array, no text in between.
extension PushFrame {
    /// More than any push has before its payload: type, length, seq, flags, ids, the payload's length.
    private static let prefixCapacity = 1 + 4 + 10 + 1 + 16 + 1 + WireLimits.taskIDBytes + 3

    /// Bytes of the whole frame.
    /// - Precondition: `payloadCount` is 0...`Limits.payloadBytes`.
    package static func encodedSize(seq: Seq, payloadCount: Int) -> Int {
        let body = bodySize(seq: seq, payloadCount: payloadCount)
        return 1 + ByteWriter.varintSize(UInt64(body)) + body
    }

    /// Writes the whole frame to the start of `buffer`, which has room for `encodedSize`; answers that size.
    package static func write(
        to buffer: UnsafeMutableRawBufferPointer, seq: Seq, flags: Flags, messageID: MessageID, taskID: TaskID,
        payload: UnsafeRawBufferPointer
    ) -> Int {
        let prefix = writePrefix(
            to: buffer, seq: seq, flags: flags, messageID: messageID, taskID: taskID, payloadCount: payload.count)
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer[prefix..<prefix + payload.count])
        room.copyMemory(from: payload)
        return prefix + payload.count
    }

    /// Appends the whole frame, growing `bytes` at most once.
    package static func append(
        to bytes: inout [UInt8], seq: Seq, flags: Flags, messageID: MessageID, taskID: TaskID,
        payload: UnsafeRawBufferPointer
    ) {
        let needed = bytes.count + encodedSize(seq: seq, payloadCount: payload.count)
        // Reserving exactly what is needed each time would copy the buffer at every frame of a batch.
        if needed > bytes.capacity { bytes.reserveCapacity(max(needed, bytes.capacity &* 2)) }
        withUnsafeTemporaryAllocation(byteCount: prefixCapacity, alignment: 1) { buffer in
            let count = writePrefix(
                to: buffer, seq: seq, flags: flags, messageID: messageID, taskID: taskID, payloadCount: payload.count)
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        bytes.append(contentsOf: payload)
    }

    private static func bodySize(seq: Seq, payloadCount: Int) -> Int {
        precondition(payloadCount >= 0 && payloadCount <= Limits.payloadBytes)
        return ByteWriter.varintSize(seq.rawValue) + 1 + 16 + 1 + TaskIDText.count
            + ByteWriter.varintSize(UInt64(payloadCount)) + payloadCount
    }

    private static func writePrefix(
        to buffer: UnsafeMutableRawBufferPointer, seq: Seq, flags: Flags, messageID: MessageID, taskID: TaskID,
        payloadCount: Int
    ) -> Int {
        var writer = RawWriter(buffer)
        writer.byte(FrameType.push.rawValue)
        writer.varint(UInt64(bodySize(seq: seq, payloadCount: payloadCount)))
        writer.varint(seq.rawValue)
        writer.byte(flags.rawValue)
        writer.uint64(messageID.value.high)
        writer.uint64(messageID.value.low)
        writer.byte(UInt8(TaskIDText.count))
        TaskIDText.write(taskID, to: &writer)
        writer.varint(UInt64(payloadCount))
        return writer.offset
    }
}
