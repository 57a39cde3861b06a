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
                let refused = takeRefusedDrops(of: device)
                guard refused.count >= Int(devices[device].machine.unsyncedDrops) else {
                    deferred += refused
                    retirement?.isHeld = true
                    break
                }
                retirement?.carried += refused.map { _ in devices[device].record.cid }
                gather(device, of: current.segment, mustTell: !refused.isEmpty, into: &remains)
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
        environment.store.submit(
            [.remains(segment: current.segment, remains, isLast: isLast)], from: index)
    }

    private mutating func takeRevokedTokens(upTo segment: UInt32) -> [(digest: [UInt8], expiresAt: Instant)] {
        // An expired token is refused without this list.
        let time = now
        revokedTokens = revokedTokens.filter { $0.value.expiresAt > time }
        let going = revokedTokens.filter { $0.value.segment != 0 && $0.value.segment <= segment }
        for digest in going.keys { revokedTokens[digest]?.segment = 0 }
        return going.map { (digest: $0.key, expiresAt: $0.value.expiresAt) }
    }

    /// The drops of a device whose records the disk refused, taken off the list of what is tried again. The messages may lie
    /// in the segment that goes, so the device's row tells of them instead.
    private mutating func takeRefusedDrops(of device: Int) -> [(record: Record, effect: CommitEffect)] {
        guard !deferred.isEmpty, devices[device].machine.unsyncedDrops > 0 else { return [] }
        let cid = devices[device].record.cid
        func isDrop(_ item: (record: Record, effect: CommitEffect)) -> Bool {
            if case .dropRecorded(cid, _) = item.effect { true } else { false }
        }
        let taken = deferred.filter(isDrop)
        deferred.removeAll(where: isDrop)
        return taken
    }

    private mutating func gather(
        _ device: Int, of segment: UInt32, mustTell: Bool, into remains: inout SegmentRemains
    ) {
        let changed = devices[device].changedSegment
        if mustTell || (changed != 0 && changed <= segment) {
            remains.devices.append(devices[device].currentRecord)
            devices[device].changedSegment = 0
        }
        let cid = devices[device].record.cid
        for message in devices[device].machine.log.messages(inSegment: segment) {
            remains.kept.append(MessageReference(cid: cid, seq: message.seq, location: message.location))
        }
    }
}

/// A revoked API token and the segment that its record is in (0: the tables, or another shard's to keep).
struct RevokedToken {
    var expiresAt: Instant
    var segment: UInt32
}
