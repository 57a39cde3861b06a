package import FerryCore

/// What is kept of a lane beside its receipts: one row, written together with whatever it tells of.
package struct ReceiptLaneRecord: Hashable, Sendable {
    /// The number of the next receipt.
    package var next: UInt64 = 1
    /// There is no receipt below this one: where to begin to read.
    package var first: UInt64 = 1
    /// Receipts that wait, and the bytes of their rows.
    package var count: UInt64 = 0
    package var bytes: UInt64 = 0
    /// Receipts that were given up since the lane began: too old, or too many.
    package var dropped: UInt64 = 0
    /// Failures of the endpoint in a row, and when it is asked again.
    package var failures: UInt8 = 0
    package var notBefore = Instant.distantPast

    package init() {}

    private static let version: UInt8 = 1

    /// The value of a control row.
    package var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.version)
        for number in [next, first, count, bytes, dropped] { writer.varint(number) }
        writer.byte(failures)
        writer.uint64(UInt64(bitPattern: notBefore.milliseconds))
        return writer.bytes
    }

    /// nil for bytes that this version did not write.
    package init?(_ bytes: [UInt8]) {
        guard let record = bytes.withUnsafeBytes({ Self.read(ByteReader($0)) }) else { return nil }
        self = record
    }

    private static func read(_ given: ByteReader) -> ReceiptLaneRecord? {
        var reader = given
        var record = ReceiptLaneRecord()
        guard reader.byte() == version, let next = reader.varint(), let first = reader.varint(),
            let count = reader.varint(), let bytes = reader.varint(), let dropped = reader.varint(),
            let failures = reader.byte(), let notBefore = reader.uint64(), reader.isAtEnd, first >= 1, next >= first
        else { return nil }
        record.next = next
        record.first = first
        record.count = count
        record.bytes = bytes
        record.dropped = dropped
        record.failures = failures
        record.notBefore = Instant(milliseconds: Int64(bitPattern: notBefore))
        return record
    }
}

/// Receipts of one app in one partition, from the disk to the channel: what is numbered, what waits in memory, what is to be
/// read, what is under way, what is given up. Memory is bounded by `ReceiptPolicy.readyBytes` and one batch; all others are on
/// disk alone.
package struct ReceiptLane: Hashable, Sendable {
    package private(set) var record: ReceiptLaneRecord
    /// On disk, and next to go out, in order.
    private var ready: [ReceiptEntry] = []
    private var readyBytes = 0
    /// Under way to the endpoint.
    private var outgoing: [ReceiptEntry] = []
    private var outgoingBytes = 0
    /// The highest number that is on disk.
    private var synced: UInt64
    /// All receipts on disk up to this one are in memory or gone.
    private var reach: UInt64
    private var isReading = false
    /// Numbered and not known to be on disk.
    private var pending = 0

    package init() {
        record = ReceiptLaneRecord()
        synced = 0
        reach = 0
    }

    /// A lane that was found on disk. Its record may be older than the last of its receipts, so it is read to its end once, and
    /// its new numbers begin far behind all that may be there.
    package init(restoring found: ReceiptLaneRecord) {
        record = found
        record.next = (found.next >> Self.numbersPerLife + 1) << Self.numbersPerLife
        synced = record.next - 1
        reach = found.first - 1
    }

    /// In bits.
    private static let numbersPerLife = 32

    /// Nothing waits, on disk or in memory, and nothing is under way.
    package var isEmpty: Bool { ready.isEmpty && outgoing.isEmpty && reach == synced && pending == 0 && !isReading }
    /// Bytes in memory.
    package var memoryBytes: Int { readyBytes + outgoingBytes }

    // MARK: - In

    /// Numbers new receipts, oldest first. `limit` is in bytes; where the lane is full, the oldest that are in memory and not
    /// under way go for them, and where there are none the new ones are lost. Answers what is to be written, and the numbers
    /// of rows that go. The record changes with it.
    package mutating func add(_ rows: [[UInt8]], limit: UInt64) -> (added: [ReceiptEntry], dropped: [UInt64]) {
        var added: [ReceiptEntry] = []
        var dropped: [UInt64] = []
        for row in rows {
            while record.bytes + UInt64(row.count) > limit, !ready.isEmpty { dropped.append(dropOldest()) }
            guard record.bytes + UInt64(row.count) <= limit else {
                record.dropped += 1
                continue
            }
            added.append(ReceiptEntry(number: record.next, row: row))
            record.next += 1
            record.count += 1
            record.bytes += UInt64(row.count)
        }
        pending += added.count
        settle()
        return (added, dropped)
    }

    private mutating func dropOldest() -> UInt64 {
        let entry = ready.removeFirst()
        readyBytes -= entry.row.count
        record.dropped += 1
        forget(entry)
        return entry.number
    }

    /// They are on disk.
    package mutating func synced(_ entries: [ReceiptEntry]) {
        pending -= entries.count
        guard let last = entries.last else { return }
        // In memory while there is room and nothing on disk is before them.
        let isNext = reach == synced && !isReading
        synced = max(synced, last.number)
        guard isNext else { return }
        for entry in entries {
            guard readyBytes + entry.row.count <= ReceiptPolicy.readyBytes else { return }
            take(entry)
            reach = max(reach, entry.number)
        }
    }

    /// They are not on disk, and their numbers stay empty.
    package mutating func refused(_ entries: [ReceiptEntry]) {
        pending -= entries.count
        for entry in entries { forget(entry) }
        settle()
    }

    /// So many will never be on disk.
    package mutating func lost(_ count: Int) { record.dropped += UInt64(count) }

    private mutating func take(_ entry: ReceiptEntry) {
        ready.append(entry)
        readyBytes += entry.row.count
    }

    /// It waits no more.
    private mutating func forget(_ entry: ReceiptEntry) {
        record.count -= min(1, record.count)
        record.bytes -= min(UInt64(entry.row.count), record.bytes)
    }

    // MARK: - From the disk

    /// After which number to read, when that is to be done now: `read` is to be told what was there.
    package mutating func startReading() -> UInt64? {
        guard !isReading, ready.isEmpty, reach < synced else { return nil }
        isReading = true
        return reach
    }

    /// What is on disk behind the number that `startReading` gave and up to `seen`, in order; nil: up to the last that is there
    /// by now. What memory has no room for is read again later.
    package mutating func read(_ entries: [ReceiptEntry], upTo seen: UInt64?) {
        isReading = false
        for entry in entries where entry.number > reach {
            guard ready.isEmpty || readyBytes + entry.row.count <= ReceiptPolicy.readBytes else {
                synced = max(synced, entry.number)
                return settle()
            }
            take(entry)
            reach = entry.number
        }
        synced = max(synced, reach)
        reach = max(reach, min(seen ?? synced, synced))
        settle()
    }

    // MARK: - Out

    /// The next batch, when none is under way and something is at hand. Receipts older than `oldest` do not go out any more:
    /// `dropped` are the numbers of their rows, and where there are any, the record has changed.
    package mutating func nextBatch(oldest: Instant) -> (entries: [ReceiptEntry], dropped: [UInt64]) {
        guard outgoing.isEmpty, !ready.isEmpty else { return ([], []) }
        // What cannot be read is for nobody.
        let isTooOld = { (entry: ReceiptEntry) in Receipt(entry.row).map { $0.at < oldest } ?? true }
        let dropped = takeFirst(ready.prefix { isTooOld($0) }.count)
        for entry in dropped { forget(entry) }
        record.dropped += UInt64(dropped.count)
        var bytes = 0
        let count = ready.prefix(ReceiptPolicy.batchLines).prefix { entry in
            bytes += entry.row.count
            return bytes <= ReceiptPolicy.batchBytes
        }.count
        let before = readyBytes
        outgoing = takeFirst(max(count, min(1, ready.count)))
        outgoingBytes = before - readyBytes
        settle()
        return (outgoing, dropped.map(\.number))
    }

    private mutating func takeFirst(_ count: Int) -> [ReceiptEntry] {
        let taken = Array(ready.prefix(count))
        ready.removeFirst(count)
        readyBytes -= taken.reduce(0) { $0 + $1.row.count }
        return taken
    }

    /// The batch under way has come to its end: its rows go. Answers their numbers.
    package mutating func finished(_ progress: ReceiptProgress) -> [UInt64] {
        let numbers = outgoing.map(\.number)
        for entry in outgoing { forget(entry) }
        if progress == .tooOld { record.dropped += UInt64(outgoing.count) } else { record.failures = 0 }
        outgoing = []
        outgoingBytes = 0
        settle()
        return numbers
    }

    package mutating func delayed(failures: UInt8, until: Instant) {
        record.failures = failures
        record.notBefore = until
    }

    /// Keeps `first` at the oldest receipt that there may be.
    private mutating func settle() {
        record.first = min(outgoing.first?.number ?? .max, ready.first?.number ?? .max, reach + 1)
        // Numbers of what the disk refused are empty; the sums are made right where nothing is left to add up.
        if isEmpty {
            record.count = 0
            record.bytes = 0
        }
    }
}
