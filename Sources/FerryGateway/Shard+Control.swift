internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryReceipts
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// What follows when control rows are on disk, or cannot get there.
enum ControlEffect {
    /// The call that wanted them is answered; when the disk refused, that the gateway is busy.
    case answer(APIOrigin, APIAnswer)
    /// What was counted is in rows on disk, and reports may tell of it.
    case counted([ReportRow], [ReportReply])
    case schedule(ScheduleEffect)
    /// They go out; what the disk refused is tried again.
    case receiptsAdded(ReceiptLaneName, [ReceiptEntry])
    /// Rows of receipts that are over, by number.
    case receiptsGone(ReceiptLaneName, [UInt64])
    case listStored(TaskContent, TagAudience?)
    case listStop(ListStop)
    case tagGathered(TagAudience, [TagExpansion.Part], isLast: Bool)
    case tagPlaced(Identifier128)
    case tagStep(TagStep)
    case users(UserEffect)
}

/// A look at a queue of control rows.
struct ControlQuestion {
    let table: ControlTable
    let partition: Partition
    /// nil: from the beginning.
    let after: [UInt8]?
    let limit: Int
    /// Gets rows in the order of their keys, and where to go on: `after` of the next question, nil when there are no more. There
    /// may be none of them and more behind.
    let then: (_ shard: inout Shard, _ rows: [ControlRow], _ next: [UInt8]?) -> Void
    /// The last segment that had retired when it was asked.
    var asOf: UInt32 = 0
}

/// Control rows: what changes seldom, kept by the store under names, with its meaning elsewhere.
extension Shard {
    /// They go to the disk with all else of this turn, all or none of them. At most 16 MiB together.
    mutating func put(_ rows: [ControlRow], then effect: ControlEffect? = nil) {
        append(.controlRows(rows), .controlPut(rows, effect))
    }

    mutating func controlPut(_ rows: [ControlRow], _ effect: ControlEffect?, segment: UInt32) {
        for row in rows { control.note(row, segment: segment) }
        switch effect {
        case .answer(let origin, let answer): settle(origin, .success(answer))
        case .counted(_, let replies): for reply in replies { send(reply) }
        case .schedule(let effect): committed(effect, segment: segment)
        case .receiptsAdded(let lane, let entries): receiptsAdded(lane, entries)
        case .listStored(let content, let audience): listStored(content, audience)
        case .listStop(let stop): listStopped(stop)
        case .tagGathered(let order, let parts, let isLast): tagGathered(order, parts, isLast: isLast)
        case .tagPlaced(let task): tagPlaced(task)
        case .tagStep(let step): tagStepDone(step)
        case .users(let effect):
            users.unwritten -= 1
            usersWritten(effect)
        case .receiptsGone, nil: return
        }
    }

    /// Nothing of it is on disk.
    mutating func controlRefused(_ effect: ControlEffect?) {
        switch effect {
        case .answer(let origin, _): settle(origin, .failure(.busy(retryAfterSeconds: 5)))
        case .counted(let rows, let replies): countsRefused(rows, replies)
        case .schedule(let effect): refused(effect)
        case .receiptsAdded(let lane, let entries): receiptsRefused(lane, entries)
        case .receiptsGone(let lane, let numbers): receiptsStay(lane, numbers)
        case .listStored(let content, _): listRefused(content)
        case .listStop(let stop): listStopRefused(stop)
        case .tagGathered(let order, _, let isLast): tagGatheringRefused(order, isLast: isLast)
        case .tagPlaced(let task): tagPlacedRefused(task)
        case .tagStep: breakOffStep()
        case .users(let effect):
            users.unwritten -= 1
            usersNotWritten(effect)
        case nil: return
        }
    }

    /// Answers a call, whichever shard it came in at.
    mutating func settle(_ origin: APIOrigin, _ result: Result<APIAnswer, APIError>) {
        if origin.shard == index {
            fill(origin, result)
        } else {
            post(.reply(.settled(origin, result)), to: origin.shard)
        }
    }

    /// At the start, before anybody is served.
    mutating func restoreControl(_ found: [(row: ControlRow, segment: UInt32)]) {
        for (row, segment) in found {
            if segment != 0 { control.restore(row, segment: segment) }
            if row.value != nil, !row.table.isQueue { restoreControl(row) }
        }
    }

    /// A row that is there.
    private mutating func restoreControl(_ row: ControlRow) {
        switch row.table {
        // Read before all else, see `restoreReports`.
        case .counters, .curve: return
        // Known to all shards, see `restoreListStops`.
        case .stoppedTask: return
        case .schedule: restoreSchedule(row)
        case .listTask: restoreListTask(row)
        case .tagCall: restoreTagCall(row)
        case .tagAudience: restoreTagAudience(row)
        case .tagCursor: restoreTagCursor(row)
        case .broadcastWake: restoreWakes(row)
        case .alias: restoreAlias(row)
        case .profile: restoreProfile(row)
        case .receiptLane: restoreLane(row)
        case .receipt, .listContent: return
        }
    }

    // MARK: - Queues

    /// Reads rows of a queue: what the tables and the journal have together.
    mutating func readControl(_ question: ControlQuestion) {
        var question = question
        question.asOf = retiredSegment
        lastTicket &+= 1
        reads[lastTicket] = .control(question)
        environment.store.submit(
            [
                .readControl(
                    ticket: lastTicket, question.table, question.partition, after: question.after,
                    limit: question.limit)
            ], from: index)
    }

    mutating func controlRowsRead(_ ticket: UInt64, _ rows: [ControlRow], isEnd: Bool) {
        guard case .control(let question)? = reads.removeValue(forKey: ticket) else { return }
        // What moved from the journal to the tables meanwhile may have been seen in neither.
        guard question.asOf == retiredSegment else { return readControl(question) }
        let next = isEnd ? nil : rows.last?.key
        let rows = control.over(
            rows, question.table, question.partition, after: question.after, isEnd: isEnd)
        question.then(&self, rows, next)
    }
}
