internal import FerryCore
internal import FerryIO

/// What the tables' thread is asked.
enum TablesItem: Sendable {
    /// The shards were asked for what remains of this segment.
    case retire(UInt32)
    case remains(RemainsPart)
    case forget([(cid: CID, seq: Seq)])
    case stop
}

/// The tables' thread: forgets rows and retires segments. RocksDB may stall here for as long as it likes.
struct TablesWorker {
    let tables: any Tables
    let disk: any Disk
    let files: SegmentFiles
    let options: StoreOptions
    let inbox: Mailbox<TablesItem>
    let journal: Mailbox<JournalItem>
    let sinks: [@Sendable ([StoreEvent]) -> Void]

    private var retirement: Retirement?
    private var incoming: [TablesItem] = []
    /// Rows that could not be deleted yet.
    private var forgotten: [[UInt8]] = []
    /// Rows that were deleted after the last flush. Opening the tables again would bring them back.
    private var deleted: [[UInt8]]
    /// So many writes of the tables failed one after the other.
    private var failures = 0
    private static let failuresBeforeReopening = 2
    private static let deletionsBeforeFlush = 100_000
    private static let probeName = "PROBE.new"
    private static let retryMilliseconds: Int32 = 1000

    init(
        tables: any Tables, disk: any Disk, files: SegmentFiles, options: StoreOptions, deleted: [[UInt8]],
        inbox: Mailbox<TablesItem>, journal: Mailbox<JournalItem>, sinks: [@Sendable ([StoreEvent]) -> Void]
    ) {
        self.tables = tables
        self.disk = disk
        self.files = files
        self.options = options
        self.deleted = deleted
        self.inbox = inbox
        self.journal = journal
        self.sinks = sinks
    }

    /// Works until it is told to stop.
    mutating func run() throws(SystemError) {
        let poller = try Poller()
        try poller.add(inbox.descriptor, .readable, token: 0)
        // What failed is tried again after a pause, however much is asked meanwhile.
        var nextTry = Instant.distantPast
        while true {
            let tries = options.clock() >= nextTry
            guard step(tries: tries) else { return }
            if tries, hasUnfinished { nextTry = options.clock() + .milliseconds(Int64(Self.retryMilliseconds)) }
            _ = poller.wait(milliseconds: hasUnfinished ? Self.retryMilliseconds : -1)
        }
    }

    /// Whether something failed that should be tried again.
    private var hasUnfinished: Bool {
        !forgotten.isEmpty || retirement?.isComplete(shards: sinks.count) == true
    }

    /// Does what there is to do; false when it was told to stop. `tries` false only takes note of it.
    mutating func step(tries: Bool = true) -> Bool {
        inbox.drain(into: &incoming)
        var isLast = false
        for item in incoming {
            switch item {
            case .retire(let segment): retirement = Retirement(segment: segment)
            case .remains(let part): retirement?.add(part)
            case .forget(let rows): forget(rows)
            case .stop: isLast = true
            }
        }
        incoming.removeAll(keepingCapacity: true)
        guard tries || isLast else { return true }
        do throws(StoreFailure) {
            try deleteForgotten()
            if !isLast { try retire() }
            failures = 0
        } catch {
            options.report(error)
            // A full disk passes. Where it is full no more, the engine should go on by itself; it need not be believed.
            if error.kind != .full || hasRoom { failures += 1 }
        }
        if failures >= Self.failuresBeforeReopening, !isLast { reopen() }
        return !isLast
    }

    /// The engine may have given up for good. Not while nothing can be written, when it could only be opened for reading.
    private mutating func reopen() {
        do throws(StoreFailure) {
            try probe()
            forgotten = deleted + forgotten
            deleted = []
            try tables.reopen()
            failures = 0
        } catch {
            options.report(error)
        }
    }

    private func probe() throws(StoreFailure) {
        do throws(SystemError) {
            let file = try disk.create(Self.probeName, bytes: 0)
            try file.write([UInt8](repeating: 0, count: 65_536), at: 0)
            try file.sync()
            try disk.remove(Self.probeName)
        } catch {
            throw StoreFailure(error)
        }
    }

    private mutating func forget(_ rows: [(cid: CID, seq: Seq)]) {
        for (cid, seq) in rows {
            let key = QueueRow.key(cid, seq)
            forgotten.append(key)
            retirement?.forget(key)
        }
    }

    private mutating func deleteForgotten() throws(StoreFailure) {
        guard !forgotten.isEmpty else { return }
        var batch = TableBatch(tables)
        for key in forgotten { try batch.delete(.queue, key: key) }
        try batch.finish()
        deleted += forgotten
        forgotten.removeAll(keepingCapacity: true)
        guard deleted.count > Self.deletionsBeforeFlush else { return }
        try tables.flush()
        deleted.removeAll()
    }

    /// RocksDB takes a full disk badly: rather wait here, with the segment where it is.
    private func checkRoom() throws(StoreFailure) {
        do throws(SystemError) {
            guard let free = try disk.freeBytes(), free < min(options.segmentBytes, Self.roomForFlush) else { return }
        } catch {
            throw StoreFailure(error)
        }
        throw StoreFailure(
            .full, "The disk around \(disk.folder) is too full to move old messages to the tables: make room there")
    }

    private var hasRoom: Bool {
        do throws(StoreFailure) { try checkRoom() } catch { return false }
        return true
    }

    /// What a flush of the tables may take at once, in bytes.
    private static let roomForFlush = 64 << 20

    private mutating func retire() throws(StoreFailure) {
        guard let current = retirement, current.isComplete(shards: sinks.count) else { return }
        try checkRoom()
        let lost = try current.carryOut(
            tables: tables, file: files[current.segment], requestWindow: options.requestWindow)
        deleted.removeAll()
        for reference in lost {
            options.report(
                StoreFailure(
                    .corrupted,
                    "The message \(reference.seq) of device \(reference.cid) is lost: "
                        + "\(SegmentHeader.fileName(current.segment)) is damaged"))
        }
        retirement = nil
        files[current.segment] = nil
        do throws(SystemError) {
            try disk.remove(SegmentHeader.fileName(current.segment))
            try disk.syncDirectory()
        } catch {
            // The next start removes it: the tables say that it is past.
            options.report(StoreFailure(error))
        }
        for sink in sinks { sink([.segmentRetired(current.segment)]) }
        journal.post(.retired(current.segment))
    }
}
