package import FerryCore

extension RecordCodec {
    /// The byte in which an accept record says what it holds. Bits 0 and 1 are the stub's need.
    fileprivate enum Flag {
        static let stub: UInt8 = 0x03
        static let wasOnline: UInt8 = 0x04
        static let request: UInt8 = 0x08
        static let alert: UInt8 = 0x10
        static let collapse: UInt8 = 0x20
        static let background: UInt8 = 0x40
        static let traits: UInt8 = 0x80
        /// What only a message with an alert can have.
        static let ofAlert = collapse | background
    }

    /// Appends an accept record whose long parts lie anywhere, and answers how many bytes it took.
    @discardableResult
    package static func append(_ fields: AcceptedFields, to writer: inout ByteWriter) -> Int {
        let start = writer.bytes.count
        writer.uint64(0)
        append(body: fields, to: &writer)
        seal(&writer, from: start)
        return writer.bytes.count - start
    }

    static func append(body message: AcceptedMessage, to writer: inout ByteWriter) {
        if message.reference != nil {
            return message.payload.withUnsafeBytes { append(body: AcceptedFields(message, payload: $0), to: &writer) }
        }
        message.payload.withUnsafeBytes { payload in
            var fields = AcceptedFields(message, payload: payload)
            message.traits.encoded.withUnsafeBytes { traits in
                fields.traits = traits
                append(body: fields, message.alert, to: &writer)
            }
        }
    }

    private static func append(body fields: AcceptedFields, _ alert: OwnAlert?, to writer: inout ByteWriter) {
        guard let alert else { return append(body: fields, to: &writer) }
        var fields = fields
        var collapseID = alert.collapseID
        alert.body.withUnsafeBytes { body in
            fields.alert = .init(body: body, collapseID: nil, isBackground: alert.isBackground)
            guard collapseID != nil else { return append(body: fields, to: &writer) }
            collapseID?.withUTF8 { text in
                fields.alert?.collapseID = UnsafeRawBufferPointer(text)
                append(body: fields, to: &writer)
            }
        }
    }

    /// What stands before the long parts: 2 bytes, 5 identifiers, 4 varints of 10 bytes at most, a task's 4 others.
    private static let mostHeadBytes = 2 + 5 * 16 + 4 * 10 + 4 + 10

    private static func append(body fields: AcceptedFields, to writer: inout ByteWriter) {
        if let reference = fields.reference { return append(body: fields, reference, to: &writer) }
        withUnsafeTemporaryAllocation(byteCount: mostHeadBytes, alignment: 8) { room in
            var head = HeadWriter(room)
            head.write(fields)
            writer.raw(UnsafeRawBufferPointer(rebasing: room[..<head.offset]))
        }
        if !fields.traits.isEmpty { writer.string(fields.traits) }
        if let alert = fields.alert {
            writer.string(alert.body)
            if let collapseID = alert.collapseID { writer.string(collapseID) }
        }
        writer.string(fields.payload)
    }
}

/// Numbers into memory that has room for the head of any accept record: one append to the batch instead of a dozen.
private struct HeadWriter {
    private let room: UnsafeMutableRawBufferPointer
    private(set) var offset = 0

    /// `room` has `mostHeadBytes`.
    init(_ room: UnsafeMutableRawBufferPointer) { self.room = room }

    mutating func write(_ fields: AcceptedFields) {
        byte(RecordCodec.Kind.messageAccepted.rawValue)
        byte(fields.flags)
        identifier(fields.cid.value)
        varint(fields.seq.rawValue)
        identifier(fields.messageID.value)
        identifier(fields.taskID.value)
        varint(UInt64(fields.taskID.monthDay))
        byte(fields.taskID.kind.rawValue)
        varint(fields.acceptedAt.zigzag)
        varint(fields.expiresAt.zigzag)
        if let request = fields.request {
            identifier(request.key)
            identifier(request.content)
        }
    }

    private mutating func byte(_ value: UInt8) {
        room[offset] = value
        offset += 1
    }

    private mutating func identifier(_ value: Identifier128) {
        room.storeBytes(of: value.high.bigEndian, toByteOffset: offset, as: UInt64.self)
        room.storeBytes(of: value.low.bigEndian, toByteOffset: offset + 8, as: UInt64.self)
        offset += 16
    }

    private mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            byte(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        byte(UInt8(rest))
    }
}

/// An accept record with its long parts where they lie: in the bytes that it was read from, or that a push came in. It lives
/// no longer than they do.
package struct AcceptedFields {
    /// The sender's own alert; `OwnAlert` with its parts elsewhere.
    package struct Alert {
        package var body: UnsafeRawBufferPointer
        package var collapseID: UnsafeRawBufferPointer?
        package var isBackground: Bool

        package init(body: UnsafeRawBufferPointer, collapseID: UnsafeRawBufferPointer?, isBackground: Bool) {
            self.body = body
            self.collapseID = collapseID
            self.isBackground = isBackground
        }
    }

    package var cid: CID
    package var seq: Seq
    package var messageID: MessageID
    package var taskID: TaskID
    package var acceptedAt: Instant
    package var expiresAt: Instant
    package var stub: StubNeed
    package var wasOnline: Bool
    package var request: RequestKey?
    /// `MessageTraits.encoded`.
    package var traits: UnsafeRawBufferPointer
    package var alert: Alert?
    package var payload: UnsafeRawBufferPointer
    /// As in an `AcceptedMessage`.
    package var reference: ContentReference?
    var hasAlert: Bool { alert != nil || reference?.hasAlert == true }
    /// Of the message, wherever its content is.
    var payloadBytes: UInt32 { reference?.payloadBytes ?? UInt32(truncatingIfNeeded: payload.count) }

    package init(
        cid: CID, seq: Seq, messageID: MessageID, taskID: TaskID, acceptedAt: Instant, expiresAt: Instant,
        stub: StubNeed, wasOnline: Bool, request: RequestKey?, traits: UnsafeRawBufferPointer, alert: Alert?,
        payload: UnsafeRawBufferPointer
    ) {
        self.cid = cid
        self.seq = seq
        self.messageID = messageID
        self.taskID = taskID
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.stub = stub
        self.wasOnline = wasOnline
        self.request = request
        self.traits = traits
        self.alert = alert
        self.payload = payload
    }

    /// All of `message` but its traits and its alert.
    fileprivate init(_ message: AcceptedMessage, payload: UnsafeRawBufferPointer) {
        self.init(
            cid: message.cid, seq: message.seq, messageID: message.messageID, taskID: message.taskID,
            acceptedAt: message.acceptedAt, expiresAt: message.expiresAt, stub: message.stub,
            wasOnline: message.wasOnline, request: message.request, traits: Self.noTraits, alert: nil,
            payload: payload)
        reference = message.reference
    }

    static var noTraits: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    /// How it goes: what the RAM index needs of its traits.
    var route: DeliveryRoute {
        if let reference { return reference.route }
        return traits.isEmpty ? .ownFirst : MessageTraits(encoded: traits)?.route ?? .ownFirst
    }

    fileprivate var flags: UInt8 {
        typealias Flag = RecordCodec.Flag
        var flags = stub.rawValue
        if wasOnline { flags |= Flag.wasOnline }
        if request != nil { flags |= Flag.request }
        if !traits.isEmpty { flags |= Flag.traits }
        if let alert {
            flags |= Flag.alert
            if alert.collapseID != nil { flags |= Flag.collapse }
            if alert.isBackground { flags |= Flag.background }
        }
        return flags
    }

    /// The record's body; nil when it is none or another record.
    init?(body: UnsafeRawBufferPointer) {
        var reader = ByteReader(body)
        switch reader.byte() {
        case RecordCodec.Kind.messageAccepted.rawValue: self.init(from: &reader)
        case RecordCodec.Kind.messageReferred.rawValue: self.init(reference: &reader)
        default: return nil
        }
        guard reader.isAtEnd else { return nil }
    }

    /// What follows the kind.
    init?(from reader: inout ByteReader) {
        typealias Flag = RecordCodec.Flag
        guard let flags = reader.byte(), let stub = StubNeed(rawValue: flags & Flag.stub),
            let cid = reader.cid(), let seq = reader.seq(), let messageID = reader.identifier(),
            let taskID = reader.task(), let acceptedAt = reader.instant(), let expiresAt = reader.instant()
        else { return nil }
        if flags & Flag.request != 0 {
            guard let key = reader.identifier(), let content = reader.identifier() else { return nil }
            request = RequestKey(key: key, content: content)
        }
        traits = Self.noTraits
        if flags & Flag.traits != 0 {
            // One spelling: what is read is what would be written.
            guard let encoded = reader.string(limit: MessageTraits.encodedBytes), !encoded.isEmpty,
                MessageTraits(encoded: encoded)?.encoded.elementsEqual(encoded) == true
            else { return nil }
            traits = encoded
        }
        if flags & Flag.alert != 0 {
            guard let body = reader.string(limit: reader.remaining) else { return nil }
            alert = Alert(body: body, collapseID: nil, isBackground: flags & Flag.background != 0)
            if flags & Flag.collapse != 0 {
                guard let text = reader.string(limit: reader.remaining), String(validating: text, as: UTF8.self) != nil
                else { return nil }
                alert?.collapseID = text
            }
        } else if flags & Flag.ofAlert != 0 {
            return nil
        }
        guard let payload = reader.string(limit: reader.remaining) else { return nil }
        self.cid = cid
        self.seq = seq
        self.messageID = MessageID(messageID)
        self.taskID = taskID
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.stub = stub
        self.payload = payload
        wasOnline = flags & Flag.wasOnline != 0
    }

    var message: AcceptedMessage {
        let alert = alert.map { alert in
            OwnAlert(
                body: [UInt8](alert.body), collapseID: alert.collapseID.map { String(decoding: $0, as: UTF8.self) },
                isBackground: alert.isBackground)
        }
        return AcceptedMessage(
            cid: cid, seq: seq, messageID: messageID, taskID: taskID, acceptedAt: acceptedAt, expiresAt: expiresAt,
            stub: stub, wasOnline: wasOnline, request: request, traits: MessageTraits(encoded: traits) ?? .none,
            alert: alert, payload: [UInt8](payload), reference: reference)
    }
}
