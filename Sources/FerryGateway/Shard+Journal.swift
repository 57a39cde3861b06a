internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// What a tick leaves for the journal, and what is done when it is on disk. Nothing leaves the process before (P1).
extension Shard {
    mutating func append(_ record: Record, _ effect: CommitEffect?) {
        RecordCodec.append(record, to: &journal.writer)
        if let effect { journal.add(effect) }
    }

    /// Acks of one device that come together become one record.
    mutating func noteAcknowledged(_ device: Int) {
        markChanged(device)
        note(.acknowledged(upTo: devices[device].machine.acknowledged), device)
        guard !devices[device].isAckPending else { return }
        devices[device].isAckPending = true
        if acknowledging.isEmpty { acksDue = now + Self.ackHold }
        acknowledging.append(Int32(device))
    }

    /// A sync costs the same for one ack as for a hundred, and nobody waits for theirs: alone they wait a little for what goes to
    /// the disk anyway. What a crash takes of them the clients say again at their next login.
    var holdsAcks: Bool {
        (now < acksDue && acknowledging.count < Self.mostHeldAcks || now < refusedEndsDue) && journal.isEmpty
            && forgotten.isEmpty && (retirement == nil || awaitsCommit) && !isDraining && now < deferredUntil
            && !writesReportsAlone
    }

    private static var ackHold: Duration { .milliseconds(2) }
    private static var mostHeldAcks: Int { 512 }

    mutating func submitJournal() {
        // With the record of the end, or before it: who finds the end on disk finds the receipt.
        if (acknowledging.isEmpty && refusedEnds.isEmpty) || !holdsAcks {
            journalAcks()
            putReceipts()
            // An ack covers all before it, and so does a removal: also what ended by records that the disk refused.
            if receiptDesk.mustTellAll { putReceiptsAgain() }
        }
        if now >= deferredUntil {
            let again = deferred
            deferred = []
            deferredUntil = .distantFuture
            for (record, effect) in again {
                if isHeld(effect) {
                    deferred.append((record, effect))
                } else {
                    countDrop(effect, 1)
                    append(record, effect)
                }
            }
            placeAgain()
            putReceiptsAgain()
            writeUsersAgain()
            deleteAgain()
            readAgain()
        }
        appendReports()
        if !journal.isEmpty {
            lastTicket &+= 1
            let batch = journal.take()
            unsynced.append(
                UnsyncedBatch(
                    ticket: lastTicket, records: batch.writer.bytes, accepts: batch.accepts, effects: batch.effects))
            unsyncedBytes += batch.writer.bytes.count
            let highest = batch.partitions.members.map { partition in
                (partition: Partition(index: Int(partition)), seq: sequences[Int(partition)])
            }
            environment.store.submit(
                [
                    .append(
                        ticket: lastTicket, records: batch.writer.bytes, highest: highest, knows: lastRefusal)
                ], from: index)
        }
        if receiptDesk.isActive { holdForgotten() }
        if !forgotten.isEmpty {
            environment.store.submit([.forget(forgotten)], from: index)
            forgotten.removeAll(keepingCapacity: true)
        }
    }

    private mutating func journalAcks() {
        for place in acknowledging.indices {
            let device = Int(acknowledging[place])
            guard devices.isInUse(device) else { continue }
            devices[device].isAckPending = false
            RecordCodec.appendAcknowledged(
                devices[device].cid, upTo: devices[device].machine.acknowledged, to: &journal.writer)
        }
        if !acknowledging.isEmpty || !refusedEnds.isEmpty { receiptDesk.mustTellAll = true }
        acknowledging.removeAll(keepingCapacity: true)
        guard !refusedEnds.isEmpty else { return }
        for record in refusedEnds { append(record, nil) }
        refusedEnds = []
    }

    mutating func handle(_ event: StoreEvent) {
        switch event {
        case .committed(let ticket, let segment, let offset):
            currentSegment = max(currentSegment, segment)
            awaitsCommit = false
            if let batch = takeUnsynced(ticket) { committed(batch, segment: segment, offset: offset) }
        case .refused(let ticket, let failure):
            storeRefused(ticket, failure)
        case .messages(let ticket, let messages): messagesRead(ticket, messages)
        case .device(let cid, let record): deviceLoaded(cid, record)
        case .controlRows(let ticket, let rows, let isEnd): controlRowsRead(ticket, rows, isEnd: isEnd)
        case .readFailed(let ticket, _):
            guard let read = reads.removeValue(forKey: ticket) else { return }
            deferredReads.append(read)
            deferredUntil = min(deferredUntil, now + .seconds(1))
        case .loadFailed(let cid, _):
            // Not known is not the same as not there: a device told to register anew would lose its identity.
            for waiter in loading.removeValue(forKey: cid) ?? [] { turnAway(waiter) }
        case .roomChanged(let isShort): diskRoomChanged(isShort: isShort)
        case .segmentRetiring(let segment): beginRetirement(of: segment)
        case .segmentRetired(let segment): endRetirement(of: segment)
        }
    }

    private func isHeld(_ effect: CommitEffect) -> Bool {
        guard case .dropRecorded(let cid, _, _) = effect, let device = devices.index(of: cid) else { return false }
        return devices[device].holdsDrops || devices[device].isLeaving
    }

    /// With it all is refused that is under way: the store tries nothing of it, see `StoreEvent.refused`. So what is written next
    /// is written in the knowledge of all that is not on disk.
    private mutating func storeRefused(_ ticket: UInt64, _ failure: StoreFailure) {
        // One of those that were under way then.
        guard ticket > lastVoided else { return }
        EventLog.write(.error, "store refused a batch", ["reason": failure.description])
        receiptDesk.rows.refused(from: ticket)
        if receiptDesk.rows.mustWait { deferredUntil = min(deferredUntil, now + .seconds(1)) }
        lastRefusal = ticket
        lastVoided = lastTicket
        awaitsCommit = true
        // So that there is a next one, with all that must not be lost.
        if book.appCount > 0 { book.touch(0) }
        guard let first = takeUnsynced(ticket) else { return }
        refused(first)
        while unsyncedHead < unsynced.count, let next = takeUnsynced(unsynced[unsyncedHead].ticket) { refused(next) }
    }

    private mutating func takeUnsynced(_ ticket: UInt64) -> UnsyncedBatch? {
        guard unsyncedHead < unsynced.count, unsynced[unsyncedHead].ticket == ticket else {
            EventLog.write(.error, "store answered out of order", ["ticket": String(ticket)])
            return nil
        }
        let batch = unsynced[unsyncedHead]
        unsyncedHead += 1
        unsyncedBytes -= batch.records.count
        if unsyncedHead == unsynced.count {
            unsynced.removeAll(keepingCapacity: true)
            unsyncedHead = 0
        } else if unsyncedHead >= 256 {
            unsynced.removeFirst(unsyncedHead)
            unsyncedHead = 0
        }
        return batch
    }

    private mutating func committed(_ batch: UnsyncedBatch, segment: UInt32, offset: UInt32) {
        var done = 0
        for (after, effect) in batch.effects {
            accepted(batch, done..<after, segment: segment, offset: offset)
            done = after
            committed(effect, segment: segment, offset: offset)
        }
        accepted(batch, done..<batch.accepts.count, segment: segment, offset: offset)
    }

    private mutating func accepted(_ batch: UnsyncedBatch, _ range: Range<Int>, segment: UInt32, offset: UInt32) {
        for index in range {
            let pending = batch.accepts[index]
            let location = RecordLocation(segment: segment, offset: offset + pending.offset, length: pending.length)
            accepted(pending, batch.records, location)
        }
    }

    private mutating func refused(_ batch: UnsyncedBatch) {
        for pending in batch.accepts { refused(pending) }
        for (_, effect) in batch.effects { refused(effect) }
        keepEnds(ofRefused: batch.records)
    }

    /// `offset` is that of the batch.
    private mutating func committed(_ effect: CommitEffect, segment: UInt32, offset: UInt32) {
        switch effect {
        case .deviceRegistered(let registration):
            registered(registration, segment: segment)
        case .deviceRemoved(let removal): deviceRemoved(removal, segment: segment)
        case .pushTokenChanged(let cid, let token, let connection):
            guard let device = devices.index(of: cid) else { return }
            devices[device].pendingChanges -= 1
            let old = devices[device].token
            devices[device].token = token
            audience.setToken(devices.appNumber(of: device), cid, token != nil)
            markChanged(device, segment: segment)
            tokenChanged(device, from: old, to: token)
            if old != token { note(.tokenChanged(hasToken: token != nil), device) }
            tell(device: device, .tokenChanged(hasToken: token != nil))
            if let slot = connection.flatMap({ connections.index(of: $0) }), connections[slot].device == device {
                write(slot, .tokenSaved(TokenSavedFrame(environment: token?.environment)))
            }
        case .recordChanged(let cid):
            guard let device = devices.index(of: cid) else { return }
            devices[device].pendingChanges -= 1
            markChanged(device, segment: segment)
        case .dropRecorded(let cid, let record, let place):
            if case .settled(_, let seq, _, _) = record, isInTables(place) { forgotten.append((cid, seq)) }
            if let device = devices.index(of: cid) { tell(device: device, .dropSynced) }
        case .stubsDueRecorded(let cid, _):
            if let device = devices.index(of: cid) { tell(device: device, .dueSynced) }
        case .apiTokenRevoked(let digest, let expiresAt, let origin):
            tokenRevoked(digest, expiresAt, origin, segment: segment)
        case .broadcastAccepted(let content): broadcastAccepted(content, segment: segment)
        case .broadcastPlaced(let pending): broadcastPlaced(pending, segment: segment)
        case .broadcastExpired(let number, let ordinal): broadcastExpired(number, ordinal: ordinal)
        case .task(let effect): committed(effect, segment: segment)
        case .listed(let acceptance): listed(acceptance, segment: segment, offset: offset)
        case .controlPut(let rows, let effect): controlPut(rows, effect, segment: segment)
        }
    }

    /// Not on disk: who waits is told so; what must not be lost is tried again.
    private mutating func refused(_ effect: CommitEffect) {
        switch effect {
        case .deviceRegistered(let registration):
            guard let waiters = loading.removeValue(forKey: registration.cid) else { return }
            for waiter in waiters { turnAway(waiter) }
        case .deviceRemoved(let removal): removalRefused(removal)
        case .pushTokenChanged(let cid, _, _), .recordChanged(let cid):
            if let device = devices.index(of: cid) { devices[device].pendingChanges -= 1 }
        case .dropRecorded(_, let record, _), .stubsDueRecorded(_, let record):
            countDrop(effect, -1)
            deferred.append((record, effect))
            deferredUntil = min(deferredUntil, now + .seconds(1))
        case .apiTokenRevoked(_, _, let origin): fill(origin, .failure(.busy(retryAfterSeconds: 5)))
        case .broadcastAccepted(let content): broadcastRefused(content)
        case .broadcastPlaced(let pending): placesRefused(pending)
        case .broadcastExpired(let number, let ordinal):
            broadcasts.endAgain(number, ordinal: ordinal, at: now + .seconds(1))
        case .task(let effect): refused(effect)
        case .listed(let acceptance): listRefused(acceptance)
        case .controlPut(_, let effect): controlRefused(effect)
        }
    }

    private mutating func turnAway(_ waiter: DeviceWaiter) {
        switch waiter {
        case .admission(let connection):
            if let slot = connections.index(of: connection) {
                tell(handshake: slot, .ownerAnswered(.storeUnavailable))
            }
        case .push(let waiting):
            for order in waiting.orders {
                waitingBytes -= order.weight
                giveUp(order, .busy(retryAfterSeconds: 5))
            }
        case .list(let placement, let target): giveUp(placement, target, .busy(retryAfterSeconds: 5))
        case .tagTarget(let cid): tagTargetLoaded(cid, .failed)
        case .wake(let cid): wakeLoaded(cid, nil, isKnown: false)
        case .status(let gathering, let cid):
            gathering.isComplete = false
            gather(gathering, cid, nil)
        case .timeline(let order): answer(order, .failure(.busy(retryAfterSeconds: 5)))
        case .single(let gathering, let single):
            gathering.isComplete = false
            gather(gathering, single, nil)
        case .detail(let gathering):
            gathering.isComplete = false
            gather(gathering, nil)
        case .removal(let removal): notRemoved(removal, .busy(retryAfterSeconds: 5))
        case .retention: return
        case .tokenLoss(let claim):
            // Both devices hold the token until the next start, which lets the later one have it.
            EventLog.write(
                .warning, "push token not taken from its former device", ["claimedBy": claim.cid.description])
        }
    }

    private mutating func registered(_ registration: DeviceRegistration, segment: UInt32) {
        let cid = registration.cid
        let device =
            devices.index(of: cid) ?? insertDevice(DeviceRecord(registration: registration))
        countRegistration(device)
        broadcasts.register(broadcastLine(of: registration.app), Partition(of: cid))
        audience.register(devices.appNumber(of: device), cid, seenAt: registration.at, hasToken: false)
        markChanged(device, segment: segment)
        let waiters = loading.removeValue(forKey: cid) ?? []
        serve(waiters, cid, device)
        armResting(device)
    }

    // MARK: - Retired segments

    /// Whether the tables have, or may soon have, a row of the message.
    func isInTables(_ segment: UInt32) -> Bool {
        segment <= max(retiredSegment, retirement?.segment ?? 0)
    }
}
