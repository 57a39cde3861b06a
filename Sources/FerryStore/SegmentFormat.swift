internal import FerryCore

/// The start of a segment's file. It is on the disk before the first batch is written behind it.
struct SegmentHeader: Equatable, Sendable {
    static let bytes = 64
    /// What a segment's file is called until its header is on the disk.
    static let draftName = "journal.new"
    private static let magic: UInt64 = 0x4645_5252_594a_4e4c  // FERRYJNL
    private static let version: UInt32 = 1

    var segment: UInt32
    var epoch: Epoch
    /// The number of the first batch here.
    var firstBatch: UInt64
    /// How far the segment before is valid; what lies behind was abandoned. 0 for the first of a folder.
    var previousLength: UInt32

    func encoded(salt: UInt64) -> [UInt8] {
        var writer = ByteWriter()
        writer.uint64(Self.magic)
        writer.uint32(Self.version)
        writer.uint32(segment)
        writer.uint64(epoch.rawValue)
        writer.uint64(firstBatch)
        writer.uint32(previousLength)
        writer.raw(repeatElement(0, count: Self.bytes - 4 - writer.bytes.count))
        writer.uint32(Checksum.of(writer.bytes, salt: salt, segment: segment, offset: 0))
        return writer.bytes
    }

    /// nil when `bytes` do not start with the header of this segment of this folder.
    static func decode(_ bytes: UnsafeRawBufferPointer, salt: UInt64, segment: UInt32) -> SegmentHeader? {
        guard bytes.count >= Self.bytes else { return nil }
        var reader = ByteReader(bytes)
        guard reader.uint64() == magic, reader.uint32() == version, reader.uint32() == segment,
            let epoch = reader.uint64(), let firstBatch = reader.uint64(), let previousLength = reader.uint32()
        else { return nil }
        let header = SegmentHeader(
            segment: segment, epoch: Epoch(epoch), firstBatch: firstBatch, previousLength: previousLength)
        // One spelling: the bytes between the fields and the checksum are zero.
        guard header.encoded(salt: salt).elementsEqual(bytes.prefix(Self.bytes)) else { return nil }
        return header
    }

    static func fileName(_ segment: UInt32) -> String {
        let digits = String(segment)
        return "journal-" + String(repeating: "0", count: 10 - digits.count) + digits + ".seg"
    }

    /// The segment whose file bears this name.
    static func segment(fileName: String) -> UInt32? {
        guard fileName.hasPrefix("journal-"), fileName.hasSuffix(".seg"),
            let segment = UInt32(fileName.dropFirst(8).dropLast(4)), self.fileName(segment) == fileName
        else { return nil }
        return segment
    }
}

/// What stands before the records that one sync made durable. Batches start at multiples of 8.
struct BatchHeader: Equatable, Sendable {
    static let bytes = 40
    static let alignment = 8
    private static let magic: UInt32 = 0x4645_5252  // FERR

    enum Kind: UInt32 {
        case records = 1
        /// Covers bytes that were given up when an operator accepted the loss.
        case hole = 2
    }

    var kind: Kind
    /// Bytes of records behind the header, padding not counted.
    var recordBytes: UInt32
    var recordCount: UInt32
    /// Rises by one over the whole journal.
    var number: UInt64
    var time: Instant

    /// With header and padding.
    var totalBytes: Int { Self.bytes + Self.padded(Int(recordBytes)) }

    static func padded(_ bytes: Int) -> Int { (bytes + alignment - 1) / alignment * alignment }

    func encoded(salt: UInt64, segment: UInt32, offset: Int) -> [UInt8] {
        var writer = ByteWriter()
        writer.uint32(Self.magic)
        writer.uint32(kind.rawValue)
        writer.uint32(recordBytes)
        writer.uint32(recordCount)
        writer.uint64(number)
        writer.uint64(UInt64(bitPattern: time.milliseconds))
        writer.uint32(0)
        writer.uint32(Checksum.of(writer.bytes, salt: salt, segment: segment, offset: offset))
        return writer.bytes
    }

    /// nil when no batch of this folder and segment starts at `offset` of `bytes`, the segment's file.
    static func decode(
        _ bytes: UnsafeRawBufferPointer, at offset: Int, salt: UInt64, segment: UInt32
    ) -> BatchHeader? {
        guard offset >= 0, offset <= bytes.count - Self.bytes else { return nil }
        let own = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + Self.bytes])
        var reader = ByteReader(own)
        guard reader.uint32() == magic, let raw = reader.uint32(), let kind = Kind(rawValue: raw),
            let recordBytes = reader.uint32(), let recordCount = reader.uint32(), let number = reader.uint64(),
            let time = reader.uint64()
        else { return nil }
        let header = BatchHeader(
            kind: kind, recordBytes: recordBytes, recordCount: recordCount, number: number,
            time: Instant(milliseconds: Int64(bitPattern: time)))
        guard header.encoded(salt: salt, segment: segment, offset: offset).elementsEqual(own) else { return nil }
        return header
    }
}

/// A checksum that holds for one place of one folder's journal only: neither bytes that a sender chose nor a batch that
/// was written to a wrong place can pass for a header.
enum Checksum {
    static func of(_ bytes: [UInt8], salt: UInt64, segment: UInt32, offset: Int) -> UInt32 {
        var writer = ByteWriter()
        writer.uint64(salt)
        writer.uint32(segment)
        writer.uint32(UInt32(truncatingIfNeeded: offset))
        writer.raw(bytes)
        return writer.bytes.withUnsafeBytes { RecordCodec.checksum($0) }
    }
}
