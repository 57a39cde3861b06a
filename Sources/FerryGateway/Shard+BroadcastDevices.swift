internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// Broadcasts and devices. Nothing is done for a device before it is its turn: before anything else is kept for it, or its
/// session begins, its machine is told of the broadcasts that are before that in its stream.
extension Shard {
    /// Tells the device's machine of all broadcasts that it does not know. To be called before a message with a higher `seq`,
    /// and before a session begins: an ack of what comes later covers a broadcast too, and whether the device was away is
    /// decided by how it is now (P2, P4).
    mutating func catchUp(_ device: Int) {
        if devices[device].caughtUp != broadcasts.newest { tellBroadcasts(device) }
    }

    private mutating func tellBroadcasts(_ device: Int) {
        let known = devices[device].caughtUp
        devices[device].caughtUp = broadcasts.newest
        let number = devices.appNumber(of: device)
        let local = broadcasts.local(Partition(of: devices[device].cid))
        let pending = broadcasts.pending(
            number, after: known, local, above: devices[device].machine.acknowledged)
        for index in pending { tellBroadcast(device, number, index, local) }
    }

    private mutating func tellBroadcast(_ device: Int, _ number: Int, _ index: Int, _ local: Int) {
        let placed = broadcasts.lines[number].placed[index]
        let seq = placed.seqs[local]
        switch placed.state {
        case .live, .ending:
            noteTurn(of: placed, seq, device)
            broadcasts.reach(number, index)
            tell(device: device, .messageSynced(KeptMessage(placed, seq: seq, wasOffline: false)))
        case .over: tellMissed(placed, seq, device)
        }
    }

    private mutating func tellMissed(_ placed: PlacedBroadcast, _ seq: Seq, _ device: Int) {
        noteTurn(of: placed, seq, device)
        let reason =
            placed.isStopped ? EndReason.taskStopped : placed.broadcast.isLiveOnly ? .noLiveSession : .ttlRanOut
        noteInTimeline(.ended(seq, reason), devices[device].cid)
        noteReceipt(placed, reason, device)
        if placed.isStopped { return }
        if !placed.broadcast.isLiveOnly { tell(device: device, .broadcastMissed(seq)) }
    }

    /// For the timeline alone: it is counted where it was accepted for all.
    private mutating func noteTurn(of placed: PlacedBroadcast, _ seq: Seq, _ device: Int) {
        let isOnline = devices[device].machine.presence.isOnline
        let acceptance = Acceptance(placed, seq: seq, wasOnline: isOnline)
        noteInTimeline(.accepted(acceptance), devices[device].cid)
    }

    /// A broadcast has ended at this device.
    mutating func endShared(_ message: KeptMessage, _ reason: EndReason, _ device: Int) {
        note(.ended(message.seq, reason), device)
        countSharedEnd(message, reason, device)
        let number = devices.appNumber(of: device)
        if receiptDesk.isActive, reason != .deviceRemoved || !receiptDesk.hasTold(devices[device].cid, message.seq),
            let index = broadcasts.index(number, ordinal: message.broadcastOrdinal)
        {
            noteReceipt(broadcasts.lines[number].placed[index], reason, device)
        }
        broadcasts.left(devices.appNumber(of: device), ordinal: message.broadcastOrdinal)
    }

    /// What is in the log of a device that leaves memory comes again by its place. False while a pass is under way that may
    /// have something to tell it.
    mutating func letGoOfBroadcasts(_ device: Int) -> Bool {
        guard devices[device].machine.log.sharedCount > 0 else { return true }
        let number = devices.appNumber(of: device)
        guard !broadcasts.lines[number].isSweeping else { return false }
        for index in 0..<devices[device].machine.log.count {
            let message = devices[device].machine.log[index]
            if message.isShared { broadcasts.unreach(number, ordinal: message.broadcastOrdinal) }
        }
        return true
    }

    /// The content of a broadcast that may be sent now; nil when its time is over and the device is about to be told.
    func sharedContent(of message: KeptMessage, _ device: Int) -> BroadcastContent? {
        let number = devices.appNumber(of: device)
        guard let index = broadcasts.index(number, ordinal: message.broadcastOrdinal) else { return nil }
        let broadcast = broadcasts.lines[number].placed[index].broadcast
        guard broadcast.isLiveOnly || broadcast.expiresAt > now, !broadcasts.lines[number].placed[index].isStopped
        else { return nil }
        return broadcasts.lines[number].placed[index].content
    }

    // MARK: - Passes over the devices

    private static var touchedPerSlice: Int { 64 }
    private static var visitedPerSlice: Int { 4_096 }
    /// What a slice does between two looks at the clock, in devices and entries of logs that are looked at.
    private static var workPerLook: Int { 2_048 }
    /// Telling one device takes as long as looking at so many.
    private static var workPerTouch: Int { 128 }
    private static var sliceTime: Duration { .milliseconds(1) }

    /// One slice for one app, behind all else of the tick: attached devices are told of what is new, and those that have a
    /// broadcast in their log that is over are told of that.
    mutating func continuePasses() {
        guard let (number, cursor) = broadcasts.nextSlice() else { return }
        var device = cursor
        var touched = 0
        var work = 0
        let visitedEnd = min(devices.endIndex, cursor + Self.visitedPerSlice)
        let timeEnd = environment.clock() + Self.sliceTime
        while device < visitedEnd, touched < Self.touchedPerSlice {
            work += 1
            if devices.isInUse(device), devices.appNumber(of: device) == number, visit(device, number, &work) {
                touched += 1
                work += Self.workPerTouch
            }
            device += 1
            if work >= Self.workPerLook {
                work = 0
                if environment.clock() > timeEnd { break }
            }
        }
        let isThrough = device >= devices.endIndex
        broadcasts.endSlice(number, cursor: isThrough ? nil : device)
        if isThrough { endLiveOnlyBroadcasts(number) }
    }

    /// Whether there was something to tell. Adds what was looked at to `work`.
    private mutating func visit(_ device: Int, _ number: Int, _ work: inout Int) -> Bool {
        var isTouched = false
        if case .attached = devices[device].machine.presence, devices[device].caughtUp != broadcasts.newest {
            tellBroadcasts(device)
            isTouched = true
        }
        guard devices[device].machine.log.sharedCount > 0 else { return isTouched }
        work += devices[device].machine.log.count
        for (seq, isStopped) in overInLog(of: device, number) {
            tell(device: device, isStopped ? .takenBack(seq, .taskStopped) : .broadcastEnded(seq))
            isTouched = true
        }
        return isTouched
    }

    private func overInLog(of device: Int, _ number: Int) -> [(seq: Seq, isStopped: Bool)] {
        var found: [(seq: Seq, isStopped: Bool)] = []
        for place in 0..<devices[device].machine.log.count {
            let message = devices[device].machine.log[place]
            guard message.isShared,
                let index = broadcasts.index(number, ordinal: message.broadcastOrdinal),
                broadcasts.lines[number].placed[index].state == .over
            else { continue }
            let isStopped = broadcasts.lines[number].placed[index].isStopped
            // Of others it was told that their time is over, or they end with their session.
            guard isStopped || (!message.isLiveOnly && message.expiresAt == .distantFuture) else { continue }
            found.append((message.seq, isStopped))
        }
        return found
    }

    // MARK: - Recovery

    mutating func restoreBroadcasts(_ recovery: ShardRecovery) {
        for (app, counts) in recovery.registered {
            let number = broadcastLine(of: app)
            for local in 0..<broadcasts.partitions {
                let partition = broadcasts.partition(local)
                broadcasts.register(number, partition, count: Int(counts[partition.index]))
            }
        }
        for found in recovery.broadcasts { restore(found) }
        for number in broadcasts.lines.indices { trimBroadcasts(number) }
        broadcasts.finishRestoring()
        for (task, content, missing) in recovery.placing {
            placing[task] = PlacingBroadcast(content: content, missing: missing, waiting: [])
        }
        for own in recovery.ownBroadcasts { keepOnDisk(own.broadcast, segment: own.segment) }
        tasks.stops = recovery.stops
        // Before anything else draws a `seq`.
        for wanted in recovery.unplaced {
            if isOwner(of: wanted.content.broadcast.app) {
                broadcasts.expect(broadcastLine(of: wanted.content.broadcast.app))
            }
            if wanted.content.broadcast.terms.speed > 0, !wanted.isStopped, !isOver(wanted.content.broadcast) {
                beginPaced(wanted, isRestored: true)
            } else {
                place(wanted)
            }
        }
    }

    private func isOver(_ broadcast: AcceptedBroadcast) -> Bool { !broadcast.isLiveOnly && broadcast.expiresAt <= now }

    private func isOwner(of app: AppID) -> Bool { Partition(of: app).owner(among: environment.shards) == index }

    /// In order of acceptance.
    private mutating func restore(_ found: ShardRecovery.Broadcast) {
        let number = broadcastLine(of: found.broadcast.app)
        if isOwner(of: found.broadcast.app) { broadcasts.noteAccepted(number, at: found.broadcast.acceptedAt) }
        broadcasts.add(
            number, found.broadcast, found.content, seqs: found.seqs, segment: found.segment,
            unreached: found.waiting, state: found.content == nil ? .over : .live, isStopped: found.isStopped)
        tally.restore(found.waiting)
        if found.content != nil { beginWakes(number, found.broadcast, isRestored: true) }
    }

    /// Puts back what is kept for a device that was found, the broadcasts at their places between the device's own messages.
    mutating func restoreLog(of device: Int, _ kept: [RecoveredMessage]) -> [(placed: PlacedBroadcast, seq: Seq)] {
        devices[device].caughtUp = broadcasts.newest
        let number = devices.appNumber(of: device)
        let local = broadcasts.local(Partition(of: devices[device].cid))
        let pending = broadcasts.pending(number, after: 0, local, above: devices[device].machine.acknowledged)
        var missed: [(placed: PlacedBroadcast, seq: Seq)] = []
        var next = 0
        for index in pending {
            let placed = broadcasts.lines[number].placed[index]
            let seq = placed.seqs[local]
            while next < kept.count, kept[next].seq < seq {
                restore(kept[next], device)
                next += 1
            }
            guard placed.state != .over else {
                missed.append((placed, seq))
                continue
            }
            noteTurn(of: placed, seq, device)
            broadcasts.reach(number, index)
            devices[device].machine.restore(KeptMessage(placed, seq: seq, wasOffline: true))
        }
        for message in kept[next...] { restore(message, device) }
        return missed
    }

    private mutating func restore(_ message: RecoveredMessage, _ device: Int) {
        var slot = TaskSlots.none
        if let task = message.task {
            if message.isReference {
                slot = taskSlots.retain(task)
            } else {
                noteOfSeveral(task, devices[device].cid, message.seq)
            }
        }
        devices[device].machine.restore(KeptMessage(restoring: message, taskSlot: slot))
    }

    mutating func tellMissed(_ missed: [(placed: PlacedBroadcast, seq: Seq)], _ device: Int) {
        for (placed, seq) in missed { tellMissed(placed, seq, device) }
    }
}

extension KeptMessage {
    /// A broadcast in a device's log. Its time is told, not known: see `DeviceEvent.broadcastEnded`.
    init(_ placed: PlacedBroadcast, seq: Seq, wasOffline: Bool) {
        self.init(
            seq: seq, expiresAt: .distantFuture,
            location: RecordLocation(segment: 0, offset: placed.ordinal, length: 0),
            payloadBytes: UInt32(clamping: placed.content?.broadcast.payload.count ?? 0),
            isLiveOnly: placed.broadcast.isLiveOnly, hasOwnAlert: placed.content?.broadcast.terms.alert != nil,
            wasOffline: wasOffline, stub: .notWanted,
            isShared: true)
    }

    /// Of a broadcast: it lies in no segment, and its place there is free for its name.
    var broadcastOrdinal: UInt32 { location.offset }
}

extension Acceptance {
    init(_ placed: PlacedBroadcast, seq: Seq, wasOnline: Bool) {
        self.init(
            seq: seq, messageID: placed.broadcast.messageID, taskID: placed.broadcast.taskID,
            acceptedAt: placed.broadcast.acceptedAt, expiresAt: placed.broadcast.expiresAt,
            payloadBytes: UInt32(clamping: placed.content?.broadcast.payload.count ?? 0), wasOnline: wasOnline,
            hasOwnAlert: placed.content?.broadcast.terms.alert != nil,
            stub: placed.broadcast.terms.wakes ? .none : .notWanted, isBroadcast: true)
    }
}
