internal import FerryCore

/// The form of the timeline's files. `facts-N.log` is a header and blocks; a block is a header and chunks, each behind its
/// length of 4 bytes. `facts-N.filter` says which devices may be in it. Numbers are big-endian.
enum TimelineFormat {
    static let headerBytes = 32
    private static let magic: UInt64 = 0x4645_5252_5954_4c47  // FERRYTLG
    private static let version: UInt32 = 1

    /// Of the file: magic, version, number, time of its first fact, checksum of these.
    static func header(_ number: UInt32, firstTime: Instant) -> [UInt8] {
        var writer = ByteWriter()
        writer.uint64(magic)
        writer.uint32(version)
        writer.uint32(number)
        writer.uint64(UInt64(bitPattern: firstTime.milliseconds))
        writer.uint32(0)
        writer.uint32(checksum(writer.bytes, file: number, offset: 0))
        return writer.bytes
    }

    /// The time of the file's first fact; nil when the bytes are no header of this file.
    static func firstTime(_ bytes: UnsafeRawBufferPointer, number: UInt32) -> Instant? {
        var reader = ByteReader(bytes)
        guard reader.uint64() == magic, reader.uint32() == version, reader.uint32() == number,
            let raw = reader.uint64()
        else { return nil }
        let time = Instant(milliseconds: Int64(bitPattern: raw))
        guard header(number, firstTime: time).elementsEqual(bytes.prefix(headerBytes)) else { return nil }
        return time
    }

    static func name(_ number: UInt32) -> String { "facts-\(padded(number)).log" }
    static func filterName(_ number: UInt32) -> String { "facts-\(padded(number)).filter" }

    private static func padded(_ number: UInt32) -> String {
        let digits = String(number)
        return String(repeating: "0", count: 10 - digits.count) + digits
    }

    /// The number of the file that bears this name.
    static func number(_ name: String) -> UInt32? {
        guard name.hasPrefix("facts-"), name.hasSuffix(".log"), let number = UInt32(name.dropFirst(6).dropLast(4)),
            self.name(number) == name
        else { return nil }
        return number
    }

    /// Holds for one place only, so that a block in a wrong place is none.
    static func checksum(_ bytes: [UInt8], file: UInt32, offset: Int) -> UInt32 {
        var writer = ByteWriter()
        writer.uint32(file)
        writer.uint32(UInt32(truncatingIfNeeded: offset))
        writer.raw(bytes)
        return writer.bytes.withUnsafeBytes { RecordCodec.checksum($0) }
    }
}

/// What stands before the chunks that were written at once.
struct TimelineBlock {
    static let headerBytes = 24
    private static let magic: UInt32 = 0x4641_4354  // FACT

    var bodyBytes: Int
    /// Of the newest chunk.
    var lastTime: Instant
    private var bodyChecksum: UInt32

    /// Fills the header of a block that begins with `headerBytes` bytes of room.
    static func seal(_ block: inout [UInt8], lastTime: Instant, file: UInt32, offset: Int) {
        let body = block.withUnsafeBytes { RecordCodec.checksum(UnsafeRawBufferPointer(rebasing: $0[headerBytes...])) }
        let header = TimelineBlock(bodyBytes: block.count - headerBytes, lastTime: lastTime, bodyChecksum: body)
        block.replaceSubrange(..<headerBytes, with: header.encoded(file: file, offset: offset))
    }

    private func encoded(file: UInt32, offset: Int) -> [UInt8] {
        var writer = ByteWriter()
        writer.uint32(Self.magic)
        writer.uint32(UInt32(truncatingIfNeeded: bodyBytes))
        writer.uint64(UInt64(bitPattern: lastTime.milliseconds))
        writer.uint32(bodyChecksum)
        writer.uint32(TimelineFormat.checksum(writer.bytes, file: file, offset: offset))
        return writer.bytes
    }

    /// The header at `offset` of a file's bytes; nil when there is none.
    private static func header(_ bytes: UnsafeRawBufferPointer, at offset: Int, file: UInt32) -> TimelineBlock? {
        guard offset >= 0, offset <= bytes.count - headerBytes else { return nil }
        let own = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + headerBytes])
        var reader = ByteReader(own)
        guard reader.uint32() == magic, let count = reader.uint32(), let time = reader.uint64(),
            let checksum = reader.uint32()
        else { return nil }
        let block = TimelineBlock(
            bodyBytes: Int(count), lastTime: Instant(milliseconds: Int64(bitPattern: time)), bodyChecksum: checksum)
        return block.encoded(file: file, offset: offset).elementsEqual(own) ? block : nil
    }

    /// What a walk over a file found.
    struct Walk {
        /// Behind the last whole block.
        var end = TimelineFormat.headerBytes
        var lastTime: Instant?
        /// Stretches that held no whole block, with whole ones behind them.
        var damages = 0
    }

    /// Calls `body` with each chunk of each whole block of the file, in order. What lies behind the last whole block was
    /// being written when the machine stopped, and is no damage.
    static func walk(
        _ bytes: UnsafeRawBufferPointer, file: UInt32, _ body: (UnsafeRawBufferPointer) -> Void
    ) -> Walk {
        var walk = Walk()
        var offset = TimelineFormat.headerBytes
        var isDamaged = false
        while offset <= bytes.count - headerBytes {
            guard let block = header(bytes, at: offset, file: file) else {
                // The next header may be anywhere.
                isDamaged = true
                offset = nextMagic(bytes, after: offset) ?? bytes.count
                continue
            }
            let end = offset + headerBytes + block.bodyBytes
            guard end <= bytes.count else {
                isDamaged = true
                offset = nextMagic(bytes, after: offset) ?? bytes.count
                continue
            }
            let content = UnsafeRawBufferPointer(rebasing: bytes[(offset + headerBytes)..<end])
            guard RecordCodec.checksum(content) == block.bodyChecksum else {
                isDamaged = true
                offset = end
                continue
            }
            if isDamaged { walk.damages += 1 }
            isDamaged = false
            var reader = ByteReader(content)
            while let count = reader.uint32(), let chunk = reader.raw(Int(count)) { body(chunk) }
            walk.end = end
            walk.lastTime = block.lastTime
            offset = end
        }
        return walk
    }

    private static func nextMagic(_ bytes: UnsafeRawBufferPointer, after offset: Int) -> Int? {
        var candidate = offset + 1
        while candidate <= bytes.count - headerBytes {
            if bytes[candidate] == UInt8(truncatingIfNeeded: magic >> 24),
                UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: candidate, as: UInt32.self)) == magic
            {
                return candidate
            }
            candidate += 1
        }
        return nil
    }
}
