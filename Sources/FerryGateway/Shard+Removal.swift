internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// The end of a device: a backend wants it gone, or it was not seen for longer than the retention. All of it goes: what is kept
/// for it ends, its session ends, nothing of it is found any more. First its name at the owner of the app, then itself.
extension Shard {
    mutating func erase(_ removal: Removal) {
        if let device = devices.index(of: removal.cid) {
            erase(removal, device: device)
        } else {
            wait(for: removal.cid, .removal(removal))
        }
    }

    /// The device is known, or known not to exist (`device` nil). From here on it is not there for anybody else, so that neither
    /// a login nor a name comes between.
    mutating func erase(_ removal: Removal, device: Int?) {
        guard let device, devices.app(of: device) == removal.app else {
            return notRemoved(removal, .targetInvalid(removal.cid.description))
        }
        // Another call is at it.
        guard !devices[device].isLeaving else { return notRemoved(removal, .busy(retryAfterSeconds: 1)) }
        devices[device].isLeaving = true
        post(.order(.user(.forget(removal))), to: Partition(of: removal.app).owner(among: environment.shards))
    }

    /// Its name is gone.
    mutating func remove(_ removal: Removal) {
        guard let device = devices.index(of: removal.cid), devices[device].isLeaving else { return }
        users.removals.waiting.append((removal, now + Self.longestWait))
    }

    private static var longestWait: Duration { .seconds(5) }

    /// At each tick. The record ends all that was accepted for the device, so it is written when all of that is known: no record
    /// of the device is on its way to the disk, and no place of a push to all of its app.
    mutating func continueRemovals() {
        guard !users.removals.waiting.isEmpty else { return }
        let waiting = users.removals.waiting
        users.removals.waiting = []
        for (removal, end) in waiting {
            guard let device = devices.index(of: removal.cid) else {
                notRemoved(removal, .targetInvalid(removal.cid.description))
                continue
            }
            if devices[device].pendingChanges == 0, !tasks.isPlacing(devices.appNumber(of: device)) {
                write(removal, device)
            } else if now < end {
                users.removals.waiting.append((removal, end))
            } else {
                giveBack(removal)
                keep(removal, .busy(retryAfterSeconds: 5))
            }
        }
    }

    private mutating func write(_ removal: Removal, _ device: Int) {
        writeWaitingDrops(device)
        countRemovedMessages(device)
        devices[device].pendingChanges += 1
        append(.deviceRemoved(cid: removal.cid, at: now), .deviceRemoved(removal))
        // In the same batch: of what goes to the disk for one turn all is there, or the end of it is not.
        if receiptDesk.isActive { noteReceiptsOfRemoval(device) }
        put([ControlRow(.profile, Partition(of: removal.cid), key: removal.cid.value.bytes, value: nil)])
    }

    /// The device stays, and is there again for everybody.
    mutating func keep(_ removal: Removal, _ error: APIError) {
        if let device = devices.index(of: removal.cid) {
            devices[device].isLeaving = false
            armResting(device)
        }
        notRemoved(removal, error)
    }

    mutating func notRemoved(_ removal: Removal, _ error: APIError) {
        if let origin = removal.origin { settle(origin, .failure(error)) }
    }

    /// The record is on disk.
    mutating func deviceRemoved(_ removal: Removal, segment: UInt32) {
        guard let device = devices.index(of: removal.cid) else { return }
        let number = devices.appNumber(of: device)
        endConnection(of: device)
        endDeferred(of: device)
        // It was there, or might have been again at once: now it is not.
        if devices[device].machine.presence.isOnline { tellPresence(device, isOnline: false) }
        for message in devices[device].machine.removeAll() {
            if message.isShared {
                endShared(message, .deviceRemoved, device)
                continue
            }
            note(.ended(message.seq, .deviceRemoved), device)
            let isCounted = isCountedWithRemoval(message.seq, .deviceRemoved, device)
            if message.isReference { countReferenceEnd(message, isCounted ? nil : .deviceRemoved) }
            if !isCounted { countEnd(.deviceRemoved, device) }
            if receiptDesk.isActive { noteReceipt(message.seq, .deviceRemoved, device) }
            if !message.isReference { giveBackRoom(Int(message.payloadBytes)) }
            if isInTables(message.location.segment) { forgotten.append((removal.cid, message.seq)) }
        }
        settleRemovedMessages(of: removal.cid, number, isRemoved: true)
        broadcasts.register(broadcastLine(of: removal.app), Partition(of: removal.cid), count: -1)
        receiptDesk.endRemoval(of: removal.cid)
        tokenChanged(device, from: devices[device].token, to: nil)
        audience.remove(number, removal.cid)
        users.removals.devices[removal.cid] = segment
        if devices[device].isAckPending { acknowledging.removeAll { Int($0) == device } }
        wheel.cancel(timer(of: device))
        countRemoval(device)
        devices.remove(device)
        counters.devicesRemoved += 1
        let owner = Partition(of: removal.app).owner(among: environment.shards)
        post(.order(.user(.gone(removal.app, removal.cid))), to: owner)
        if let origin = removal.origin { settle(origin, .success(.user(.done))) }
    }

    /// It is not on disk and will not be: the device stays.
    mutating func removalRefused(_ removal: Removal) {
        if let device = devices.index(of: removal.cid) {
            devices[device].pendingChanges -= 1
            settleRemovedMessages(of: removal.cid, devices.appNumber(of: device), isRemoved: false)
        }
        receiptDesk.removalRefused(of: removal.cid)
        // Of what was stopped meanwhile it kept its messages.
        tasks.lists.sweepAgain()
        giveBack(removal)
        keep(removal, .busy(retryAfterSeconds: 5))
    }

    private mutating func giveBack(_ removal: Removal) {
        // What was said of it meanwhile went to the disk as of a device that is gone.
        audience.unwrittenProfiles[removal.cid] = removal.app
        deferredUntil = min(deferredUntil, now + .seconds(1))
        guard removal.alias != nil else { return }
        post(.order(.user(.giveBack(removal))), to: Partition(of: removal.app).owner(among: environment.shards))
    }

    /// Drops that wait for a segment to retire go to the disk no more: the record of the removal ends them all.
    private mutating func endDeferred(of device: Int) {
        let cid = devices[device].cid
        let own = deferred.filter { $0.effect.isOf(cid) }
        guard !own.isEmpty else { return }
        deferred.removeAll { $0.effect.isOf(cid) }
        for (record, effect) in own {
            guard case .dropRecorded(_, _, let place) = effect, case .settled(_, let seq, _, _) = record else {
                continue
            }
            if users.removals.leaving[cid]?.entries[seq] == nil { countDrop(effect, 1) }
            if isInTables(place) { forgotten.append((cid, seq)) }
        }
    }

    private mutating func endConnection(of device: Int) {
        guard let slot = devices[device].connection else { return }
        endSession(slot, with: .deviceRemoved)
        if Int(connections[slot].device) == device { connections[slot].device = -1 }
        devices[device].connection = nil
    }

    /// Devices whose record of removal goes with the segment: the tables forget them, but for one that has registered anew.
    mutating func gatherRemoved(upTo segment: UInt32, into remains: inout SegmentRemains) {
        guard !users.removals.devices.isEmpty else { return }
        for (cid, place) in users.removals.devices where place <= segment {
            if let device = devices.index(of: cid) {
                remains.devices.append(devices.record(of: device))
            } else {
                remains.removed.append(cid)
            }
        }
    }

    /// Until the tables have forgotten the device, and whoever read them before has said so, its row is no answer.
    func isRemoved(_ cid: CID) -> Bool { !users.removals.devices.isEmpty && users.removals.devices[cid] != nil }

    mutating func forgetRemoved(before segment: UInt32) {
        guard !users.removals.devices.isEmpty else { return }
        users.removals.devices = users.removals.devices.filter { $0.value >= segment }
    }

    // MARK: - Retention

    private static var visitsPerSlice: Int { 1_024 }
    private static var mostLoading: Int { 256 }
    private static var restBetweenPasses: Duration { .seconds(3_600) }
    private static var restAfterStart: Duration { .seconds(300) }
    /// After a long absence devices get time to come back, as long as the absence was and this at most.
    private static var longestRest: Duration { .seconds(7 * 86_400) }

    /// More of the pass can be done now.
    var canContinueRetention: Bool { users.removals.pass.isRunning && loading.count < Self.mostLoading && !isDraining }

    /// When the next pass is to begin.
    var nextRetention: Instant {
        guard environment.configuration.deviceRetention != nil || !users.removals.pass.hasLookedForOrphans,
            !users.removals.pass.isRunning
        else { return .distantFuture }
        return users.removals.pass.due ?? .distantFuture
    }

    /// A slice of the pass over all devices, behind all else of the tick.
    mutating func continueRetention() {
        guard !isDraining else { return }
        guard let due = users.removals.pass.due else {
            users.removals.pass.due = now + Self.restAfterStart
            return
        }
        if now >= due { dropOrphans() }
        guard let period = environment.configuration.deviceRetention else { return }
        if !users.removals.pass.isRunning, now >= due { beginRetention() }
        guard canContinueRetention else { return }
        let number = users.removals.pass.app
        // Who is there is seen: it is noted now and then, so that a long session does not count as an absence.
        let noted = now + (.zero - period / 4)
        let slice = audience.unseen(
            number, since: noted, after: users.removals.pass.cursor, visits: Self.visitsPerSlice)
        let limit = users.removals.absences.limit(of: period, now: now)
        for cid in slice.devices {
            if let device = devices.index(of: cid), devices[device].connection != nil {
                noteSeen(device)
            } else if audience.wasUnseen(number, cid, since: limit) {
                lookWhetherForgotten(cid)
            }
        }
        users.removals.pass.cursor = slice.cursor
        guard slice.cursor == nil else { return }
        users.removals.pass.app += 1
        guard users.removals.pass.app >= audience.rosters.count else { return }
        users.removals.pass.isRunning = false
        users.removals.pass.due = now + Self.restBetweenPasses
    }

    private mutating func beginRetention() {
        users.removals.pass.isRunning = true
        users.removals.pass.app = 0
        users.removals.pass.cursor = nil
    }

    /// Of a removal that a crash cut in two.
    private mutating func dropOrphans() {
        guard !users.removals.pass.hasLookedForOrphans else { return }
        users.removals.pass.hasLookedForOrphans = true
        for number in audience.rosters.indices {
            for cid in audience.rosters[number].orphans() {
                audience.remove(number, cid)
                put([ControlRow(.profile, Partition(of: cid), key: cid.value.bytes, value: nil)])
            }
        }
    }

    private mutating func lookWhetherForgotten(_ cid: CID) {
        if let device = devices.index(of: cid) {
            forgetIfUnseen(device)
        } else {
            wait(for: cid, .retention)
        }
    }

    /// The day of its last login says that it may be over; the record says when that was.
    mutating func forgetIfUnseen(_ device: Int) {
        guard isForgotten(device) else { return }
        erase(Removal(app: devices.app(of: device), cid: devices[device].cid, origin: nil), device: device)
    }

    /// At a start, before anybody is served: a device could not be seen while the gateway was not there.
    mutating func noteAbsence(_ recovery: ShardRecovery) {
        users.removals.absences = recovery.absences
        guard users.removals.absences.note(from: recovery.lastTime, until: now) else { return }
        EventLog.write(
            .info, "the gateway was away, which counts against no device",
            ["seconds": String((now - recovery.lastTime).inMilliseconds / 1_000)])
        // Each shard for itself: none of its records is on disk without this one.
        put([ControlRow(.absences, Partition(index: index), key: [0], value: users.removals.absences.row)])
        let rest = min(now - recovery.lastTime, Self.longestRest)
        users.removals.pass.due = now + Self.restAfterStart + rest
    }

    private func isForgotten(_ device: Int) -> Bool {
        guard let period = environment.configuration.deviceRetention else { return false }
        return devices[device].connection == nil && !devices[device].machine.presence.isOnline
            && !devices[device].isLeaving
            && users.removals.absences.missed(since: devices[device].seenAt, now: now) >= period
    }
}

extension CommitEffect {
    /// It is a step of the device's stream that can wait.
    fileprivate func isOf(_ cid: CID) -> Bool {
        switch self {
        case .dropRecorded(let other, _, _), .stubsDueRecorded(let other, _): other == cid
        default: false
        }
    }
}

/// Devices that are gone or may be to go.
struct RemovalState {
    /// Those that are gone, with the segment of the record that says so.
    var devices: [CID: UInt32] = [:]
    /// Those that are about to go, and until when they wait for what is on its way to the disk. In order of that time.
    var waiting: [(removal: Removal, end: Instant)] = []
    /// Those whose record of removal is on its way to the disk.
    var leaving: [CID: LeavingMessages] = [:]
    var pass = RetentionPass()
    var absences = Absences()

    /// When the first of those that wait is told to come again.
    var nextGivenUp: Instant { waiting.first?.end ?? .distantFuture }
}

/// The look at all devices for those that were not seen for long.
struct RetentionPass {
    var isRunning = false
    /// nil before the first turn: that one sets it, so that a start is not burdened with a pass.
    var due: Instant?
    /// Where it stands: the app's number, the last device.
    var app = 0
    var cursor: CID?
    var hasLookedForOrphans = false
}
