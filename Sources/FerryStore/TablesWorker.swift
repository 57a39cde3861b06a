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

/// The tables' thread: retires segments, and deletes rows with the next write. RocksDB may stall here as long as it likes.
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
    /// Rows of messages that have ended, to be deleted with the next write. Nobody asks for them any more, and the journal
    /// knows of their end until that write.
    private var forgotten: [MessageKey]
    /// Of the table of request ids, what is before this was deleted: a look at its beginning would step over all that.
    private var purgedRequests: [UInt8] = []
    /// So many writes of the tables failed one after the other.
    private var failures = 0
    private static let failuresBeforeReopening = 2
    /// Since when the engine is behind with merging.
    private var behindSince: Instant?
    private static let longestPutOff = Duration.seconds(60)
    /// Without a retirement so many rows wait to be deleted.
    private static let forgottenBeforeWrite = 100_000
    private static let pauseMilliseconds: Int32 = 50
    private static let probeName = "PROBE.new"
    private static let retryMilliseconds: Int32 = 1000

    init(
        tables: any Tables, disk: any Disk, files: SegmentFiles, options: StoreOptions, forgotten: [MessageKey],
        inbox: Mailbox<TablesItem>, journal: Mailbox<JournalItem>, sinks: [@Sendable ([StoreEvent]) -> Void]
    ) {
        self.tables = tables
        self.disk = disk
        self.files = files
        self.options = options
        self.forgotten = forgotten
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
            if tries, failures > 0 { nextTry = options.clock() + .milliseconds(Int64(Self.retryMilliseconds)) }
            let pause = failures > 0 ? Self.retryMilliseconds : Self.pauseMilliseconds
            _ = poller.wait(milliseconds: isDue ? pause : -1)
        }
    }

    /// Whether there is something to be written.
    private var isDue: Bool {
        forgotten.count >= Self.forgottenBeforeWrite || retirement?.isComplete(shards: sinks.count) == true
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
            // What is forgotten now is found in the journal by the next start.
            if isDue, !isLast, try write() { failures = 0 }
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
            let key = MessageKey(cid: cid, seq: seq)
            forgotten.append(key)
            retirement?.forget(key)
        }
    }

    /// False when it is put off.
    private mutating func write() throws(StoreFailure) -> Bool {
        // Others must not feel it: what was written before is put in order first. But an engine that cannot put it in order
        // must not keep segments for ever, nor that to itself.
        if tables.isBehind {
            let since = behindSince ?? options.clock()
            behindSince = since
            guard options.clock() >= since + Self.longestPutOff else { return false }
            options.report(
                StoreFailure(
                    .disk,
                    "The tables have not been merged for \(Self.longestPutOff.inMilliseconds / 1_000) seconds and are written on: "
                        + "see whether the disk has room for twice their size, and what the engine's LOG says"))
        }
        behindSince = nil
        try checkRoom()
        var write = TableWrite()
        for key in forgotten { write.delete(key) }
        guard let current = retirement, current.isComplete(shards: sinks.count) else {
            try tables.write(write)
            forgotten = []
            return true
        }
        let meta = try TablesMeta.read(from: tables) ?? TablesMeta()
        let lost = try current.gather(into: &write, over: meta, file: files[current.segment])
        let purged = try purge(before: max(meta.lastTime, current.time), &write)
        try tables.write(write)
        forgotten = []
        purgedRequests = purged
        end(current.segment, lost: lost)
        return true
    }

    /// Deletes what nobody will ask for again. Answers the first request id that stays.
    private func purge(before now: Instant, _ write: inout TableWrite) throws(StoreFailure) -> [UInt8] {
        let oldest = now + (.zero - options.requestWindow)
        var count = 0
        var reached = purgedRequests
        try tables.scan(.requests, from: purgedRequests) { key, value throws(StoreFailure) in
            reached = [UInt8](key)
            guard let row = RequestRow(key: key, value: value), row.answer.acceptedAt < oldest else { return false }
            write.delete(.requests, key: reached)
            count += 1
            return count < Self.purgeLimit
        }
        try tables.scan(.revoked) { key, value throws(StoreFailure) in
            if let expiresAt = RevokedRow.expiry(value), expiresAt <= now { write.delete(.revoked, key: [UInt8](key)) }
            return true
        }
        try BroadcastPurge.add(to: &write, from: tables, now: now)
        // A row of the same time may still come.
        let bound = RequestRow.key(since: oldest)
        return reached.lexicographicallyPrecedes(bound) ? reached : bound
    }

    /// More than a segment can bring in, so that purging keeps up.
    private static let purgeLimit = 1 << 20

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

    /// What a write of the tables may take at once, in bytes.
    private static let roomForFlush = 64 << 20

    private mutating func end(_ segment: UInt32, lost: [MessageReference]) {
        for reference in lost {
            options.report(
                StoreFailure(
                    .corrupted,
                    "The message \(reference.seq) of device \(reference.cid) is lost: "
                        + "\(SegmentHeader.fileName(segment)) is damaged"))
        }
        retirement = nil
        files[segment] = nil
        do throws(SystemError) {
            try disk.remove(SegmentHeader.fileName(segment))
            try disk.syncDirectory()
        } catch {
            // The next start removes it: the tables say that it is past.
            options.report(StoreFailure(error))
        }
        for sink in sinks { sink([.segmentRetired(segment)]) }
        journal.post(.retired(segment))
    }
}
