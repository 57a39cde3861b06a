internal import FerryCore

/// A device as the tables hold it.
struct DeviceRow: Equatable, Sendable {
    private static let version: UInt8 = 1

    var record: DeviceRecord
    /// The gap counts the drops that were journalled before this position, and no later ones.
    var asOf: JournalPosition

    static func key(_ cid: CID) -> [UInt8] { cid.value.bytes }

    var value: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.version)
        writer.string(record.app.text.utf8)
        writer.varint(UInt64(record.generation))
        writer.instant(record.registeredAt)
        writer.instant(record.seenAt)
        writer.token(record.token)
        writer.varint(record.acknowledged.rawValue)
        writer.varint(record.stubDueUpTo.rawValue)
        writer.varint(record.stubSettledUpTo.rawValue)
        // Zero stands for no gap: none ends at "before the first".
        writer.varint(record.gap?.upTo.rawValue ?? 0)
        writer.varint(UInt64(record.gap?.expired ?? 0))
        writer.varint(UInt64(record.gap?.overflowed ?? 0))
        writer.uint32(asOf.segment)
        writer.uint32(asOf.offset)
        return writer.bytes
    }

    init(record: DeviceRecord, asOf: JournalPosition) {
        self.record = record
        self.asOf = asOf
    }

    /// nil when the row is none of this version.
    init?(key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        var keyReader = ByteReader(key)
        var reader = ByteReader(value)
        guard let cid = keyReader.cid(), keyReader.isAtEnd, reader.byte() == Self.version,
            let app = reader.app(), let generation = reader.generation(), let registeredAt = reader.instant(),
            let seenAt = reader.instant(), let token = reader.token(), let acknowledged = reader.seq(),
            let stubDue = reader.seq(), let stubSettled = reader.seq(), let gapUpTo = reader.seq(),
            let expired = reader.varint().flatMap({ UInt32(exactly: $0) }),
            let overflowed = reader.varint().flatMap({ UInt32(exactly: $0) }),
            let segment = reader.uint32(), let offset = reader.uint32(), reader.isAtEnd
        else { return nil }
        record = DeviceRecord(
            registration: DeviceRegistration(app: app, cid: cid, generation: generation, at: registeredAt))
        record.seenAt = seenAt
        record.token = token.value
        record.acknowledged = acknowledged
        record.stubDueUpTo = stubDue
        record.stubSettledUpTo = stubSettled
        if gapUpTo > .zero { record.gap = Gap(upTo: gapUpTo, expired: expired, overflowed: overflowed) }
        asOf = JournalPosition(segment: segment, offset: offset)
    }

    static func read(_ cid: CID, from tables: some Tables) throws(StoreFailure) -> DeviceRow? {
        let key = key(cid)
        guard let value = try tables.get(.devices, key) else { return nil }
        let row = key.withUnsafeBytes { keyBytes in
            value.withUnsafeBytes { DeviceRow(key: keyBytes, value: $0) }
        }
        guard let row else { throw StoreFailure(.corrupted, "The row of device \(cid) cannot be read") }
        return row
    }
}

/// Keys of kept messages; the value is the body of the accept record.
enum QueueRow {
    static let keyBytes = 24

    static func key(_ cid: CID, _ seq: Seq) -> [UInt8] {
        var writer = ByteWriter()
        writer.identifier(cid.value)
        writer.uint64(seq.rawValue)
        return writer.bytes
    }

    static func isKey(_ key: UnsafeRawBufferPointer, _ cid: CID, _ seq: Seq) -> Bool {
        var reader = ByteReader(key)
        return reader.cid() == cid && reader.uint64() == seq.rawValue && reader.isAtEnd
    }
}

/// The answer to a request id. The time comes first in the key, so that what is past its window lies together.
struct RequestRow: Equatable, Sendable {
    var key: Identifier128
    var answer: RequestAnswer

    static func key(since time: Instant) -> [UInt8] {
        var writer = ByteWriter()
        writer.uint64(UInt64(max(0, time.milliseconds)))
        return writer.bytes
    }

    var keyBytes: [UInt8] { Self.key(since: answer.acceptedAt) + key.bytes }

    var value: [UInt8] {
        var writer = ByteWriter()
        writer.instant(answer.acceptedAt)
        writer.identifier(answer.content)
        writer.task(answer.taskID)
        writer.byte(answer.wasIgnored ? 2 : answer.wasOnline ? 1 : 0)
        return writer.bytes
    }

    init(key: Identifier128, answer: RequestAnswer) {
        self.key = key
        self.answer = answer
    }

    init?(key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        var keyReader = ByteReader(key)
        var reader = ByteReader(value)
        guard keyReader.uint64() != nil, let digest = keyReader.identifier(), keyReader.isAtEnd,
            let acceptedAt = reader.instant(), let content = reader.identifier(), let task = reader.task(),
            let online = reader.byte(), online <= 2, reader.isAtEnd
        else { return nil }
        self.key = digest
        answer = RequestAnswer(content: content, taskID: task, wasOnline: online == 1, acceptedAt: acceptedAt)
        answer.wasIgnored = online == 2
    }
}

/// An API token that is refused. The key is its digest.
enum RevokedRow {
    static func value(_ expiresAt: Instant) -> [UInt8] {
        var writer = ByteWriter()
        writer.instant(expiresAt)
        return writer.bytes
    }

    static func expiry(_ value: UnsafeRawBufferPointer) -> Instant? {
        var reader = ByteReader(value)
        return reader.instant()
    }
}

/// The single values that the tables hold of the whole folder.
struct TablesMeta: Equatable, Sendable {
    private static let version: UInt8 = 1
    private static let key = Array("state".utf8)

    /// The first segment whose effects the tables lack.
    var firstSegment: UInt32 = 1
    var lastTime = Instant.distantPast
    /// Highest `seq` of each partition.
    var highest = [Seq](repeating: .zero, count: Limits.partitions)

    func put(into write: inout TableWrite) {
        var writer = ByteWriter()
        writer.byte(Self.version)
        writer.uint32(firstSegment)
        writer.instant(lastTime)
        for seq in highest { writer.uint64(seq.rawValue) }
        write.put(.meta, key: Self.key, value: writer.bytes)
    }

    /// nil in tables that no segment has retired into yet.
    static func read(from tables: some Tables) throws(StoreFailure) -> TablesMeta? {
        guard let bytes = try tables.get(.meta, key) else { return nil }
        if let version = bytes.first, version != Self.version {
            throw StoreFailure(
                .refused,
                "The tables have format version \(version), and this gateway knows version \(Self.version): "
                    + "start the version of the gateway that wrote them, or a later one")
        }
        guard let meta = bytes.withUnsafeBytes({ decode($0) }) else {
            throw StoreFailure(.corrupted, "The state row of the tables cannot be read")
        }
        return meta
    }

    private static func decode(_ value: UnsafeRawBufferPointer) -> TablesMeta? {
        var reader = ByteReader(value)
        guard reader.byte() == version, let first = reader.uint32(), let time = reader.instant() else { return nil }
        var meta = TablesMeta()
        meta.firstSegment = first
        meta.lastTime = time
        for index in meta.highest.indices {
            guard let seq = reader.uint64() else { return nil }
            meta.highest[index] = Seq(seq)
        }
        return reader.isAtEnd ? meta : nil
    }
}
