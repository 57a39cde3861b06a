internal import FerryCore
internal import FerryIO

/// Reads the journal of a folder from its first segment to its last, gives every record to a visitor, and leaves the
/// folder so that the journal can go on in a new segment. Refuses what is damaged.
struct JournalRecovery {
    let folder: JournalFolder
    let format: FolderFormat
    let files: SegmentFiles
    let progress: @Sendable (_ done: Int, _ all: Int) -> Void
    private var lastTime = Instant.distantPast

    /// Sees each record once, in order: where it is and its body.
    typealias Visitor = (JournalPosition, UnsafeRawBufferPointer) throws(StoreFailure) -> Void

    init(
        disk: any Disk, format: FolderFormat, files: SegmentFiles,
        progress: @escaping @Sendable (Int, Int) -> Void = { _, _ in }
    ) {
        folder = JournalFolder(disk: disk, salt: format.salt)
        self.format = format
        self.files = files
        self.progress = progress
    }

    /// `first` is the first segment whose effects the tables lack. Answers where the journal goes on.
    mutating func run(from first: UInt32, _ visit: Visitor) throws(StoreFailure) -> Journal.Position {
        var found = try folder.find(from: first)
        guard !found.isEmpty else { throw folder.missing(first) }
        var end = Journal.Position(nextSegment: first, nextBatch: 1, previousLength: 0, lastTime: .distantPast)
        if let unused = try takeUnused(&found) { end = unused }
        for index in found.indices {
            let next = index + 1 < found.count ? found[index + 1] : nil
            end = try replay(found[index], next: next, isFirst: index == 0, visit)
            progress(index + 1, found.count)
        }
        end.lastTime = lastTime
        return end
    }

    /// Takes off a last segment that no batch was written to, and answers its place: its number is used again.
    private func takeUnused(_ found: inout [JournalFolder.Found]) throws(StoreFailure) -> Journal.Position? {
        guard let last = found.last, let file = last.file else { return nil }
        let bytes = try folder.read(file, limit: nil)
        guard bytes.dropFirst(SegmentHeader.bytes).allSatisfy({ $0 == 0 }) else { return nil }
        // A header that was not synced when the machine stopped; the segment before it tells the same. The first of all has
        // none before it: nothing was ever written.
        if last.header == nil, found.count == 1, last.number != 1 { throw folder.damaged(last.number, at: 0) }
        found.removeLast()
        // Its room is free for the file that takes its place.
        do throws(SystemError) {
            try file.resize(to: last.header == nil ? 0 : SegmentHeader.bytes)
        } catch {
            throw StoreFailure(error)
        }
        guard let header = last.header else { return nil }
        return Journal.Position(
            nextSegment: last.number, nextBatch: header.firstBatch, previousLength: Int(header.previousLength),
            lastTime: .distantPast)
    }

    private mutating func replay(
        _ segment: JournalFolder.Found, next: JournalFolder.Found?, isFirst: Bool, _ visit: Visitor
    ) throws(StoreFailure) -> Journal.Position {
        let number = segment.number
        guard let file = segment.file else { throw folder.missing(number) }
        guard let header = segment.header else { throw folder.damaged(number, at: 0) }
        guard (header.epoch == format.epoch) == (number >= format.since) else {
            throw StoreFailure(
                .corrupted,
                "The file \(folder.path(number)) comes from another life of this folder: restore the whole folder "
                    + "from one backup")
        }
        // The next one's header tells how far this one counts. Without it, there is no judging this one.
        if let next, next.header == nil {
            throw next.file == nil ? folder.missing(next.number) : folder.damaged(next.number, at: 0)
        }
        let limit = next?.header.map { Int($0.previousLength) }
        let bytes = try folder.read(file, limit: limit)
        var end = Journal.Position(
            nextSegment: number + 1, nextBatch: header.firstBatch, previousLength: 0, lastTime: lastTime)
        try bytes.lend { buffer throws(StoreFailure) in
            var scan = SegmentScan(buffer, salt: format.salt, segment: number, firstBatch: header.firstBatch)
            let lastBatch = try walk(&scan, isLast: next == nil, visit)
            if let limit, scan.offset != limit { throw folder.damaged(number, at: scan.offset) }
            end.nextBatch = scan.number
            end.previousLength = scan.offset
            if next == nil { try settleTail(file, buffer, from: lastBatch, to: scan.offset) }
        }
        if let following = next?.header, following.firstBatch != end.nextBatch {
            throw folder.damaged(following.segment, at: 0)
        }
        files[number] = file
        return end
    }

    /// Answers where the last batch starts.
    private mutating func walk(
        _ scan: inout SegmentScan, isLast: Bool, _ visit: Visitor
    ) throws(StoreFailure) -> Int {
        var lastBatch = scan.offset
        while true {
            switch scan.next() {
            case .batch(let header, let start, let records):
                lastBatch = start
                lastTime = max(lastTime, header.time)
                if header.kind == .records { try visitAll(scan, records, visit) }
            case .end:
                return lastBatch
            case .broken(.torn) where isLast:
                return lastBatch
            case .broken:
                throw folder.damaged(scan.segment, at: scan.offset)
            }
        }
    }

    private func visitAll(_ scan: SegmentScan, _ records: Range<Int>, _ visit: Visitor) throws(StoreFailure) {
        var offset = records.lowerBound
        while offset < records.upperBound {
            let rest = UnsafeRawBufferPointer(rebasing: scan.bytes[offset..<records.upperBound])
            guard let count = RecordCodec.bodyCount(of: rest) else { throw folder.damaged(scan.segment, at: offset) }
            let start = RecordCodec.headerBytes
            let body = UnsafeRawBufferPointer(rebasing: rest[start..<start + count])
            try visit(JournalPosition(segment: scan.segment, offset: UInt32(truncatingIfNeeded: offset)), body)
            offset += start + count
        }
    }

    /// Makes sure that what was read is what a power cut would leave, and that what is torn is never read again.
    private func settleTail(
        _ file: any DiskFile, _ bytes: UnsafeRawBufferPointer, from start: Int, to end: Int
    ) throws(StoreFailure) {
        do throws(SystemError) {
            // The last batch may be in the page cache alone: the process was killed before its sync, or the sync failed.
            // Written again, it is on the disk before anybody acts on it.
            if start < end { try file.write(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), at: start) }
            try file.resize(to: end)
            try file.sync()
        } catch {
            throw StoreFailure(error)
        }
    }
}

extension [UInt8] {
    /// `withUnsafeBytes` with the error's type kept.
    func lend<Failure: Error>(_ body: (UnsafeRawBufferPointer) throws(Failure) -> Void) throws(Failure) {
        var failure: Failure?
        withUnsafeBytes { buffer in
            do throws(Failure) { try body(buffer) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
