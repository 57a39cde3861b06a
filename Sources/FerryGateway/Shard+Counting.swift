internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// What reports are made of, counted where each thing is written down: the rows go to the disk in the batch with the records that
/// they count, so that the one never tells of what the other does not know.
extension Shard {
    /// The book knows the app with this number in the device table.
    private mutating func begin(_ number: Int) {
        while book.appCount <= number { book.begin(devices.app(numbered: book.appCount)) }
    }

    mutating func countAccepted(_ number: Int, _ count: Int64 = 1) {
        if number >= book.appCount { begin(number) }
        book.accept(number, count: count)
    }

    mutating func countEnd(_ reason: EndReason, _ device: Int, count: Int64 = 1) {
        let number = devices.appNumber(of: device)
        if number >= book.appCount { begin(number) }
        book.end(number, reason, count: count)
    }

    /// A drop that is told in a gap is counted with its record, which may wait, or be refused and come again.
    mutating func countDrop(_ effect: CommitEffect, _ count: Int64) {
        guard case .dropRecorded(let cid, .settled(_, _, let state, _), _) = effect,
            let device = devices.index(of: cid)
        else { return }
        let number = devices.appNumber(of: device)
        begin(number)
        book.end(number, state == .overflowed ? .countCap : .ttlRanOut, count: count)
    }

    // MARK: - Pushes to all

    /// Its places are on their way to the disk. Answers for how many devices it was counted.
    mutating func countPlaces(_ broadcast: AcceptedBroadcast, _ seqs: [Seq]) -> Int {
        let number = broadcastLine(of: broadcast.app)
        let targets = broadcasts.targets(number, seqs) + comingTargets(broadcast.app, seqs)
        begin(number)
        book.accept(TaskTerms(broadcast), number, count: Int64(targets))
        return targets
    }

    /// Devices whose registration or removal goes to the disk before what is written now.
    private func comingTargets(_ app: AppID, _ seqs: [Seq]) -> Int {
        var count = 0
        func look(_ effects: [(after: Int, effect: CommitEffect)]) {
            for (_, effect) in effects {
                switch effect {
                case .deviceRegistered(let registration) where registration.app == app:
                    if seqs[broadcasts.local(Partition(of: registration.cid))] > .zero { count += 1 }
                case .deviceRemoved(let removal) where removal.app == app:
                    if seqs[broadcasts.local(Partition(of: removal.cid))] > .zero { count -= 1 }
                default: continue
                }
            }
        }
        for batch in unsynced[unsyncedHead...] { look(batch.effects) }
        look(journal.effects)
        return count
    }

    /// Its places are on disk, and are for so many devices; or are not, for none.
    mutating func countPlaces(_ pending: PendingPlaces, targets: Int) {
        guard targets != pending.counted else { return }
        let broadcast = pending.wanted.content.broadcast
        let number = broadcastLine(of: broadcast.app)
        begin(number)
        book.accept(TaskTerms(broadcast), number, count: Int64(targets - pending.counted))
    }

    mutating func countSharedEnd(_ message: KeptMessage, _ reason: EndReason, _ device: Int) {
        let number = devices.appNumber(of: device)
        if isCountedWithRemoval(message.seq, reason, device) { return }
        guard let index = broadcasts.index(number, ordinal: message.broadcastOrdinal) else { return }
        countEnds(ofTask: broadcasts.lines[number].placed[index].broadcast.taskID, number, reason, 1)
    }

    /// Below zero: they are taken back.
    mutating func countEnds(ofTask task: TaskID, _ number: Int, _ reason: EndReason, _ count: Int) {
        begin(number)
        book.end(task.value, number, reason, count: Int64(count))
    }

    // MARK: - Messages of tasks with stored content

    mutating func countReference(_ content: TaskContent, _ number: Int, _ count: Int64) {
        begin(number)
        let terms = TaskTerms(
            task: content.task.taskID, acceptedAt: content.task.createdAt, group: content.traits.groupName ?? "")
        book.accept(terms, number, count: count)
    }

    /// For its task; for the day it is counted as any other.
    /// `reason` nil: it is counted.
    mutating func countReferenceEnd(_ message: KeptMessage, _ reason: EndReason?) {
        if let task = taskSlots.release(message.taskSlot), let reason { book.end(task, reason) }
    }

    // MARK: - Wake-ups and devices

    /// `answer` nil: it is asked for.
    mutating func countStub(_ cid: CID, answer: StubOutcome?) {
        guard let device = devices.index(of: cid) else { return }
        let number = devices.appNumber(of: device)
        begin(number)
        switch answer {
        case nil: book.stubRequested(number)
        case .accepted: book.stubAnswered(number, isAccepted: true)
        case .refused: book.stubAnswered(number, isAccepted: false)
        case .noToken: return
        }
    }

    mutating func countRegistration(_ device: Int) {
        let number = devices.appNumber(of: device)
        begin(number)
        let count = environment.appCensus.change(devices.app(of: device)) { $0.registered += 1 }
        book.register(number, total: count.registered)
        book.come(number, before: nil)
    }

    /// It is about to be gone.
    mutating func countRemoval(_ device: Int) {
        _ = environment.appCensus.change(devices.app(of: device)) { $0.registered -= 1 }
    }

    /// It is about to be noted as seen.
    mutating func countComing(_ device: Int) {
        let number = devices.appNumber(of: device)
        begin(number)
        book.come(number, before: devices[device].seenAt)
    }

    mutating func countOnline(_ device: Int, isOnline: Bool) {
        let count = environment.appCensus.change(devices.app(of: device)) { $0.online += isOnline ? 1 : -1 }
        let number = devices.appNumber(of: device)
        begin(number)
        if isOnline { book.noteOnline(number, count.online) }
    }

    // MARK: - Rows

    /// What has changed goes along with whatever is written now; alone only after a while, since nothing is lost without it that
    /// a start could not count again.
    mutating func appendReports() {
        guard book.hasChanges || !reportReplies.isEmpty else { return }
        guard !journal.isEmpty || writesReportsAlone else { return }
        if !book.hasChanges { book.touch(0) }
        let rows = book.takeRows()
        let replies = reportReplies
        reportReplies = []
        put(rows.map { ControlRow($0) }, then: .counted(rows, replies))
    }

    /// Rows are to be written even if nothing else is. Acks that they count go with them.
    var writesReportsAlone: Bool {
        !reportReplies.isEmpty || (book.hasChanges && (now >= book.rowsDue || isDraining))
    }

    mutating func countsRefused(_ rows: [ReportRow], _ replies: [ReportReply]) {
        book.refused(rows)
        for reply in replies { send(ReportReply(origin: reply.origin, part: nil)) }
    }

    /// Every ten minutes, for the apps that this shard owns.
    mutating func drawCurve() {
        guard now >= curve.next else { return }
        let apps = environment.configuration.apps.all.map(\.id)
            .filter { Partition(of: $0).owner(among: environment.shards) == index }
        let census = environment.appCensus
        let rows = curve.draw(apps, now: now) { census.count($0).online }
        guard !rows.isEmpty else { return }
        put(rows.map { ControlRow(.curve, Partition(of: $0.app), key: $0.key, value: $0.value) })
    }

    // MARK: - At the start

    /// Before anything else is restored, since that may count.
    mutating func restoreReports(_ recovery: ShardRecovery) {
        for (row, _) in recovery.controlRows {
            guard let value = row.value else { continue }
            if row.table == .counters { book.restore(ReportRow(row)) }
            if row.table == .curve { curve.restore(key: row.key, value: value) }
        }
        var kept: [Int64] = []
        func keep(_ number: Int, _ count: Int) {
            while kept.count <= number { kept.append(0) }
            kept[number] += Int64(count)
        }
        var waiting: [Identifier128: Int64] = [:]
        for device in recovery.devices {
            keep(devices.number(of: device.record.app), device.kept.count)
            for message in device.kept {
                if message.isReference, let task = message.task { waiting[task, default: 0] += 1 }
            }
        }
        for found in recovery.broadcasts {
            keep(devices.number(of: found.broadcast.app), found.waiting)
            waiting[found.broadcast.taskID.value, default: 0] += Int64(found.waiting)
            book.restore(TaskTerms(found.broadcast), of: found.broadcast.app)
        }
        begin(devices.appCount - 1)
        book.finishRestoring(kept: kept, waiting: waiting, corrections: recovery.reportCorrections)
        countRestoredDevices(recovery)
    }

    private mutating func countRestoredDevices(_ recovery: ShardRecovery) {
        for (app, counts) in recovery.registered {
            let own = counts.indices.reduce(0) {
                Partition(index: $1).owner(among: environment.shards) == index ? $0 + Int(counts[$1]) : $0
            }
            let number = devices.number(of: app)
            begin(number)
            let count = environment.appCensus.change(app) { $0.registered += own }
            if own > 0 { book.noteRegistered(number, total: count.registered) }
        }
    }

    /// What the book says of `tally.kept`.
    var reportedKept: Int { (0..<book.appCount).reduce(0) { $0 + Int(clamping: book.kept($1)) } }

    /// Of all apps and days.
    var reportedSum: ReportCounters {
        (0..<book.appCount).reduce(into: ReportCounters()) { $0 += book.sum($1) }
    }
}

extension ReportAudit {
    /// Of all that was found.
    init(_ recovery: Recovery) {
        self.init()
        for (row, _) in recovery.controlRows where row.table == .counters { take(ReportRow(row)) }
        for device in recovery.devices {
            keep(device.record.app, device.kept.count)
            for message in device.kept {
                if message.isReference, let task = message.task { keep(task) }
            }
        }
        for found in recovery.broadcasts {
            let count = found.waiting.reduce(0) { $0 + Int($1) }
            let ending: EndReason =
                found.stopSegment != nil ? .taskStopped : found.broadcast.isLiveOnly ? .noLiveSession : .ttlRanOut
            keep(found.broadcast.app, TaskTerms(found.broadcast), count, ending: ending)
        }
    }
}

extension ReportRow {
    init(_ row: ControlRow) {
        self.init(writer: row.partition.index, key: row.key, value: row.value)
    }
}

extension ControlRow {
    fileprivate init(_ row: ReportRow) {
        self.init(.counters, Partition(index: row.writer), key: row.key, value: row.value)
    }
}

extension TaskTerms {
    init(_ broadcast: AcceptedBroadcast) {
        self.init(task: broadcast.taskID, acceptedAt: broadcast.acceptedAt, group: broadcast.traits.groupName ?? "")
    }
}
