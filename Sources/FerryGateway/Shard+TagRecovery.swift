internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// What the last steps of pushes to audiences did before a start: all of it is on disk, but a crash may have come before the facts
/// were noted.
struct LastTagSteps {
    struct PassedOver {
        let content: ListTask
        let seq: Seq
        let at: Instant
        let reason: EndReason
    }

    /// When these devices got these tasks.
    var given: [CID: [Identifier128: (content: ListTask, at: Instant)]] = [:]
    var passedOver: [CID: [PassedOver]] = [:]
}

/// Pushes to audiences that a start finds under way.
extension Shard {
    mutating func restoreTagAudience(_ row: ControlRow) {
        guard let found = row.value.flatMap({ TagExpansion.audience($0) }),
            let name = TagExpansion.read(key: row.key), name.task == found.content.taskID.value
        else {
            return EventLog.write(.error, "targets of a push cannot be read", ["partition": "\(row.partition.index)"])
        }
        lists.tags.begin(found.content, speed: found.speed, shards: environment.shards)
        lists.tags.add(
            TagExpansion.Part(partition: row.partition, piece: name.piece, cids: found.cids, done: 0), to: name.task)
        lists.tags.mustAsk = true
    }

    /// Cursors come behind all audiences.
    mutating func restoreTagCursor(_ row: ControlRow) {
        guard let (task, piece) = TagExpansion.read(key: row.key), let expansion = lists.tags.expansions[task] else {
            return
        }
        guard let cursor = row.value.flatMap({ TagExpansion.cursor($0) }),
            let found = lists.tags.change(task, { $0.restore(row.partition, piece: piece, done: cursor.done) }),
            let part = found
        else {
            return EventLog.write(
                .error, "how far a push is cannot be read", ["partition": "\(row.partition.index)"])
        }
        let content = expansion.content
        for place in cursor.first..<cursor.done where part.cids.indices.contains(place) {
            lists.tags.lastSteps.given[part.cids[place], default: [:]][task] = (content, cursor.at)
        }
        for one in cursor.leftOut where part.cids.indices.contains(one.place) {
            lists.tags.lastSteps.passedOver[part.cids[one.place], default: []].append(
                LastTagSteps.PassedOver(content: content, seq: one.seq, at: cursor.at, reason: one.reason))
        }
    }

    mutating func restoreTagCall(_ row: ControlRow) {
        guard let task = Identifier128(bytes: row.key), let value = row.value else { return }
        lists.tags.restored.append(RestoredTagCall(task: task, row: value))
    }

    /// Before anything else is noted of these devices.
    mutating func noteLastTagSteps(_ found: [RecoveredDevice]) {
        let last = lists.tags.lastSteps
        lists.tags.lastSteps = LastTagSteps()
        guard !last.given.isEmpty else { return }
        for device in found {
            guard let tasks = last.given[device.record.cid] else { continue }
            let cid = device.record.cid
            var facts: [(seq: Seq, accepted: Acceptance, end: EndReason?)] = []
            for message in device.kept {
                guard let (content, at) = message.task.flatMap({ tasks[$0] }) else { continue }
                facts.append((message.seq, Acceptance(message, of: content, cid, at), nil))
            }
            note(facts, last.passedOver[cid] ?? [], cid)
        }
        let known = Set(found.map(\.record.cid))
        for (cid, passedOver) in last.passedOver where !known.contains(cid) { note([], passedOver, cid) }
    }

    private mutating func note(
        _ kept: [(seq: Seq, accepted: Acceptance, end: EndReason?)], _ passedOver: [LastTagSteps.PassedOver], _ cid: CID
    ) {
        let facts = kept + passedOver.map { ($0.seq, Acceptance($0, cid), $0.reason) }
        for fact in facts.sorted(by: { $0.seq < $1.seq }) {
            noteInTimeline(.accepted(fact.accepted), cid)
            if let reason = fact.end { noteInTimeline(.ended(fact.seq, reason), cid) }
        }
    }

    /// Once, when all shards serve.
    mutating func askAtStart() {
        let restored = lists.tags.restored
        lists.tags.restored = []
        for call in restored {
            guard let known = lists.table[call.task], let order = TagAudience(known, encoded: call.row) else {
                EventLog.write(.error, "a push to an audience cannot be read", ["task": call.task.hex])
                for origin in call.waiting { settle(origin, .failure(.busy(retryAfterSeconds: 60))) }
                continue
            }
            beginTagCall(order, waiting: call.waiting)
        }
        guard lists.tags.mustAsk else { return }
        lists.tags.mustAsk = false
        for (task, expansion) in lists.tags.expansions {
            post(.order(.list(.askPlaced(expansion.app, task, shard: index))), to: environment.owner(of: expansion.app))
        }
    }

    mutating func answerPlaced(_ task: Identifier128, to shard: Int) {
        // Where its call is still open it will be told.
        guard lists.tags.calls[task] == nil, !lists.tags.restored.contains(where: { $0.task == task }) else { return }
        post(.order(.list(.placedEverywhere(task))), to: shard)
    }
}

extension Acceptance {
    /// A reference that was found at a start. Whether its device was there then is told by its stub.
    fileprivate init(_ message: RecoveredMessage, of content: ListTask, _ cid: CID, _ at: Instant) {
        let stub: Stub =
            switch message.stub {
            case .none?: .none
            case .due, nil: .due
            case .noToken: .noToken
            case .notWanted: .notWanted
            }
        self.init(
            seq: message.seq, messageID: RequestKey(task: content.taskID, cid: cid).messageID, taskID: content.taskID,
            acceptedAt: at, expiresAt: message.isLiveOnly ? at : message.expiresAt,
            payloadBytes: message.payloadBytes, wasOnline: stub == .none, hasOwnAlert: message.hasOwnAlert, stub: stub,
            isNotedAgain: true)
    }

    fileprivate init(_ one: LastTagSteps.PassedOver, _ cid: CID) {
        let task = one.content
        self.init(
            seq: one.seq, messageID: RequestKey(task: task.taskID, cid: cid).messageID, taskID: task.taskID,
            acceptedAt: one.at, expiresAt: one.at + .milliseconds(task.timeToLive), payloadBytes: task.payloadBytes,
            wasOnline: false, hasOwnAlert: task.hasAlert, stub: .none, isNotedAgain: true)
    }
}
