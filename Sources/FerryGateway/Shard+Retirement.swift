internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// A journal segment is about to go: the shard tells what of it must live on, in slices, so that no tick takes long.
struct Retirement {
    let segment: UInt32
    /// Index of the next device to look at.
    var cursor = 0
    /// The last slice has been sent; the store is at work.
    var isTold = false
    /// The device at the cursor has a drop on its way to the disk. Whether it gets there decides what its row must say.
    var isHeld = false
    /// Devices whose row, in place of a record that the disk refused, tells of a drop; once for each drop.
    var carried: [CID] = []
}

extension Shard {
    private static var devicesPerSlice: Int { 2_048 }

    mutating func beginRetirement(of segment: UInt32) {
        retirement = Retirement(segment: segment)
    }

    mutating func endRetirement(of segment: UInt32) {
        retiredSegment = max(retiredSegment, segment)
        let carried = retirement?.carried ?? []
        retirement = nil
        for cid in carried {
            if let device = devices.index(of: cid) { tell(device: device, .dropSynced) }
        }
    }

    mutating func continueRetirement() {
        guard let current = retirement, !current.isTold else { return }
        var remains = SegmentRemains()
        let end = min(current.cursor + Self.devicesPerSlice, devices.endIndex)
        var device = current.cursor
        retirement?.isHeld = false
        while device < end {
            if devices.isInUse(device) {
                guard drops(of: device).refused == Int(devices[device].machine.unsyncedDrops) else {
                    retirement?.isHeld = true
                    break
                }
                gather(device, of: current.segment, into: &remains)
            }
            device += 1
        }
        retirement?.cursor = device
        let isLast = device >= devices.endIndex
        if isLast {
            remains.requests = requests.takeEntries(upTo: current.segment)
            remains.revokedTokens = takeRevokedTokens(upTo: current.segment)
            retirement?.isTold = true
        }
        // Held at the same place again: nothing is new, and an empty part would only fill the store's memory.
        if !isLast, device == current.cursor { return }
        environment.store.submit(
            [.remains(segment: current.segment, remains, isLast: isLast)], from: index)
    }

    private mutating func takeRevokedTokens(upTo segment: UInt32) -> [(digest: [UInt8], expiresAt: Instant)] {
        forgetExpiredTokens()
        let going = revokedTokens.filter { $0.value.segment != 0 && $0.value.segment <= segment }
        for digest in going.keys { revokedTokens[digest]?.segment = 0 }
        return going.map { (digest: $0.key, expiresAt: $0.value.expiresAt) }
    }

    /// An expired token is refused without this list.
    private mutating func forgetExpiredTokens() {
        let time = now
        revokedTokens = revokedTokens.filter { $0.value.expiresAt > time }
        expiredTokensForgottenAt = now
    }

    /// While nothing is taken in no segment retires, and they would fill the memory that they keep others from for ever.
    mutating func forgetExpiredTokensInTime() {
        guard !revokedTokens.isEmpty, now >= expiredTokensForgottenAt + .seconds(3_600) else { return }
        forgetExpiredTokens()
    }

    /// How many drops of the device wait for another try because the disk refused their records, and what of them is of
    /// messages that `segment` does not hold.
    private func drops(of device: Int, outside segment: UInt32 = 0) -> (refused: Int, outside: [Record]) {
        guard !deferred.isEmpty, devices[device].machine.unsyncedDrops > 0 else { return (0, []) }
        var refused = 0
        var outside: [Record] = []
        for item in deferred {
            guard case .dropRecorded(devices[device].cid, let record, let place) = item.effect else { continue }
            refused += 1
            if place != segment { outside.append(record) }
        }
        return (refused, outside)
    }

    private mutating func gather(_ device: Int, of segment: UInt32, into remains: inout SegmentRemains) {
        let changed = devices[device].changedSegment
        let (refused, outside) = drops(of: device, outside: segment)
        if refused > outside.count { carryDrops(of: device, segment) }
        if refused > outside.count || (changed != 0 && changed <= segment) {
            var record = devices.record(of: device)
            // After a restart these are kept as before, and are dropped again.
            for drop in outside { record.uncount(drop) }
            if !outside.isEmpty { lowerGap(of: &record, machine: devices[device].machine, kept: outside) }
            if refused > outside.count {
                remains.carryingDevices.append(record)
            } else {
                remains.devices.append(record)
            }
            devices[device].changedSegment = outside.isEmpty ? 0 : currentSegment
        }
        let cid = devices[device].cid
        for message in devices[device].machine.log.messages(inSegment: segment) {
            remains.kept.append(MessageReference(cid: cid, seq: message.seq, location: message.location))
        }
    }

    /// The messages go with the segment, so from its end on the device's row tells of their drops in place of the records.
    private mutating func carryDrops(of device: Int, _ segment: UInt32) {
        let cid = devices[device].cid
        func goes(_ item: (record: Record, effect: CommitEffect)) -> Bool {
            if case .dropRecorded(cid, _, segment) = item.effect { true } else { false }
        }
        retirement?.carried += deferred.filter(goes).map { _ in cid }
        deferred.removeAll(where: goes)
    }

    /// The gap must not stand at the place of a message that a restart finds kept: it would go with that one, untold. The
    /// last drop that counts has such a place, or a higher one is free.
    private func lowerGap(of record: inout DeviceRecord, machine: DeviceStateMachine, kept: [Record]) {
        let places = kept.compactMap { if case .settled(_, let seq, _, _) = $0 { seq } else { nil } }
        while let gap = record.gap, gap.upTo > record.acknowledged.next,
            places.contains(gap.upTo) || machine.isKept(gap.upTo)
        {
            record.gap?.upTo = Seq(gap.upTo.rawValue - 1)
        }
    }
}

extension DeviceRecord {
    /// Takes a drop out of the gap again.
    fileprivate mutating func uncount(_ drop: Record) {
        guard case .settled(_, let seq, let state, _) = drop, seq > acknowledged, var smaller = gap else { return }
        smaller.remove(state)
        gap = smaller.count > 0 ? smaller : nil
    }
}

/// A revoked API token and the segment that its record is in (0: the tables, or another shard's to keep).
struct RevokedToken {
    var expiresAt: Instant
    var segment: UInt32
}
