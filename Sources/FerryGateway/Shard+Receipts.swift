internal import FerryCore
internal import FerryIO
internal import FerryReceipts
internal import FerryRouting
internal import FerryStore

/// Receipts: noted where something becomes true, written with the record that says so, brought to the channel when they are on
/// disk, taken away when their endpoint has answered.
extension Shard {
    // MARK: - What happens

    /// A message is kept from now on.
    mutating func nameForReceipts(_ seq: Seq, _ name: MessageName, isShared: Bool, _ device: Int) {
        guard receiptDesk.wantsReceipts(devices.appNumber(of: device)) else { return }
        receiptDesk.name(ReceiptDesk.Key(cid: devices[device].cid, seq: seq), name, isShared: isShared)
    }

    /// The same, for what was kept before this process began. `callbacks`: of tasks with stored content.
    mutating func nameForReceipts(
        _ found: RecoveredDevice, _ device: Int, _ callbacks: [Identifier128: [UInt8]]
    ) {
        guard receiptDesk.wantsReceipts(devices.appNumber(of: device)), found.names.count == found.kept.count else {
            return
        }
        for (message, name) in zip(found.kept, found.names) {
            let own = name.callback.map { Array($0.utf8) }
            receiptDesk.name(
                ReceiptDesk.Key(cid: found.record.cid, seq: message.seq),
                MessageName(
                    taskID: name.taskID, messageID: name.messageID,
                    callback: own ?? message.task.flatMap { callbacks[$0] } ?? []),
                isShared: own == nil)
        }
    }

    /// A message of the device's own has ended.
    mutating func noteReceipt(_ seq: Seq, _ reason: EndReason, _ device: Int) {
        let cid = devices[device].cid
        guard let name = receiptDesk.takeName(ReceiptDesk.Key(cid: cid, seq: seq)),
            reason != .deviceRemoved || !receiptDesk.hasTold(cid, seq)
        else { return }
        receiptDesk.note(
            .ended(EndedMessage(cid: cid, name: name, reason: reason, at: now)), app: devices.appNumber(of: device))
    }

    /// A push to all has ended at the device.
    mutating func noteReceipt(_ placed: PlacedBroadcast, _ reason: EndReason, _ device: Int) {
        let app = devices.appNumber(of: device)
        guard receiptDesk.wantsReceipts(app) else { return }
        let name = MessageName(
            taskID: placed.broadcast.taskID, messageID: placed.broadcast.messageID,
            callback: Array((placed.broadcast.traits.callback ?? "").utf8))
        receiptDesk.note(
            .ended(EndedMessage(cid: devices[device].cid, name: name, reason: reason, at: now)), app: app)
    }

    /// The device is about to be removed, by a record of this turn: with that all ends that is kept for it, so the receipts go
    /// into the same batch. Nothing of it is on its way to the disk at this moment, and nothing new is taken for it.
    mutating func noteReceiptsOfRemoval(_ device: Int) {
        let (cid, app) = (devices[device].cid, devices.appNumber(of: device))
        guard receiptDesk.wantsReceipts(app) else { return }
        receiptDesk.mustTellAll = true
        var told: Set<Seq> = []
        for index in 0..<devices[device].machine.log.count {
            let message = devices[device].machine.log[index]
            if message.isShared {
                guard let place = broadcasts.index(app, ordinal: message.broadcastOrdinal) else { continue }
                noteReceipt(broadcasts.lines[app].placed[place], .deviceRemoved, device)
            } else {
                guard let name = receiptDesk.name(of: ReceiptDesk.Key(cid: cid, seq: message.seq)) else { continue }
                receiptDesk.note(
                    .ended(EndedMessage(cid: cid, name: name, reason: .deviceRemoved, at: now)), app: app)
            }
            told.insert(message.seq)
        }
        receiptDesk.beginRemoval(of: cid, telling: told)
    }

    /// The device came, or counts as gone.
    mutating func notePresence(_ device: Int, isOnline: Bool) {
        let app = devices.appNumber(of: device)
        guard receiptDesk.wantsPresence(app) else { return }
        let session = devices[device].machine.presence.session?.rawValue ?? 0
        receiptDesk.note(
            .presence(PresenceChange(cid: devices[device].cid, isOnline: isOnline, at: now, session: session)),
            app: app)
    }

    // MARK: - To the disk

    /// What one record holds at most.
    private static var rowsPerRecord: Int { 1_024 }

    /// Everything that was noted goes with the records of this turn.
    mutating func putReceipts() {
        guard receiptDesk.hasFresh else { return }
        for (app, rows) in receiptDesk.takeFresh().sorted(by: { $0.key < $1.key }) {
            let lane = ReceiptLaneName(app: devices.app(number: app), partition: Partition(index: index))
            putInPieces(rows, in: lane)
            pump(lane)
        }
    }

    private mutating func putInPieces(_ rows: [[UInt8]], in lane: ReceiptLaneName) {
        for first in stride(from: 0, to: rows.count, by: Self.rowsPerRecord) {
            put(Array(rows[first..<min(rows.count, first + Self.rowsPerRecord)]), in: lane)
        }
    }

    /// Bytes of one lane.
    private var receiptLimit: UInt64 { UInt64(environment.configuration.receipts.bytes / environment.shards) }

    private mutating func put(_ rows: [[UInt8]], in name: ReceiptLaneName) {
        var lane = receiptDesk.lanes[name] ?? ReceiptLane()
        let before = lane.record.dropped
        let (added, dropped) = lane.add(rows, limit: receiptLimit)
        receiptDesk.lanes[name] = lane
        if lane.record.dropped > before { warnOfDrops(name) }
        take(away: dropped, from: name)
        let values = added.map { ControlRow(.receipt, name.partition, key: name.key($0.number), value: $0.row) }
        put(values + [record(of: name)], then: .receiptsAdded(name, added))
    }

    private mutating func take(away numbers: [UInt64], from name: ReceiptLaneName) {
        guard !numbers.isEmpty else { return }
        let rows = numbers.map { ControlRow(.receipt, name.partition, key: name.key($0), value: nil) }
        put(rows + [record(of: name)], then: .receiptsGone(name, numbers))
    }

    private func record(of name: ReceiptLaneName) -> ControlRow {
        let record = receiptDesk.lanes[name]?.record ?? ReceiptLaneRecord()
        return ControlRow(.receiptLane, name.partition, key: name.recordKey, value: record.encoded)
    }

    private func warnOfDrops(_ name: ReceiptLaneName) {
        EventLog.write(
            .warning, "receipts are dropped: too many wait for their endpoint, or for too long",
            ["app": name.app.text, "sinceBeginning": String(receiptDesk.lanes[name]?.record.dropped ?? 0)])
    }

    mutating func receiptsAdded(_ name: ReceiptLaneName, _ entries: [ReceiptEntry]) {
        receiptDesk.lanes[name]?.synced(entries)
        pump(name)
    }

    /// Not on disk: they are tried again, under new numbers.
    mutating func receiptsRefused(_ name: ReceiptLaneName, _ entries: [ReceiptEntry]) {
        receiptDesk.lanes[name]?.refused(entries)
        // A removal that was refused with them did not happen.
        let rows = entries.map(\.row).filter { !receiptDesk.isVoid($0) }
        guard !rows.isEmpty else { return }
        let lost = receiptDesk.keepForLater(rows, of: name)
        if lost > 0 {
            receiptDesk.lanes[name]?.lost(lost)
            warnOfDrops(name)
        }
        deferredUntil = min(deferredUntil, now + .seconds(1))
    }

    mutating func receiptsStay(_ name: ReceiptLaneName, _ numbers: [UInt64]) {
        receiptDesk.goneAgain.append((name, numbers))
        deferredUntil = min(deferredUntil, now + .seconds(1))
    }

    /// What the disk refused.
    mutating func putReceiptsAgain() {
        receiptDesk.mustTellAll = false
        receiptDesk.rows.tellAgain()
        let (again, gone) = (receiptDesk.takeAgain(), receiptDesk.goneAgain)
        receiptDesk.goneAgain = []
        for (name, rows) in again { putInPieces(rows, in: name) }
        for (name, numbers) in gone { take(away: numbers, from: name) }
    }

    /// Without its row in the tables a message has ended, whatever the journal says. So the row stays until the receipt is on disk,
    /// which is on its way there, or will be.
    mutating func holdForgotten() {
        receiptDesk.rows.hold(forgotten, until: lastTicket)
        forgotten = receiptDesk.rows.take(before: unsyncedHead < unsynced.count ? unsynced[unsyncedHead].ticket : .max)
    }

    // MARK: - With a retirement

    /// Rows of devices that go to the tables tell of ends, also of those whose records the disk refused. So the receipts of these
    /// go there as well, in the same piece: a copy, since the journal may take them first.
    mutating func carryReceipts() -> [ControlRow] {
        var rows: [ControlRow] = []
        for (lane, waiting) in receiptDesk.again {
            let name = carryingLane(lane.app)
            var lane = receiptDesk.lanes[name] ?? ReceiptLane()
            let (entries, dropped) = lane.add(waiting, limit: receiptLimit)
            receiptDesk.lanes[name] = lane
            take(away: dropped, from: name)
            rows += entries.map { ControlRow(.receipt, name.partition, key: name.key($0.number), value: $0.row) }
            rows.append(record(of: name))
            retirement?.receipts.append((name, entries))
        }
        return rows
    }

    /// A lane of their own, so that its numbers come to the disk in their order: the journal is quicker than the tables.
    private func carryingLane(_ app: AppID) -> ReceiptLaneName {
        let other = index + environment.shards
        return ReceiptLaneName(app: app, partition: Partition(index: other < Limits.partitions ? other : index))
    }

    /// A lane that was found on disk.
    mutating func restoreLane(_ row: ControlRow) {
        guard let app = AppID(String(decoding: row.key, as: UTF8.self)),
            let record = row.value.flatMap({ ReceiptLaneRecord($0) })
        else { return EventLog.write(.error, "a lane of receipts cannot be read") }
        receiptDesk.lanes[ReceiptLaneName(app: app, partition: row.partition)] = ReceiptLane(
            restoring: record)
        receiptDesk.unpumped.append(ReceiptLaneName(app: app, partition: row.partition))
    }

    /// Acks that wait a little take their receipts along.
    var hasReceiptsToDo: Bool {
        (receiptDesk.hasFresh && ((acknowledging.isEmpty && refusedEnds.isEmpty) || !holdsAcks))
            || !receiptDesk.unpumped.isEmpty
    }

    /// Once, when the shard can ask the store.
    mutating func pumpRestoredLanes() {
        guard !receiptDesk.unpumped.isEmpty else { return }
        let lanes = receiptDesk.unpumped
        receiptDesk.unpumped = []
        for lane in lanes { pump(lane) }
    }

    // MARK: - To the channel

    private static var rowsPerRead: Int { 4_096 }

    /// Does for a lane what can be done for it.
    private mutating func pump(_ name: ReceiptLaneName) {
        guard let channel = environment.receipts, var lane = receiptDesk.lanes[name] else { return }
        let oldest = now.advanced(byMilliseconds: -environment.configuration.receipts.age.inMilliseconds)
        let (entries, dropped) = lane.nextBatch(oldest: oldest)
        let after = lane.startReading()
        receiptDesk.lanes[name] = lane
        if !dropped.isEmpty {
            warnOfDrops(name)
            take(away: dropped, from: name)
        }
        if !entries.isEmpty {
            let mailbox = environment.mailboxes[index]
            channel.offer(
                ReceiptBatch(
                    lane: name, entries: entries, failures: lane.record.failures, notBefore: lane.record.notBefore)
            ) { progress in
                mailbox.post(.receiptNews(ReceiptNews(lane: name, progress: progress)))
            }
        }
        guard let after else { return }
        readControl(
            ControlQuestion(
                table: .receipt, partition: name.partition, after: name.key(after), limit: Self.rowsPerRead
            ) { shard, rows, next in shard.receiptsRead(name, rows, next: next) })
    }

    private mutating func receiptsRead(_ name: ReceiptLaneName, _ rows: [ControlRow], next: [UInt8]?) {
        var entries: [ReceiptEntry] = []
        // Where the look ended in another's rows, there are no more of this lane.
        var seen = next.flatMap { name.number($0) }
        for row in rows {
            // What is behind the lane is another's.
            guard let number = name.number(row.key) else {
                seen = nil
                break
            }
            if let value = row.value { entries.append(ReceiptEntry(number: number, row: value)) }
        }
        receiptDesk.lanes[name]?.read(entries, upTo: seen)
        pump(name)
    }

    mutating func take(_ news: ReceiptNews) {
        let name = news.lane
        switch news.progress {
        case .delayed(let failures, let until):
            receiptDesk.lanes[name]?.delayed(failures: failures, until: until)
            put([record(of: name)])
            return
        case .taken: break
        case .refused(let status):
            EventLog.write(
                .warning, "an endpoint refused receipts; they count as told",
                ["app": name.app.text, "status": String(status)])
        case .tooOld: warnOfDrops(name)
        }
        guard let numbers = receiptDesk.lanes[name]?.finished(news.progress) else { return }
        take(away: numbers, from: name)
        pump(name)
    }
}
