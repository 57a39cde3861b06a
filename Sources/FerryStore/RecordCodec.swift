internal import CZlib
package import FerryCore

/// Records as bytes: 4 bytes length of the body, 4 bytes CRC-32 of the body, the body (1 byte kind, then its fields).
/// Numbers are big-endian or varints as in `ByteWriter`. A body has one spelling: what decodes encodes to the same bytes.
package enum RecordCodec {
    package static let headerBytes = 8

    /// Appends `record` and answers how many bytes it took.
    @discardableResult
    package static func append(_ record: Record, to writer: inout ByteWriter) -> Int {
        let start = writer.bytes.count
        writer.uint64(0)
        append(body: record, to: &writer)
        seal(&writer, from: start)
        return writer.bytes.count - start
    }

    /// Appends `message` as `.messageAccepted`, without the detour over the enum.
    @discardableResult
    package static func append(_ message: AcceptedMessage, to writer: inout ByteWriter) -> Int {
        let start = writer.bytes.count
        writer.uint64(0)
        append(body: message, to: &writer)
        seal(&writer, from: start)
        return writer.bytes.count - start
    }

    /// Appends `.acknowledged`, of which there is one for almost each message, in one piece.
    package static func appendAcknowledged(_ cid: CID, upTo: Seq, to writer: inout ByteWriter) {
        withUnsafeTemporaryAllocation(byteCount: headerBytes + 1 + 16 + 10, alignment: 8) { room in
            var record = RawWriter(room)
            record.uint64(0)
            record.byte(Kind.acknowledged.rawValue)
            record.identifier(cid.value)
            record.varint(upTo.rawValue)
            let body = UnsafeRawBufferPointer(rebasing: room[headerBytes..<record.offset])
            room.storeBytes(of: UInt32(body.count).bigEndian, as: UInt32.self)
            room.storeBytes(of: checksum(body).bigEndian, toByteOffset: 4, as: UInt32.self)
            writer.raw(record.written)
        }
    }

    /// The record at the start of `bytes`, header included; nil when it is not whole or does not match its checksum.
    package static func decode(record bytes: UnsafeRawBufferPointer) -> Record? {
        body(of: bytes).flatMap { decode($0) }
    }

    /// The record in a body that is known to be whole; nil when it is not one. Never traps.
    package static func decode(_ body: UnsafeRawBufferPointer) -> Record? {
        var reader = ByteReader(body)
        guard let raw = reader.byte(), let kind = Kind(rawValue: raw), let record = fields(of: kind, from: &reader),
            reader.isAtEnd
        else { return nil }
        return record
    }

    /// The message of the accept record at the start of `bytes`, header included; nil when it is another record, not
    /// whole, or does not match its checksum.
    package static func message(record bytes: UnsafeRawBufferPointer) -> AcceptedMessage? {
        body(of: bytes).flatMap { message($0) }
    }

    /// The message in the body of an accept record.
    package static func message(_ body: UnsafeRawBufferPointer) -> AcceptedMessage? {
        AcceptedFields(body: body)?.message
    }

    /// The body of the record at the start of `bytes`, checked against its checksum; nil when it is not whole.
    package static func body(of bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var reader = ByteReader(bytes)
        // A body holds at least its kind: eight zero bytes are no record, though their checksum fits.
        guard let count = reader.uint32(), let checksum = reader.uint32(), count > 0,
            let body = reader.raw(Int(count)), self.checksum(body) == checksum
        else { return nil }
        return body
    }

    /// How long the body of the record at the start of `bytes` says to be, when there is as much; unchecked.
    static func bodyCount(of bytes: UnsafeRawBufferPointer) -> Int? {
        var reader = ByteReader(bytes)
        guard let count = reader.uint32(), reader.uint32() != nil, reader.raw(Int(count)) != nil else { return nil }
        return Int(count)
    }

    /// CRC-32 as zlib and everybody else has it.
    static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        UInt32(truncatingIfNeeded: crc32_z(0, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count))
    }

    /// Fills the header of the record that starts at `start` and ends the bytes.
    static func seal(_ writer: inout ByteWriter, from start: Int) {
        let body = start + headerBytes
        let count = UInt32(truncatingIfNeeded: writer.bytes.count - body)
        writer.bytes.withUnsafeMutableBytes { bytes in
            let checksum = self.checksum(UnsafeRawBufferPointer(rebasing: bytes[body...]))
            bytes.storeBytes(of: count.bigEndian, toByteOffset: start, as: UInt32.self)
            bytes.storeBytes(of: checksum.bigEndian, toByteOffset: start + 4, as: UInt32.self)
        }
    }

    /// The first byte of a body. Numbers are never used again for something else.
    enum Kind: UInt8, CaseIterable {
        case deviceRegistered = 1
        case pushTokenChanged = 2
        case deviceSeen = 3
        case messageAccepted = 4
        case acknowledged = 5
        case settled = 6
        case stubDue = 7
        case stubSettled = 8
        case apiTokenRevoked = 9
        /// A registration that has a place in the stream to begin at; one that has none is of the first kind.
        case deviceRegisteredBehind = 10
        case broadcastAccepted = 11
        case broadcastPlaced = 12
        case broadcastExpired = 13
        case broadcastStopped = 20
        case controlRows = 14
        /// An accepted message whose content is its task's.
        case messageReferred = 30
        case deviceRemoved = 40
    }
}
