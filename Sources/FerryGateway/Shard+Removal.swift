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
    mutating func remove(_ removal: Removal) {
        if let device = devices.index(of: removal.cid) {
            remove(removal, device: device)
        } else {
            wait(for: removal.cid, .removal(removal))
        }
    }

    /// The device is known, or known not to exist (`device` nil).
    mutating func remove(_ removal: Removal, device: Int?) {
        guard let device, devices.app(of: device) == removal.app else {
            return notRemoved(removal, .targetInvalid(removal.cid.description))
        }
        // Another call is at it.
        guard !devices[device].isLeaving else { return notRemoved(removal, .busy(retryAfterSeconds: 1)) }
        // It may have come back since its name was taken.
        if removal.origin == nil, !isForgotten(device) { return }
        devices[device].isLeaving = true
        writeWaitingDrops(device)
        countRemovedMessages(device)
        devices[device].pendingChanges += 1
        append(.deviceRemoved(cid: removal.cid, at: now), .deviceRemoved(removal))
        // In the same batch: of what goes to the disk for one turn all is there, or the end of it is not.
        if receiptDesk.isActive { noteReceiptsOfRemoval(device) }
        put([ControlRow(.profile, Partition(of: removal.cid), key: removal.cid.value.bytes, value: nil)])
    }

    private mutating func notRemoved(_ removal: Removal, _ error: APIError) {
        if let origin = removal.origin { settle(origin, .failure(error)) }
    }

    /// The record is on disk.
    mutating func deviceRemoved(_ removal: Removal, segment: UInt32) {
        guard let device = devices.index(of: removal.cid) else { return }
        let number = devices.appNumber(of: device)
        endConnection(of: device)
        // So that none of its broadcasts counts for it any more, told or not.
        catchUp(device)
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
            devices[device].isLeaving = false
            devices[device].pendingChanges -= 1
            settleRemovedMessages(of: removal.cid, devices.appNumber(of: device), isRemoved: false)
        }
        receiptDesk.removalRefused(of: removal.cid)
        notRemoved(removal, .busy(retryAfterSeconds: 5))
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

    /// More of the pass can be done now.
    var canContinueRetention: Bool { users.removals.pass.isRunning && loading.count < Self.mostLoading && !isDraining }

    /// When the next pass is to begin.
    var nextRetention: Instant {
        guard environment.configuration.deviceRetention != nil, !users.removals.pass.isRunning else {
            return .distantFuture
        }
        return users.removals.pass.due ?? .distantFuture
    }

    /// A slice of the pass over all devices, behind all else of the tick.
    mutating func continueRetention() {
        guard let period = environment.configuration.deviceRetention, !isDraining else { return }
        guard let due = users.removals.pass.due else {
            users.removals.pass.due = now + Self.restAfterStart
            return
        }
        if !users.removals.pass.isRunning, now >= due { beginRetention() }
        guard canContinueRetention else { return }
        let number = users.removals.pass.app
        // Who is there is seen: it is noted now and then, so that a long session does not count as an absence.
        let noted = now + (.zero - period / 4)
        let slice = audience.unseen(
            number, since: noted, after: users.removals.pass.cursor, visits: Self.visitsPerSlice)
        let limit = now + (.zero - period)
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
        guard !users.removals.pass.hasLookedForOrphans else { return }
        users.removals.pass.hasLookedForOrphans = true
        // Of a removal that a crash cut in two.
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
        let app = devices.app(of: device)
        let removal = Removal(app: app, cid: devices[device].cid, origin: nil)
        post(.order(.user(.forget(removal))), to: Partition(of: app).owner(among: environment.shards))
    }

    private func isForgotten(_ device: Int) -> Bool {
        guard let period = environment.configuration.deviceRetention else { return false }
        return devices[device].connection == nil && !devices[device].machine.presence.isOnline
            && !devices[device].isLeaving && devices[device].seenAt + period <= now
    }
}

/// Devices that are gone or may be to go.
struct RemovalState {
    /// Those that are gone, with the segment of the record that says so.
    var devices: [CID: UInt32] = [:]
    /// Those whose record of removal is on its way to the disk.
    var leaving: [CID: LeavingMessages] = [:]
    var pass = RetentionPass()
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
