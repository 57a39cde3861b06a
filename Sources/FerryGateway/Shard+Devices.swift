internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// Devices: telling their machines what happened, performing what those decide.
extension Shard {
    /// How long a device that is at rest stays in memory.
    static var restingTime: Duration { .seconds(60) }

    mutating func tell(device: Int, _ event: DeviceEvent) {
        var actions = deviceActions.popLast() ?? []
        let policy = environment.configuration.delivery
        let wasOnline = devices[device].machine.presence.isOnline
        devices[device].machine.handle(event, now: now, policy: policy, actions: &actions)
        let isOnline = devices[device].machine.presence.isOnline
        if wasOnline && !isOnline {
            devices[device].absences &+= 1
            note(.wentOffline, device)
        }
        if wasOnline != isOnline {
            tellPresence(device, isOnline: isOnline)
        }
        for action in actions { perform(action, device) }
        actions.removeAll(keepingCapacity: true)
        deviceActions.append(actions)
        if let deadline = devices[device].machine.deadline {
            arm(device: device, at: deadline)
        } else {
            armResting(device)
        }
    }

    /// Counts, streams and receipts learn of it.
    mutating func tellPresence(_ device: Int, isOnline: Bool) {
        countOnline(device, isOnline: isOnline)
        notePresenceNews(device, isOnline: isOnline)
        if receiptDesk.isActive { notePresence(device, isOnline: isOnline) }
    }

    private mutating func perform(_ action: DeviceAction, _ device: Int) {
        switch action {
        case .recordAcknowledged: noteAcknowledged(device)
        case .end(let message, let reason): end(message, reason, device)
        case .recordStubsDue(let upTo):
            let cid = devices[device].cid
            let record = Record.stubDue(cid: cid, upTo: upTo)
            note(.stubDue(upTo: upTo), device)
            markChanged(device)
            append(record, .stubsDueRecorded(cid, record))
        case .recordNoToken(let upTo):
            note(.noToken(upTo: upTo), device)
            markChanged(device)
            append(.stubSettled(cid: devices[device].cid, upTo: upTo, outcome: .noToken), nil)
        case .requestStub(let plan): requestStub(plan, device)
        case .takeOver: break  // `takeOverConnection` has closed it, before the newer session was welcomed.
        case .transmit: pump(device)
        case .refuseAck:
            if let slot = devices[device].connection {
                endSession(slot, with: .acknowledgedUnsent)
            }
        }
    }

    mutating func end(_ message: KeptMessage, _ reason: EndReason, _ device: Int) {
        if message.isShared { return endShared(message, reason, device) }
        note(.ended(message.seq, reason), device)
        if receiptDesk.isActive { noteReceipt(message.seq, reason, device) }
        let state = reason.state
        let isCounted = isCountedWithRemoval(message.seq, reason, device)
        if message.isReference { countReferenceEnd(message, isCounted ? nil : reason) }
        if !message.isReference { giveBackRoom(Int(message.payloadBytes)) }
        let cid = devices[device].cid
        if state == .delivered {
            if !isCounted { countEnd(reason, device) }
            if isInTables(message.location.segment) { forgotten.append((cid, message.seq)) }
            return
        }
        let isTold = message.isMissedWhenDropped && (state == .expired || state == .overflowed)
        // The row of a drop that is told goes once the drop is on disk: until then a restart must find the one or the other.
        if !isTold, isInTables(message.location.segment) { forgotten.append((cid, message.seq)) }
        let record = Record.settled(cid: cid, seq: message.seq, state: state, isTold: isTold)
        if isTold { markChanged(device) }
        let effect: CommitEffect? = isTold ? .dropRecorded(cid, record, segment: message.location.segment) : nil
        if let effect, devices[device].holdsDrops {
            if isCounted { noteUncountedEnd(message.seq, device) }
            // It is counted when its record goes to the disk.
            deferred.append((record, effect))
        } else {
            if !isCounted { countEnd(reason, device) }
            append(record, effect)
        }
    }

    mutating func deviceTimer(_ device: Int) {
        guard devices.isInUse(device) else { return }
        tell(device: device, .timePassed)
        letGoIfResting(device)
    }

    /// A device that is as its row says leaves memory; the next login or message loads it again.
    private mutating func letGoIfResting(_ device: Int) {
        let entry = devices[device]
        // While a segment retires, the row that was told for it may not be in the tables yet.
        guard entry.machine.isAtRest, entry.connection == nil, entry.changedSegment == 0, entry.pendingChanges == 0,
            !entry.isReading, !entry.isAckPending, !entry.isLeaving, retirement == nil
        else {
            devices[device].isResting = false
            return
        }
        if entry.isResting {
            guard letGoOfBroadcasts(device) else { return }
            wheel.cancel(timer(of: device))
            // A device that registered anew after its removal: its row is the new one.
            if !users.removals.devices.isEmpty { users.removals.devices[entry.cid] = nil }
            devices.remove(device)
        } else {
            devices[device].isResting = true
        }
    }

    /// A device without a connection is looked at from time to time.
    mutating func armResting(_ device: Int) {
        if devices[device].connection == nil { arm(device: device, at: now + Self.restingTime) }
    }

    // MARK: - The record

    mutating func noteSeen(_ device: Int) {
        countComing(device)
        devices[device].seenAt = now
        audience.saw(devices.appNumber(of: device), devices[device].cid, at: now)
        append(.deviceSeen(cid: devices[device].cid, at: now), .recordChanged(devices[device].cid))
        devices[device].pendingChanges += 1
    }

    /// Journals the change; `token-saved` follows when it is on disk.
    mutating func saveToken(_ change: TokenChange, device: Int, connection slot: Int) {
        let token: PushToken? =
            switch change {
            case .clear: nil
            case .set(let token): token
            }
        let cid = devices[device].cid
        devices[device].pendingChanges += 1
        append(
            .pushTokenChanged(cid: cid, token: token, at: now),
            .pushTokenChanged(cid, token, connection: connections.token(of: slot)))
    }

    mutating func registerDevice(cid: CID, app: AppID, waiter: DeviceWaiter) {
        if loading[cid] != nil {
            loading[cid]?.append(waiter)
            return
        }
        loading[cid] = [waiter]
        // Broadcasts up to here were not for it.
        let partition = Partition(of: cid).index
        let behind = sequences[partition]
        if behind > .zero { journal.partitions.insert(partition) }
        let registration = DeviceRegistration(app: app, cid: cid, generation: 1, at: now, acknowledged: behind)
        append(.deviceRegistered(registration), .deviceRegistered(registration))
    }

    /// The record has a change in the journal that the tables lack.
    mutating func markChanged(_ device: Int, segment: UInt32? = nil) {
        guard devices[device].changedSegment == 0 else { return }
        // An earlier segment than the record's own is safe: the row is then written sooner than it must be.
        let segment = segment ?? currentSegment
        devices[device].changedSegment = segment
        segmentDevices.add(device, segment: segment)
    }

    // MARK: - Loading

    mutating func wait(for cid: CID, _ waiter: DeviceWaiter) {
        if loading[cid] != nil {
            loading[cid]?.append(waiter)
            return
        }
        loading[cid] = [waiter]
        environment.store.submit([.load(cid)], from: index)
    }

    /// The record is known: nil when there is no such device.
    mutating func deviceLoaded(_ cid: CID, _ record: DeviceRecord?) {
        guard let waiters = loading.removeValue(forKey: cid) else { return }
        let record = isRemoved(cid) ? nil : record
        var device = devices.index(of: cid)
        if device == nil, let record { device = insertDevice(record) }
        serve(waiters, cid, device)
        if let device { armResting(device) }
    }

    /// Takes a device into memory that is not there.
    mutating func insertDevice(_ record: DeviceRecord) -> Int {
        let device = devices.insert(record)
        devices[device].isBlocked = audience.isBlocked(devices.appNumber(of: device), record.cid)
        return device
    }

    mutating func serve(_ waiters: [DeviceWaiter], _ cid: CID, _ device: Int?) {
        for waiter in waiters {
            switch waiter {
            case .admission(let connection): answerAdmission(connection, cid: cid, device: device)
            case .push(let waiting):
                for order in waiting.orders { waitingBytes -= order.weight }
                waiting.withContents { contents in
                    for order in waiting.orders {
                        accept(order, PushOrders.content(of: order, in: contents), device: device)
                    }
                }
            case .list(let placement, let target): accept(placement, target, device: device)
            case .tagTarget(let cid): tagTargetLoaded(cid, device == nil ? .absent : .known)
            case .wake(let cid): wakeLoaded(cid, device, isKnown: true)
            case .status(let gathering, let cid): gather(gathering, cid, device)
            case .timeline(let order): explain(order, device: device)
            case .single(let gathering, let single): gather(gathering, single, device)
            case .detail(let gathering): gather(gathering, device)
            case .removal(let removal): erase(removal, device: device)
            case .retention: if let device { forgetIfUnseen(device) }
            case .tokenLoss(let claim): if let device { loseToken(claim, device: device) }
            }
        }
    }
}
