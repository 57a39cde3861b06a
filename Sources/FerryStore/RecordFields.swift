internal import FerryCore

/// Of a settled record's state: no gap counts the message.
private let untoldBit: UInt8 = 0x80

/// The bodies of the records.
extension RecordCodec {
    static func append(body record: Record, to writer: inout ByteWriter) {
        switch record {
        case .deviceRegistered(let registration):
            let isBehind = registration.acknowledged > .zero
            writer.byte((isBehind ? Kind.deviceRegisteredBehind : .deviceRegistered).rawValue)
            writer.identifier(registration.cid.value)
            writer.string(registration.app.text.utf8)
            writer.varint(UInt64(registration.generation))
            writer.instant(registration.at)
            if isBehind { writer.varint(registration.acknowledged.rawValue) }
        case .deviceRemoved(let cid, let at):
            writer.byte(Kind.deviceRemoved.rawValue)
            writer.identifier(cid.value)
            writer.instant(at)
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
        case .settled(let cid, let seq, let state, let isTold):
            writer.byte(Kind.settled.rawValue)
            writer.identifier(cid.value)
            writer.varint(seq.rawValue)
            writer.byte(state.rawValue | (isTold ? 0 : untoldBit))
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
        case .broadcastAccepted(let broadcast):
            writer.byte(Kind.broadcastAccepted.rawValue)
            writer.broadcast(broadcast)
        case .broadcastPlaced(let placement):
            writer.byte(Kind.broadcastPlaced.rawValue)
            writer.placement(placement)
        case .broadcastExpired(let task):
            writer.byte(Kind.broadcastExpired.rawValue)
            writer.identifier(task)
        case .broadcastStopped(let task):
            writer.byte(Kind.broadcastStopped.rawValue)
            writer.identifier(task)
        case .controlRows(let rows):
            writer.byte(Kind.controlRows.rawValue)
            writer.controlRows(rows)
        }
    }

    static func fields(of kind: Kind, from reader: inout ByteReader) -> Record? {
        switch kind {
        case .deviceRegistered, .deviceRegisteredBehind:
            guard let cid = reader.cid(), let app = reader.app(), let generation = reader.generation(),
                let at = reader.instant()
            else { return nil }
            var registration = DeviceRegistration(app: app, cid: cid, generation: generation, at: at)
            if kind == .deviceRegisteredBehind {
                guard let acknowledged = reader.seq(), acknowledged > .zero else { return nil }
                registration.acknowledged = acknowledged
            }
            return .deviceRegistered(registration)
        case .deviceRemoved:
            guard let cid = reader.cid(), let at = reader.instant() else { return nil }
            return .deviceRemoved(cid: cid, at: at)
        case .pushTokenChanged:
            guard let cid = reader.cid(), let at = reader.instant(), let token = reader.token() else { return nil }
            return .pushTokenChanged(cid: cid, token: token.value, at: at)
        case .deviceSeen:
            guard let cid = reader.cid(), let at = reader.instant() else { return nil }
            return .deviceSeen(cid: cid, at: at)
        case .messageAccepted:
            return AcceptedFields(from: &reader).map { .messageAccepted($0.message) }
        case .messageReferred:
            return AcceptedFields(reference: &reader).map { .messageAccepted($0.message) }
        case .acknowledged:
            guard let cid = reader.cid(), let upTo = reader.seq() else { return nil }
            return .acknowledged(cid: cid, upTo: upTo)
        case .settled:
            guard let cid = reader.cid(), let seq = reader.seq(), let raw = reader.byte(),
                let state = DeliveryState(rawValue: raw & ~untoldBit), state.isTerminal
            else { return nil }
            return .settled(cid: cid, seq: seq, state: state, isTold: raw & untoldBit == 0)
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
        case .broadcastAccepted: return reader.broadcast().map { .broadcastAccepted($0) }
        case .broadcastPlaced: return reader.placement().map { .broadcastPlaced($0) }
        case .broadcastExpired: return reader.identifier().map { .broadcastExpired(task: $0) }
        case .broadcastStopped: return reader.identifier().map { .broadcastStopped(task: $0) }
        case .controlRows: return reader.controlRows().map { .controlRows($0) }
        }
    }
}
