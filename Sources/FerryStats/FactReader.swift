package import FerryCore

/// Reads the entries of a chunk, as `FactWriter` made it, from bytes that nobody vouches for. It borrows its buffer, so it
/// must not outlive the closure that lent it.
package struct FactReader {
    /// One entry, its fields not looked at yet.
    package struct Entry {
        package let device: CID
        let kind: UInt8
        let fields: UnsafeRawBufferPointer
        let at: Instant

        package var isAcceptance: Bool { kind == FactKind.accepted.rawValue }

        /// nil for a kind that this version does not know, and for fields that are none.
        package var fact: TimedFact? {
            guard let kind = FactKind(rawValue: kind) else { return nil }
            var reader = ByteReader(fields)
            guard let fact = Fact(kind, from: &reader, at: at), reader.isAtEnd else { return nil }
            return TimedFact(at, fact)
        }
    }

    private var reader: ByteReader
    private var device: CID?
    package let at: Instant
    /// The bytes ended in the middle of an entry, or hold none.
    package private(set) var isDamaged = false

    /// nil when the bytes are no chunk.
    package init?(_ chunk: UnsafeRawBufferPointer) {
        reader = ByteReader(chunk)
        guard let time = reader.uint64() else { return nil }
        at = Instant(milliseconds: Int64(bitPattern: time))
    }

    package mutating func next() -> Entry? {
        guard !isDamaged, !reader.isAtEnd else { return nil }
        isDamaged = true
        guard let head = reader.byte(), let length = reader.byte() else { return nil }
        if head & FactKind.sameDevice == 0 {
            guard let value = reader.identifier() else { return nil }
            device = CID(value)
        }
        guard let device, let fields = reader.raw(Int(length)) else { return nil }
        isDamaged = false
        return Entry(device: device, kind: head & ~FactKind.sameDevice, fields: fields, at: at)
    }
}

extension FactReader {
    /// Calls `body` with the device of each run of entries of one device, and with the task of each message that was accepted for
    /// one device alone; at no other field is looked.
    package static func eachName(in chunk: UnsafeRawBufferPointer, _ body: (CID) -> Void) {
        var offset = FactWriter.headerBytes
        while offset + 2 <= chunk.count {
            let isSame = chunk[offset] & FactKind.sameDevice != 0
            let fields = offset + (isSame ? 2 : 18)
            let end = fields + Int(chunk[offset + 1])
            guard end <= chunk.count else { return }
            if !isSame {
                body(CID(identifier(in: chunk, at: offset + 2)))
            }
            if chunk[offset] & ~FactKind.sameDevice == FactKind.accepted.rawValue,
                let task = task(in: chunk, fields..<end)
            {
                body(CID(task))
            }
            offset = end
        }
    }
}

extension FactReader {
    private static func identifier(in chunk: UnsafeRawBufferPointer, at offset: Int) -> Identifier128 {
        let high = chunk.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        let low = chunk.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
        return Identifier128(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
    }

    /// An acceptance's fields begin with flags, the `seq`, and the ids of message and task. nil for a broadcast's.
    private static func task(in chunk: UnsafeRawBufferPointer, _ fields: Range<Int>) -> Identifier128? {
        guard !fields.isEmpty, chunk[fields.lowerBound] & FactKind.Flag.broadcast == 0 else { return nil }
        var offset = fields.lowerBound + 1
        while offset < fields.upperBound, chunk[offset] & 0x80 != 0 { offset += 1 }
        offset += 1 + 16
        guard offset + 16 <= fields.upperBound else { return nil }
        return identifier(in: chunk, at: offset)
    }
}

extension Fact {
    fileprivate init?(_ kind: FactKind, from reader: inout ByteReader, at: Instant) {
        switch kind {
        case .accepted:
            guard let acceptance = Acceptance(from: &reader, at: at) else { return nil }
            self = .accepted(acceptance)
        case .sent:
            guard let seq = reader.seq(), let session = reader.session(), let isOffLine = reader.truth() else {
                return nil
            }
            self = .sent(seq, session, isOffLine: isOffLine)
        case .ended:
            guard let seq = reader.seq(), let reason = reader.byte().flatMap({ EndReason(rawValue: $0) }) else {
                return nil
            }
            self = .ended(seq, reason)
        case .broadcastPlaced:
            guard let targets = reader.varint() else { return nil }
            self = .broadcastPlaced(targets: targets)
        case .broadcastOver:
            guard let reason = reader.byte().flatMap({ EndReason(rawValue: $0) }), let targets = reader.varint() else {
                return nil
            }
            self = .broadcastOver(reason, targets: targets)
        case .gapSent:
            guard let upTo = reader.seq(), let expired = reader.varint().flatMap({ UInt32(exactly: $0) }),
                let overflowed = reader.varint().flatMap({ UInt32(exactly: $0) })
            else { return nil }
            self = .gapSent(Gap(upTo: upTo, expired: expired, overflowed: overflowed))
        case .acknowledged:
            guard let seq = reader.seq() else { return nil }
            self = .acknowledged(upTo: seq)
        case .stubDue:
            guard let seq = reader.seq() else { return nil }
            self = .stubDue(upTo: seq)
        case .noToken:
            guard let seq = reader.seq() else { return nil }
            self = .noToken(upTo: seq)
        case .stubWithdrawn:
            guard let seq = reader.seq() else { return nil }
            self = .stubWithdrawn(seq)
        case .stubRequested:
            guard let seq = reader.seq(), let kind = reader.stubKind() else { return nil }
            self = .stubRequested(kind, upTo: seq)
        case .stubAnswered:
            guard let seq = reader.seq(), let kind = reader.stubKind(), let isRefused = reader.truth() else {
                return nil
            }
            guard isRefused else {
                self = .stubAnswered(kind, upTo: seq, .accepted)
                return
            }
            guard
                let reason = reader.string(limit: StubVerdict.reasonBytes).flatMap({
                    String(validating: $0, as: UTF8.self)
                })
            else { return nil }
            self = .stubAnswered(kind, upTo: seq, .refused(reason))
        case .tokenChanged:
            guard let hasToken = reader.truth() else { return nil }
            self = .tokenChanged(hasToken: hasToken)
        case .attached:
            guard let attachment = Attachment(from: &reader) else { return nil }
            self = .attached(attachment)
        case .detached:
            guard let session = reader.session(),
                let departure = reader.byte().flatMap({ Departure(rawValue: $0) }),
                let code = reader.varint().flatMap({ UInt16(exactly: $0) })
            else { return nil }
            self = .detached(session, departure, closeCode: code)
        case .takenOver:
            guard let session = reader.session() else { return nil }
            self = .takenOver(session)
        case .factsLost:
            guard let count = reader.varint() else { return nil }
            self = .factsLost(count)
        case .wentOffline: self = .wentOffline
        case .started: self = .started
        case .stopped: self = .stopped
        }
    }
}

extension Acceptance {
    fileprivate init?(from reader: inout ByteReader, at: Instant) {
        guard let flags = reader.byte(), flags & ~FactKind.Flag.known == 0,
            let stub = Stub(rawValue: flags & FactKind.Flag.stub), let seq = reader.seq(),
            let message = reader.identifier(), let task = reader.identifier(),
            let monthDay = reader.varint().flatMap({ UInt16(exactly: $0) }),
            let kind = reader.byte().flatMap({ TaskID.Kind(rawValue: $0) }), let delay = reader.varint()
        else { return nil }
        let acceptedAt = Instant(milliseconds: at.milliseconds &- Int64(bitPattern: delay))
        var expiresAt = acceptedAt
        if flags & FactKind.Flag.liveOnly == 0 {
            guard let life = reader.varint(), life != 0 else { return nil }
            expiresAt = Instant(milliseconds: acceptedAt.milliseconds &+ Int64(bitPattern: life))
        }
        guard let bytes = reader.varint().flatMap({ UInt32(exactly: $0) }) else { return nil }
        self.init(
            seq: seq, messageID: MessageID(message), taskID: TaskID(task, monthDay: monthDay, kind: kind),
            acceptedAt: acceptedAt, expiresAt: expiresAt, payloadBytes: bytes,
            wasOnline: flags & FactKind.Flag.wasOnline != 0, hasOwnAlert: flags & FactKind.Flag.ownAlert != 0,
            stub: stub, isBroadcast: flags & FactKind.Flag.broadcast != 0,
            isNotedAgain: flags & FactKind.Flag.again != 0)
    }
}

extension Attachment {
    fileprivate init?(from reader: inout ByteReader) {
        guard let session = reader.session(), let way = reader.byte().flatMap({ Way(rawValue: $0) }),
            let address = reader.uint32(), let port = reader.varint().flatMap({ UInt16(exactly: $0) })
        else { return nil }
        var lastSeq: Seq?
        if !reader.isAtEnd {
            guard let seq = reader.seq() else { return nil }
            lastSeq = seq
        }
        self.init(session: session, way: way, peerAddress: address, peerPort: port, lastSeq: lastSeq)
    }
}

extension ByteReader {
    fileprivate mutating func seq() -> Seq? { varint().map { Seq($0) } }
    fileprivate mutating func session() -> SessionID? { uint64().map { SessionID(rawValue: $0) } }
    fileprivate mutating func stubKind() -> StubKind? { byte().flatMap { StubKind(rawValue: $0) } }

    /// One spelling: 0 or 1.
    fileprivate mutating func truth() -> Bool? {
        switch byte() {
        case 0: false
        case 1: true
        default: nil
        }
    }
}
