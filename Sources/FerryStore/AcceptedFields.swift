internal import FerryCore

extension RecordCodec {
    /// The byte in which an accept record says what it holds. Bits 0 and 1 are the stub's need.
    fileprivate enum Flag {
        static let stub: UInt8 = 0x03
        static let wasOnline: UInt8 = 0x04
        static let request: UInt8 = 0x08
        static let alert: UInt8 = 0x10
        static let collapse: UInt8 = 0x20
        static let background: UInt8 = 0x40
        static let known: UInt8 = 0x7f
        /// What only a message with an alert can have.
        static let ofAlert = collapse | background
    }

    static func append(body message: AcceptedMessage, to writer: inout ByteWriter) {
        var flags = message.stub.rawValue
        if message.wasOnline { flags |= Flag.wasOnline }
        if message.request != nil { flags |= Flag.request }
        if let alert = message.alert {
            flags |= Flag.alert
            if alert.collapseID != nil { flags |= Flag.collapse }
            if alert.isBackground { flags |= Flag.background }
        }
        writer.byte(Kind.messageAccepted.rawValue)
        writer.byte(flags)
        writer.identifier(message.cid.value)
        writer.varint(message.seq.rawValue)
        writer.identifier(message.messageID.value)
        writer.task(message.taskID)
        writer.instant(message.acceptedAt)
        writer.instant(message.expiresAt)
        if let request = message.request {
            writer.identifier(request.key)
            writer.identifier(request.content)
        }
        if let alert = message.alert {
            writer.string(alert.body)
            if let collapse = alert.collapseID { writer.string(collapse.utf8) }
        }
        writer.string(message.payload)
    }
}

/// An accept record with its long parts still in the bytes that it was read from: what a recovery of millions needs.
struct AcceptedFields {
    var cid: CID
    var seq: Seq
    var messageID: MessageID
    var taskID: TaskID
    var acceptedAt: Instant
    var expiresAt: Instant
    var stub: StubNeed
    var wasOnline: Bool
    var request: RequestKey?
    var hasAlert: Bool { alertBody != nil }
    private var alertBody: UnsafeRawBufferPointer?
    private var collapseID: String?
    private var isBackground: Bool
    var payload: UnsafeRawBufferPointer

    /// The record's body; nil when it is none or another record.
    init?(body: UnsafeRawBufferPointer) {
        var reader = ByteReader(body)
        guard reader.byte() == RecordCodec.Kind.messageAccepted.rawValue else { return nil }
        self.init(from: &reader)
        guard reader.isAtEnd else { return nil }
    }

    /// What follows the kind.
    init?(from reader: inout ByteReader) {
        typealias Flag = RecordCodec.Flag
        guard let flags = reader.byte(), flags & ~Flag.known == 0, let stub = StubNeed(rawValue: flags & Flag.stub),
            let cid = reader.cid(), let seq = reader.seq(), let messageID = reader.identifier(),
            let taskID = reader.task(), let acceptedAt = reader.instant(), let expiresAt = reader.instant()
        else { return nil }
        if flags & Flag.request != 0 {
            guard let key = reader.identifier(), let content = reader.identifier() else { return nil }
            request = RequestKey(key: key, content: content)
        }
        if flags & Flag.alert != 0 {
            guard let body = reader.string(limit: reader.remaining) else { return nil }
            alertBody = body
            if flags & Flag.collapse != 0 {
                guard let text = reader.octets().flatMap({ String(validating: $0, as: UTF8.self) }) else { return nil }
                collapseID = text
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
        isBackground = flags & Flag.background != 0
    }

    var message: AcceptedMessage {
        let alert = alertBody.map {
            OwnAlert(body: [UInt8]($0), collapseID: collapseID, isBackground: isBackground)
        }
        return AcceptedMessage(
            cid: cid, seq: seq, messageID: messageID, taskID: taskID, acceptedAt: acceptedAt, expiresAt: expiresAt,
            stub: stub, wasOnline: wasOnline, request: request, alert: alert, payload: [UInt8](payload))
    }
}
