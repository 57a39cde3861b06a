package import FerryCore

/// What an accept record that only refers to its task's content says of that.
package struct ContentReference: Hashable, Sendable, BitwiseCopyable {
    /// Size of the task's payload.
    package var payloadBytes: UInt32
    /// The task has an alert of its sender's own.
    package var hasAlert: Bool
    /// By which ways it goes to this device.
    package var route: DeliveryRoute

    package init(payloadBytes: UInt32, hasAlert: Bool, route: DeliveryRoute = .ownFirst) {
        self.payloadBytes = payloadBytes
        self.hasAlert = hasAlert
        self.route = route
    }
}

extension RequestKey {
    /// What (task, cid) is called, so that a task comes to a device once. Task ids and cids are drawn by chance, so their sum is
    /// as good a name as a digest; its low bits are the device's partition, as in all keys of pushes to one device.
    package init(task: TaskID, cid: CID) {
        let low = (task.value.low ^ cid.value.low) / UInt64(Limits.partitions) * UInt64(Limits.partitions)
        let partition = UInt64(Partition(of: cid).index)
        self.init(
            key: Identifier128(high: task.value.high ^ cid.value.high, low: low + partition), content: task.value)
    }

    /// Under which the device gets the message: the same at each try.
    package var messageID: MessageID { MessageID(key) }
}

/// The body of a reference: flags, cid, `seq`, task, times and the content's size. Some 60 bytes, however long the content is.
extension RecordCodec {
    private enum Flag {
        static let stub: UInt8 = 0x03
        static let wasOnline: UInt8 = 0x04
        static let alert: UInt8 = 0x08
        /// (task, cid) is not remembered: whoever made it knows that it comes once.
        static let once: UInt8 = 0x10
        /// Two bits.
        static let route: UInt8 = 0x60
        static let known: UInt8 = 0x7f
    }

    static func append(body fields: AcceptedFields, _ reference: ContentReference, to writer: inout ByteWriter) {
        writer.byte(Kind.messageReferred.rawValue)
        var flags = fields.stub.rawValue
        if fields.wasOnline { flags |= Flag.wasOnline }
        if reference.hasAlert { flags |= Flag.alert }
        flags |= reference.route.rawValue << 5
        if fields.request == nil { flags |= Flag.once }
        writer.byte(flags)
        writer.identifier(fields.cid.value)
        writer.varint(fields.seq.rawValue)
        writer.task(fields.taskID)
        writer.instant(fields.acceptedAt)
        writer.instant(fields.expiresAt)
        writer.varint(UInt64(reference.payloadBytes))
    }

    fileprivate static func flags(
        _ byte: UInt8
    ) -> (stub: StubNeed, wasOnline: Bool, hasAlert: Bool, isRemembered: Bool, route: DeliveryRoute)? {
        guard byte & ~Flag.known == 0, let stub = StubNeed(rawValue: byte & Flag.stub),
            let route = DeliveryRoute(rawValue: (byte & Flag.route) >> 5)
        else { return nil }
        return (stub, byte & Flag.wasOnline != 0, byte & Flag.alert != 0, byte & Flag.once == 0, route)
    }
}

extension AcceptedFields {
    /// What follows the kind in a reference.
    init?(reference reader: inout ByteReader) {
        guard let byte = reader.byte(),
            let (stub, wasOnline, hasAlert, isRemembered, route) = RecordCodec.flags(byte),
            let cid = reader.cid(), let seq = reader.seq(), let taskID = reader.task(),
            let acceptedAt = reader.instant(), let expiresAt = reader.instant(), let count = reader.varint(),
            let payloadBytes = UInt32(exactly: count)
        else { return nil }
        let request = RequestKey(task: taskID, cid: cid)
        self.init(
            cid: cid, seq: seq, messageID: request.messageID, taskID: taskID, acceptedAt: acceptedAt,
            expiresAt: expiresAt, stub: stub, wasOnline: wasOnline, request: isRemembered ? request : nil,
            traits: Self.noTraits, alert: nil, payload: UnsafeRawBufferPointer(start: nil, count: 0))
        reference = ContentReference(payloadBytes: payloadBytes, hasAlert: hasAlert, route: route)
    }
}
