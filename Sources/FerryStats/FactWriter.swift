package import FerryCore

/// Writes facts of one moment, one after the other, into one run of bytes: a chunk.
///
/// A chunk is 8 bytes time (milliseconds since 1970, big-endian), then entries. An entry is 1 byte kind, with the high bit
/// set when it is of the same device as the one before; 1 byte length of its fields; 16 bytes cid unless that bit is set;
/// the fields, in numbers and varints of `ByteWriter`. Whoever does not know a kind can step over it.
///
/// A message's whole life is about 100 bytes. The buffer is reused or given away; a fact allocates nothing.
package struct FactWriter {
    private var writer = ByteWriter()
    private var lastDevice: CID?
    /// Entries in the chunk.
    package private(set) var count = 0

    package static let headerBytes = 8
    /// A chunk with one entry more than this many bytes is still a chunk that `FactReader` takes.
    package static let fullBytes = 65_536
    /// More than any entry has: kind, length, cid, and at most 255 bytes of fields.
    private static let entryBytes = 2 + 16 + 255 + 15

    package init() {}

    package var isEmpty: Bool { count == 0 }
    package var isFull: Bool { writer.bytes.count >= Self.fullBytes }

    /// The chunk; the next fact begins another.
    package mutating func take() -> [UInt8] {
        let bytes = writer.bytes
        writer.bytes = []
        writer.bytes.reserveCapacity(min(bytes.count &* 2, Self.fullBytes &+ 512))
        lastDevice = nil
        count = 0
        return bytes
    }

    /// Appends a fact; false when nothing is written of it, because another fact says the same. `at` is the same for all
    /// facts of a chunk. Facts of the gateway have the device `Self.gateway`; those of a broadcast have its task's value for one.
    @discardableResult
    package mutating func append(_ fact: Fact, of device: CID, at: Instant) -> Bool {
        // The ack says it for all messages that it covers.
        if case .ended(_, .acknowledged) = fact { return false }
        if count == 0 { writer.uint64(UInt64(bitPattern: at.milliseconds)) }
        let isSame = lastDevice.map { $0 == device } ?? false
        lastDevice = device
        withUnsafeTemporaryAllocation(byteCount: Self.entryBytes, alignment: 8) { room in
            var entry = RawWriter(room)
            entry.byte(fact.kind.rawValue | (isSame ? FactKind.sameDevice : 0))
            entry.byte(0)
            if !isSame { entry.identifier(device.value) }
            let fields = entry.offset
            Self.write(fact, at: at, to: &entry)
            entry.patch(1, UInt8(truncatingIfNeeded: entry.offset - fields))
            writer.raw(entry.written)
        }
        count += 1
        return true
    }

    /// Under which facts of the gateway itself stand.
    package static let gateway = CID(Identifier128(high: 0, low: 0))

    private static func write(_ fact: Fact, at: Instant, to writer: inout RawWriter) {
        switch fact {
        case .accepted(let acceptance): write(acceptance, at: at, to: &writer)
        case .sent(let seq, let session, let isOffLine):
            writer.varint(seq.rawValue)
            writer.uint64(session.rawValue)
            writer.byte(isOffLine ? 1 : 0)
        case .ended(let seq, let reason):
            writer.varint(seq.rawValue)
            writer.byte(reason.rawValue)
        case .broadcastPlaced(let targets): writer.varint(targets)
        case .broadcastOver(let reason, let targets):
            writer.byte(reason.rawValue)
            writer.varint(targets)
        case .gapSent(let gap):
            writer.varint(gap.upTo.rawValue)
            writer.varint(UInt64(gap.expired))
            writer.varint(UInt64(gap.overflowed))
        case .acknowledged(let seq), .stubDue(let seq), .noToken(let seq), .stubWithdrawn(let seq):
            writer.varint(seq.rawValue)
        case .stubRequested(let kind, let upTo):
            writer.varint(upTo.rawValue)
            writer.byte(kind.rawValue)
        case .stubAnswered(let kind, let upTo, let verdict):
            writer.varint(upTo.rawValue)
            writer.byte(kind.rawValue)
            switch verdict {
            case .accepted: writer.byte(0)
            case .refused(let reason):
                writer.byte(1)
                writer.string(shortened(reason))
            }
        case .tokenChanged(let hasToken): writer.byte(hasToken ? 1 : 0)
        case .attached(let attachment):
            writer.uint64(attachment.session.rawValue)
            writer.byte(attachment.way.rawValue)
            writer.uint32(attachment.peerAddress)
            writer.varint(UInt64(attachment.peerPort))
            if let lastSeq = attachment.lastSeq { writer.varint(lastSeq.rawValue) }
        case .detached(let session, let departure, let closeCode):
            writer.uint64(session.rawValue)
            writer.byte(departure.rawValue)
            writer.varint(UInt64(closeCode))
        case .takenOver(let session): writer.uint64(session.rawValue)
        case .factsLost(let count): writer.varint(count)
        case .wentOffline, .started, .stopped: break
        }
    }

    private static func write(_ acceptance: Acceptance, at: Instant, to writer: inout RawWriter) {
        var flags = acceptance.stub.rawValue
        if acceptance.wasOnline { flags |= FactKind.Flag.wasOnline }
        if acceptance.hasOwnAlert { flags |= FactKind.Flag.ownAlert }
        if acceptance.isLiveOnly { flags |= FactKind.Flag.liveOnly }
        if acceptance.isBroadcast { flags |= FactKind.Flag.broadcast }
        if acceptance.isNotedAgain { flags |= FactKind.Flag.again }
        writer.byte(flags)
        writer.varint(acceptance.seq.rawValue)
        writer.identifier(acceptance.messageID.value)
        writer.identifier(acceptance.taskID.value)
        writer.varint(UInt64(acceptance.taskID.monthDay))
        writer.byte(acceptance.taskID.kind.rawValue)
        writer.varint(UInt64(bitPattern: at.milliseconds &- acceptance.acceptedAt.milliseconds))
        if !acceptance.isLiveOnly {
            writer.varint(
                UInt64(bitPattern: acceptance.expiresAt.milliseconds &- acceptance.acceptedAt.milliseconds))
        }
        writer.varint(UInt64(acceptance.payloadBytes))
    }

    /// At most `StubVerdict.reasonBytes` bytes, cut between two characters.
    static func shortened(_ reason: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for character in reason.unicodeScalars {
            let encoded = Array(String(character).utf8)
            guard bytes.count + encoded.count <= StubVerdict.reasonBytes else { break }
            bytes += encoded
        }
        return bytes
    }
}

/// The first byte of an entry, without the bit for the device. Numbers are never used again for something else.
enum FactKind: UInt8, CaseIterable {
    case accepted = 1
    case sent = 2
    case ended = 3
    case gapSent = 4
    case acknowledged = 5
    case stubDue = 6
    case noToken = 7
    case stubRequested = 8
    case stubAnswered = 9
    case stubWithdrawn = 10
    case tokenChanged = 11
    case attached = 12
    case detached = 13
    case takenOver = 14
    case wentOffline = 15
    case started = 16
    case stopped = 17
    case factsLost = 18
    case broadcastPlaced = 19
    case broadcastOver = 20

    static let sameDevice: UInt8 = 0x80

    /// Bits of an acceptance; 0 and 1 are the stub.
    enum Flag {
        static let stub: UInt8 = 0x03
        static let wasOnline: UInt8 = 0x04
        static let ownAlert: UInt8 = 0x08
        static let liveOnly: UInt8 = 0x10
        static let broadcast: UInt8 = 0x20
        static let again: UInt8 = 0x40
        static let known: UInt8 = 0x7f
    }
}

extension Fact {
    var kind: FactKind {
        switch self {
        case .accepted: .accepted
        case .sent: .sent
        case .ended: .ended
        case .gapSent: .gapSent
        case .acknowledged: .acknowledged
        case .stubDue: .stubDue
        case .noToken: .noToken
        case .stubRequested: .stubRequested
        case .stubAnswered: .stubAnswered
        case .stubWithdrawn: .stubWithdrawn
        case .tokenChanged: .tokenChanged
        case .attached: .attached
        case .detached: .detached
        case .takenOver: .takenOver
        case .wentOffline: .wentOffline
        case .started: .started
        case .stopped: .stopped
        case .factsLost: .factsLost
        case .broadcastPlaced: .broadcastPlaced
        case .broadcastOver: .broadcastOver
        }
    }
}
