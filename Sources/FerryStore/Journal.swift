internal import FerryCore
internal import FerryIO

/// Why a batch was not committed.
enum JournalFailure: Error {
    /// It is not on the disk, and will not be found there after a restart.
    case refused(StoreFailure)
    /// It may be on the disk or not, and the disk lets nobody say which: commit the same batch again.
    case undecided(StoreFailure)

    var reason: StoreFailure {
        switch self {
        case .refused(let failure), .undecided(let failure): failure
        }
    }
}

/// The writing end of the journal, a value without threads.
///
/// What makes it safe to believe: a batch is written only after the one before is synced, so a crash leaves at most one
/// batch in doubt, the last. A segment whose write or sync failed takes no more; how far it is valid is told by the header
/// of the next one, which is synced before any batch lands behind it.
struct Journal: Sendable {
    private let disk: any Disk
    private let salt: UInt64
    private let epoch: Epoch
    private let segmentBytes: Int
    private let files: SegmentFiles

    private var current: Segment?
    private var nextSegment: UInt32
    private var nextBatch: UInt64
    /// What the next segment's header says of the one before.
    private var previousLength: Int
    /// A batch that was written where no sync succeeded.
    private var doubt: Doubt?
    private var lastTime: Instant
    private var buffer: [UInt8] = []
    /// No segment was opened yet.
    private var isFirst = true
    private static let firstSegmentBytes = 16 << 20

    private struct Segment {
        var file: any DiskFile
        var number: UInt32
        var capacity: Int
        /// Where the next batch goes; everything before is synced.
        var offset: Int
        /// The disk was asked to prepare the one after it.
        var hasNext = false
    }

    private struct Doubt {
        var file: any DiskFile
        var offset: Int
    }

    /// Where a journal goes on.
    struct Position {
        var nextSegment: UInt32
        var nextBatch: UInt64
        var previousLength: Int
        var lastTime: Instant
    }

    init(
        disk: any Disk, format: FolderFormat, segmentBytes: Int, files: SegmentFiles, position: Position
    ) {
        self.disk = disk
        salt = format.salt
        epoch = format.epoch
        self.segmentBytes = segmentBytes
        self.files = files
        nextSegment = position.nextSegment
        nextBatch = position.nextBatch
        previousLength = position.previousLength
        lastTime = position.lastTime
    }

    /// The segment that the next batch goes to, unless it has no room.
    var segment: UInt32 { current?.number ?? nextSegment }
    /// Everything in the journal lies before this, and whatever is written next does not, by this process or after a crash
    /// by another: the number of a segment that is not there yet may be used by either.
    var end: JournalPosition {
        guard let segment = current else {
            return JournalPosition(
                segment: nextSegment &- 1, offset: UInt32(truncatingIfNeeded: previousLength))
        }
        return JournalPosition(segment: segment.number, offset: UInt32(truncatingIfNeeded: segment.offset))
    }

    /// Writes `pieces` as one batch, syncs it, and answers where each piece lies. Each piece is a run of whole records.
    mutating func commit(_ pieces: [[UInt8]], time: Instant) throws(JournalFailure) -> [RecordLocation] {
        lastTime = max(lastTime, time)
        let bytes = pieces.reduce(0) { $0 + $1.count }
        let need = BatchHeader.bytes + BatchHeader.padded(bytes)
        guard need <= Self.largestBatch else {
            let failure = StoreFailure(.refused, "A batch of \(bytes) bytes is too large for the journal")
            throw try refusal(failure)
        }
        var count: UInt32 = 0
        for piece in pieces {
            guard let records = Self.countRecords(piece) else {
                throw try refusal(StoreFailure(.refused, "What was to be journalled is not a run of whole records"))
            }
            count &+= records
        }
        // Twice: what one segment did not take goes to a fresh one.
        var failure: StoreFailure?
        for _ in 0..<2 {
            do throws(StoreFailure) {
                return try write(pieces, bytes: bytes, count: count, need: need)
            } catch {
                failure = error
                if current == nil, error.kind == .full, doubt == nil { break }
            }
        }
        throw try refusal(failure ?? StoreFailure(.disk, "Cannot write the journal"))
    }

    /// Makes the segment for the next batch, so that the folder is known to be writable.
    mutating func prepare() throws(StoreFailure) {
        if current == nil { try openSegment(need: 0) }
    }

    /// Large enough for any piece, small enough for 32-bit offsets.
    static let largestBatch = 1 << 30

    /// How many records `piece` holds; nil when it is not a run of whole records.
    static func countRecords(_ piece: [UInt8]) -> UInt32? {
        piece.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            var count: UInt32 = 0
            while !reader.isAtEnd {
                guard let length = reader.uint32(), reader.uint32() != nil, reader.raw(Int(length)) != nil else {
                    return nil
                }
                count &+= 1
            }
            return count
        }
    }

    private mutating func write(
        _ pieces: [[UInt8]], bytes: Int, count: UInt32, need: Int
    ) throws(StoreFailure) -> [RecordLocation] {
        if let open = current, open.offset + need > open.capacity, open.offset > SegmentHeader.bytes { seal() }
        if current == nil { try openSegment(need: need) }
        guard var segment = current else { throw StoreFailure(.disk, "The journal has no open segment") }
        let header = BatchHeader(
            kind: .records, recordBytes: UInt32(truncatingIfNeeded: bytes), recordCount: count, number: nextBatch,
            time: lastTime)
        buffer.removeAll(keepingCapacity: true)
        buffer.append(contentsOf: header.encoded(salt: salt, segment: segment.number, offset: segment.offset))
        var locations: [RecordLocation] = []
        locations.reserveCapacity(pieces.count)
        for piece in pieces {
            locations.append(
                RecordLocation(
                    segment: segment.number, offset: UInt32(truncatingIfNeeded: segment.offset + buffer.count),
                    length: UInt32(truncatingIfNeeded: piece.count)))
            buffer.append(contentsOf: piece)
        }
        buffer.append(contentsOf: repeatElement(0, count: need - buffer.count))
        do throws(SystemError) {
            try segment.file.write(buffer, at: segment.offset)
            try segment.file.sync()
        } catch {
            doubt = Doubt(file: segment.file, offset: segment.offset)
            seal()
            throw StoreFailure(error)
        }
        if buffer.capacity > 8 << 20 { buffer = [] }
        segment.offset += need
        if !segment.hasNext, segment.offset > segment.capacity / 2 {
            segment.hasNext = true
            disk.prepare(segmentBytes)
        }
        current = segment
        nextBatch &+= 1
        return locations
    }

    /// Closes the current segment: valid as far as it is synced.
    private mutating func seal() {
        guard let segment = current else { return }
        previousLength = segment.offset
        nextSegment = segment.number + 1
        current = nil
    }

    private mutating func openSegment(need: Int) throws(StoreFailure) {
        // The first one is made while others wait, so it is small where the others are large.
        let usual = isFirst ? min(segmentBytes, Self.firstSegmentBytes) : segmentBytes
        let capacity = max(usual, SegmentHeader.bytes + need)
        let header = SegmentHeader(
            segment: nextSegment, epoch: epoch, firstBatch: nextBatch,
            previousLength: UInt32(truncatingIfNeeded: previousLength))
        do throws(SystemError) {
            // Under another name first: where the number is used again, its file is not without a header for a moment.
            let file = try disk.create(SegmentHeader.draftName, bytes: capacity)
            try file.write(header.encoded(salt: salt), at: 0)
            try file.sync()
            try disk.rename(SegmentHeader.draftName, to: SegmentHeader.fileName(nextSegment))
            try disk.syncDirectory()
            files[nextSegment] = file
            isFirst = false
            current = Segment(file: file, number: nextSegment, capacity: capacity, offset: SegmentHeader.bytes)
        } catch {
            // The number is used again: a file that may be there now holds no batch.
            throw StoreFailure(error)
        }
        // The header on the disk says that the batch in doubt does not count.
        doubt = nil
    }

    /// What to answer for a batch that went nowhere: a refusal only when it is certain that it will not come back.
    private mutating func refusal(_ failure: StoreFailure) throws(JournalFailure) -> JournalFailure {
        guard let uncertain = doubt else { return .refused(failure) }
        do throws(SystemError) {
            try uncertain.file.write([UInt8](repeating: 0, count: BatchHeader.bytes), at: uncertain.offset)
            try uncertain.file.sync()
        } catch {
            return .undecided(failure)
        }
        doubt = nil
        return .refused(failure)
    }
}

/// A place between two records; records of smaller positions come before it.
struct JournalPosition: Hashable, Comparable, Sendable {
    var segment: UInt32
    var offset: UInt32

    static let start = JournalPosition(segment: 0, offset: 0)

    static func < (left: Self, right: Self) -> Bool {
        left.segment != right.segment ? left.segment < right.segment : left.offset < right.offset
    }
}
