internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryReceipts
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// A journal segment is about to go: the shard tells what of it must live on, in slices, so that no tick takes long.
struct Retirement {
    let segment: UInt32
    /// Who has something in it.
    let devices: ContiguousArray<Int32>
    /// Place of the next of them to look at.
    var cursor = 0
    /// Those that were looked at: they may be there several times.
    var seen: SeenNumbers
    /// The last slice has been sent; the store is at work.
    var isTold = false
    /// Devices before the cursor that have drops on their way to the disk, in order. Whether those get there decides what
    /// the rows must say. Until it is known no other drop of such a device is sent after them: where messages come and
    /// others make room for them all the time, there would never be a moment without one on its way.
    var undecided: [Int] = []
    /// Devices whose row, in place of a record that is not on disk, tells of a drop; once for each drop.
    var carried: [CID] = []
    /// All are looked at. With their rows go the ends of what was on its way to the disk then: the append with this ticket, and
    /// those before it, have to be decided first: what is counted of them, and the receipts, must not be missing behind the rows.
    var decidedBy: UInt64?
    /// Receipts that go to the tables with the segment's end.
    var receipts: [(lane: ReceiptLaneName, entries: [ReceiptEntry])] = []
}

/// A drop whose record is not on its way to the disk: the disk refused it, or it waits for those before it.
private struct WaitingDrop {
    var seq: Seq
    var state: DeliveryState
    /// The segment that holds the message.
    var segment: UInt32
}

/// What one tick tells of a segment that is about to go.
private struct RetirementSlice {
    let segment: UInt32
    let drops: [CID: [WaitingDrop]]
    var remains = SegmentRemains()
    /// Devices with drops of the segment's messages that their rows tell of.
    var carried: Set<CID> = []
}

extension Shard {
    private static var devicesPerSlice: Int { 2_048 }

    mutating func beginRetirement(of segment: UInt32) {
        retirement = Retirement(
            segment: segment, devices: segmentDevices.take(upTo: segment), seen: SeenNumbers(below: devices.endIndex))
    }

    mutating func endRetirement(of segment: UInt32) {
        retiredSegment = max(retiredSegment, segment)
        let carried = retirement?.carried ?? []
        let receipts = retirement?.receipts ?? []
        retirement = nil
        control.forgetTold()
        forgetRemoved(before: segment)
        for (lane, entries) in receipts { receiptsAdded(lane, entries) }
        for cid in carried {
            if let device = devices.index(of: cid) { tell(device: device, .dropSynced) }
        }
    }

    mutating func continueRetirement() {
        // What the slice would tell of ends would be in the tables before it is counted on disk.
        guard !awaitsCommit else { return }
        guard var current = retirement.take() else { return }
        guard !current.isTold else {
            retirement = current
            return
        }
        var slice = RetirementSlice(segment: current.segment, drops: waitingDrops())
        var undecided: [Int] = []
        for device in current.undecided where devices.isInUse(device) {
            if !gather(device, into: &slice) { undecided.append(device) }
        }
        // No more than a slice of devices has its drops held back at a time.
        let end =
            undecided.isEmpty ? min(current.cursor + Self.devicesPerSlice, current.devices.count) : current.cursor
        let isMoved = end > current.cursor || undecided.count < current.undecided.count
        while current.cursor < end {
            let device = Int(current.devices[current.cursor])
            current.cursor += 1
            guard current.seen.insert(device), devices.isInUse(device) else { continue }
            if !gather(device, into: &slice) { undecided.append(device) }
        }
        current.undecided = undecided
        let isThrough = current.cursor >= current.devices.count && undecided.isEmpty
        if isThrough, current.decidedBy == nil { current.decidedBy = lastTicket }
        let isLast = isThrough && isDecided(current.decidedBy ?? 0)
        current.isTold = isLast
        retirement = current
        if isLast {
            gatherBroadcasts(upTo: current.segment, into: &slice.remains)
            gatherRemoved(upTo: current.segment, into: &slice.remains)
            slice.remains.requests = requests.takeEntries(upTo: current.segment)
            slice.remains.revokedTokens = takeRevokedTokens(upTo: current.segment)
            slice.remains.controlRows = control.tell(upTo: current.segment) + carryReceipts()
        }
        // Held by the same devices again: nothing is new, and an empty part would only fill the store's memory.
        guard isMoved || isLast else { return }
        environment.store.submit(
            [
                .forget(carryDrops(of: slice.carried, current.segment)),
                .remains(segment: current.segment, slice.remains, isLast: isLast),
            ], from: index)
    }

    /// No append up to this one is on its way to the disk.
    func isDecided(_ ticket: UInt64) -> Bool {
        unsyncedHead >= unsynced.count || unsynced[unsyncedHead].ticket > ticket
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

    private func waitingDrops() -> [CID: [WaitingDrop]] {
        var drops: [CID: [WaitingDrop]] = [:]
        for item in deferred {
            guard case .dropRecorded(let cid, let record, let segment) = item.effect,
                case .settled(_, let seq, let state, _) = record
            else { continue }
            drops[cid, default: []].append(WaitingDrop(seq: seq, state: state, segment: segment))
        }
        return drops
    }

    /// Tells what remains of the device; false when that is not decided yet.
    private mutating func gather(_ device: Int, into slice: inout RetirementSlice) -> Bool {
        let cid = devices[device].cid
        let drops = slice.drops[cid] ?? []
        guard drops.count == Int(devices[device].machine.unsyncedDrops) else {
            devices[device].holdsDrops = true
            return false
        }
        let outside = drops.filter { $0.segment != slice.segment }
        let isCarrying = outside.count < drops.count
        if isCarrying { slice.carried.insert(cid) }
        let changed = devices[device].changedSegment
        if isCarrying || (changed != 0 && changed <= slice.segment) {
            var record = devices.record(of: device)
            // After a restart these are kept as before, and are dropped again.
            for drop in outside { record.uncount(drop) }
            if !outside.isEmpty { lowerGap(of: &record, device, kept: outside) }
            if isCarrying {
                slice.remains.carryingDevices.append(record)
            } else {
                slice.remains.devices.append(record)
            }
            devices[device].changedSegment = 0
            if !outside.isEmpty { markChanged(device) }
        }
        for message in devices[device].machine.log.messages(inSegment: slice.segment) {
            slice.remains.kept.append(MessageReference(cid: cid, seq: message.seq, location: message.location))
        }
        if devices[device].holdsDrops {
            devices[device].holdsDrops = false
            if !outside.isEmpty { deferredUntil = min(deferredUntil, now) }
        }
        return true
    }

    /// The messages go with the segment, so from its end on the devices' rows tell of their drops in place of the records.
    /// Answers the table rows that a retirement which broke off in another life may have left of them.
    private mutating func carryDrops(of devices: Set<CID>, _ segment: UInt32) -> [(cid: CID, seq: Seq)] {
        guard !devices.isEmpty else { return [] }
        var rows: [(cid: CID, seq: Seq)] = []
        var rest: [(record: Record, effect: CommitEffect)] = []
        for item in deferred {
            if case .dropRecorded(let cid, .settled(_, let seq, _, _), segment) = item.effect, devices.contains(cid) {
                retirement?.carried.append(cid)
                countDrop(item.effect, 1)
                rows.append((cid, seq))
            } else {
                rest.append(item)
            }
        }
        deferred = rest
        return rows
    }

    /// The gap must not stand at the place of a message that a restart finds kept: it would go with that one, untold. The
    /// last drop that counts has such a place, or a higher one is free.
    private func lowerGap(of record: inout DeviceRecord, _ device: Int, kept: [WaitingDrop]) {
        let places = Set(kept.map(\.seq))
        let number = devices.appNumber(of: device)
        let partition = Partition(of: record.cid)
        while let gap = record.gap, gap.upTo > record.acknowledged.next,
            places.contains(gap.upTo) || devices[device].machine.isKept(gap.upTo)
                || broadcasts.isPlace(number, partition, gap.upTo)
        {
            record.gap?.upTo = Seq(gap.upTo.rawValue - 1)
        }
    }
}

extension DeviceRecord {
    /// Takes a drop out of the gap again.
    fileprivate mutating func uncount(_ drop: WaitingDrop) {
        guard drop.seq > acknowledged, var smaller = gap else { return }
        smaller.remove(drop.state)
        gap = smaller.count > 0 ? smaller : nil
    }
}

/// A revoked API token and the segment that its record is in (0: the tables, or another shard's to keep).
struct RevokedToken {
    var expiresAt: Instant
    var segment: UInt32
}
