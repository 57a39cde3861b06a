internal import FerryCore

/// The bodies of the records.
extension RecordCodec {
    static func append(body record: Record, to writer: inout ByteWriter) {
        switch record {
        case .deviceRegistered(let registration):
            writer.byte(Kind.deviceRegistered.rawValue)
            writer.identifier(registration.cid.value)
            writer.string(registration.app.text.utf8)
            writer.varint(UInt64(registration.generation))
            writer.instant(registration.at)
        case .pushTokenChanged(let cid, let token, let at):
            writer.byte(Kind.pushTokenChanged.rawValue)
            writer.identifier(cid.value)
            writer.instant(at)
            writer.token(token)
        case .deviceSeen(let cid, let at):
            writer.byte(Kind.deviceSeen.rawValue)
            writer.identifier(cid.value)
            writer.instant(at)
        case .messageAccepted(let message):
            append(body: message, to: &writer)
        case .acknowledged(let cid, let upTo):
            writer.byte(Kind.acknowledged.rawValue)
            writer.identifier(cid.value)
            writer.varint(upTo.rawValue)
        case .settled(let cid, let seq, let state):
            writer.byte(Kind.settled.rawValue)
            writer.identifier(cid.value)
            writer.varint(seq.rawValue)
            writer.byte(state.rawValue)
        case .stubDue(let cid, let upTo):
            writer.byte(Kind.stubDue.rawValue)
            writer.identifier(cid.value)
            writer.varint(upTo.rawValue)
        case .stubSettled(let cid, let upTo, let outcome):
            writer.byte(Kind.stubSettled.rawValue)
            writer.identifier(cid.value)
            writer.varint(upTo.rawValue)
            writer.byte(outcome.rawValue)
        case .apiTokenRevoked(let digest, let expiresAt):
            writer.byte(Kind.apiTokenRevoked.rawValue)
            writer.string(digest)
            writer.instant(expiresAt)
        }
    }

    static func fields(of kind: Kind, from reader: inout ByteReader) -> Record? {
        switch kind {
        case .deviceRegistered:
            guard let cid = reader.cid(), let app = reader.app(), let generation = reader.generation(),
                let at = reader.instant()
            else { return nil }
            return .deviceRegistered(DeviceRegistration(app: app, cid: cid, generation: generation, at: at))
        case .pushTokenChanged:
            guard let cid = reader.cid(), let at = reader.instant(), let token = reader.token() else { return nil }
            return .pushTokenChanged(cid: cid, token: token.value, at: at)
        case .deviceSeen:
            guard let cid = reader.cid(), let at = reader.instant() else { return nil }
            return .deviceSeen(cid: cid, at: at)
        case .messageAccepted:
            return message(from: &reader).map { .messageAccepted($0) }
        case .acknowledged:
            guard let cid = reader.cid(), let upTo = reader.seq() else { return nil }
            return .acknowledged(cid: cid, upTo: upTo)
        case .settled:
            guard let cid = reader.cid(), let seq = reader.seq(), let raw = reader.byte(),
                let state = DeliveryState(rawValue: raw), state.isTerminal
            else { return nil }
            return .settled(cid: cid, seq: seq, state: state)
        case .stubDue:
            guard let cid = reader.cid(), let upTo = reader.seq() else { return nil }
            return .stubDue(cid: cid, upTo: upTo)
        case .stubSettled:
            guard let cid = reader.cid(), let upTo = reader.seq(), let raw = reader.byte(),
                let outcome = StubOutcome(rawValue: raw)
            else { return nil }
            return .stubSettled(cid: cid, upTo: upTo, outcome: outcome)
        case .apiTokenRevoked:
            guard let digest = reader.octets(), let expiresAt = reader.instant() else { return nil }
            return .apiTokenRevoked(digest: digest, expiresAt: expiresAt)
        }
    }

    // MARK: - Messages

    /// The byte in which an accept record says what it holds. Bits 0 and 1 are the stub's need.
    private enum Flag {
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

    static func message(from reader: inout ByteReader) -> AcceptedMessage? {
        guard let flags = reader.byte(), flags & ~Flag.known == 0, let stub = StubNeed(rawValue: flags & Flag.stub),
            let cid = reader.cid(), let seq = reader.seq(), let messageID = reader.identifier(),
            let taskID = reader.task(), let acceptedAt = reader.instant(), let expiresAt = reader.instant()
        else { return nil }
        var request: RequestKey?
        if flags & Flag.request != 0 {
            guard let key = reader.identifier(), let content = reader.identifier() else { return nil }
            request = RequestKey(key: key, content: content)
        }
        var alert: OwnAlert?
        if flags & Flag.alert != 0 {
            guard let body = reader.octets() else { return nil }
            var collapse: String?
            if flags & Flag.collapse != 0 {
                guard let text = reader.octets().flatMap({ String(validating: $0, as: UTF8.self) }) else { return nil }
                collapse = text
            }
            alert = OwnAlert(body: body, collapseID: collapse, isBackground: flags & Flag.background != 0)
        } else if flags & Flag.ofAlert != 0 {
            return nil
        }
        guard let payload = reader.octets() else { return nil }
        return AcceptedMessage(
            cid: cid, seq: seq, messageID: MessageID(messageID), taskID: taskID, acceptedAt: acceptedAt,
            expiresAt: expiresAt, stub: stub, wasOnline: flags & Flag.wasOnline != 0, request: request, alert: alert,
            payload: payload)
    }
}
