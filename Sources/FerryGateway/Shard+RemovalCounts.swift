internal import FerryCore
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// The messages that end with a device whose record of removal is on its way to the disk. They are counted with the record,
/// since with that they are gone, whatever comes of them here until it is known to be there.
struct LeavingMessages {
    struct Entry {
        /// nil for what is counted for no task.
        let task: Identifier128?
        /// It has ended here, before the device or with it.
        var hasEnded = false
        /// nil: that end is counted when its own record is written.
        var reason: EndReason?
    }

    var entries: [Seq: Entry] = [:]
}

extension Shard {
    /// Drops that wait for another try go before the removal: behind it nothing of the device counts.
    mutating func writeWaitingDrops(_ device: Int) {
        guard !deferred.isEmpty else { return }
        let cid = devices[device].cid
        let all = deferred
        deferred = []
        for (record, effect) in all {
            if case .dropRecorded(cid, _, _) = effect {
                countDrop(effect, 1)
                append(record, effect)
            } else {
                deferred.append((record, effect))
            }
        }
    }

    /// All that is kept for the device, and what is on its way to the disk for it, before the record of its removal.
    mutating func countRemovedMessages(_ device: Int) {
        catchUp(device)
        var leaving = LeavingMessages()
        let number = devices.appNumber(of: device)
        for place in 0..<devices[device].machine.log.count {
            let message = devices[device].machine.log[place]
            leaving.entries[message.seq] = LeavingMessages.Entry(task: task(of: message, number))
        }
        if devices[device].pendingChanges > 0 || !tasks.placing.isEmpty {
            for batch in unsynced[unsyncedHead...] {
                leaving.take(batch.accepts, of: device)
                takePlaces(batch.effects, device, into: &leaving)
            }
            leaving.take(journal.accepts, of: device)
            takePlaces(journal.effects, device, into: &leaving)
        }
        guard !leaving.entries.isEmpty else { return }
        for entry in leaving.entries.values { countLeaving(entry, number, .deviceRemoved, 1) }
        users.removals.leaving[devices[device].cid] = leaving
    }

    private func task(of message: KeptMessage, _ number: Int) -> Identifier128? {
        if message.isReference { return taskSlots.task(of: message.taskSlot) }
        guard message.isShared, let index = broadcasts.index(number, ordinal: message.broadcastOrdinal) else {
            return nil
        }
        return broadcasts.lines[number].placed[index].broadcast.taskID.value
    }

    private func takePlaces(
        _ effects: [(after: Int, effect: CommitEffect)], _ device: Int, into leaving: inout LeavingMessages
    ) {
        for (_, effect) in effects {
            switch effect {
            case .listed(let acceptance):
                let task = acceptance.placement.content.task.taskID.value
                for entry in acceptance.entries where Int(entry.device) == device && entry.endedAs == nil {
                    leaving.entries[entry.seq] = LeavingMessages.Entry(task: task)
                }
            case .broadcastPlaced(let pending):
                let broadcast = pending.wanted.content.broadcast
                let seq = pending.seqs[broadcasts.local(Partition(of: devices[device].cid))]
                guard broadcast.app == devices.app(of: device), seq > .zero else { continue }
                leaving.entries[seq] = LeavingMessages.Entry(task: broadcast.taskID.value)
            default: continue
            }
        }
    }

    private mutating func countLeaving(
        _ entry: LeavingMessages.Entry, _ number: Int, _ reason: EndReason, _ count: Int64
    ) {
        if number >= book.appCount { countAccepted(number, 0) }
        if let task = entry.task { book.end(task, reason, count: count) }
        book.end(number, reason, count: count)
    }

    /// Whether this end of one of the device's messages is counted with the record of its removal.
    mutating func isCountedWithRemoval(_ seq: Seq, _ reason: EndReason, _ device: Int) -> Bool {
        guard devices[device].isLeaving else { return false }
        let cid = devices[device].cid
        guard users.removals.leaving[cid]?.entries[seq] != nil else { return false }
        users.removals.leaving[cid]?.entries[seq]?.hasEnded = true
        users.removals.leaving[cid]?.entries[seq]?.reason = reason
        return true
    }

    /// That end will be counted when its record is written, should the device stay.
    mutating func noteUncountedEnd(_ seq: Seq, _ device: Int) {
        users.removals.leaving[devices[device].cid]?.entries[seq]?.reason = nil
    }

    /// The record is on disk, or will not be. What ended for all its devices meanwhile is counted there; if the device stays,
    /// its messages are kept as before, or ended in their own way.
    mutating func settleRemovedMessages(of cid: CID, _ number: Int, isRemoved: Bool) {
        guard let leaving = users.removals.leaving.removeValue(forKey: cid) else { return }
        for entry in leaving.entries.values {
            if isRemoved {
                if !entry.hasEnded { countLeaving(entry, number, .deviceRemoved, -1) }
                continue
            }
            countLeaving(entry, number, .deviceRemoved, -1)
            if let reason = entry.reason { countLeaving(entry, number, reason, 1) }
        }
    }
}

extension LeavingMessages {
    fileprivate mutating func take(_ accepts: [PendingAccept], of device: Int) {
        for accept in accepts where Int(accept.device) == device && !accept.isIgnored {
            entries[accept.seq] = Entry(task: nil)
        }
    }
}
