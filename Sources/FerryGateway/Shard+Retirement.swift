internal import FerryCore
internal import FerryStore

/// A journal segment is about to go: the shard tells what of it must live on, in slices, so that no tick takes long.
struct Retirement {
    let segment: UInt32
    /// Index of the next device to look at.
    var cursor = 0
    /// The last slice has been sent; the store is at work.
    var isTold = false
}

extension Shard {
    private static var devicesPerSlice: Int { 2_048 }

    mutating func beginRetirement(of segment: UInt32) {
        retirement = Retirement(segment: segment)
    }

    mutating func endRetirement(of segment: UInt32) {
        retiredSegment = max(retiredSegment, segment)
        retirement = nil
    }

    mutating func continueRetirement() {
        guard let current = retirement, !current.isTold else { return }
        var remains = SegmentRemains()
        let end = min(current.cursor + Self.devicesPerSlice, devices.endIndex)
        for device in current.cursor..<max(current.cursor, end) where devices.isInUse(device) {
            gather(device, of: current.segment, into: &remains)
        }
        retirement?.cursor = end
        let isLast = end >= devices.endIndex
        if isLast {
            remains.requests = requests.entries(upTo: current.segment)
            for (digest, token) in revokedTokens where token.segment <= current.segment && token.segment != 0 {
                if token.expiresAt > now { remains.revokedTokens.append((digest, token.expiresAt)) }
                revokedTokens[digest]?.segment = 0
            }
            retirement?.isTold = true
        }
        environment.store.submit(
            [.remains(segment: current.segment, remains, isLast: isLast)], from: index)
    }

    private mutating func gather(_ device: Int, of segment: UInt32, into remains: inout SegmentRemains) {
        let changed = devices[device].changedSegment
        if changed != 0 && changed <= segment {
            remains.devices.append(devices[device].currentRecord)
            devices[device].changedSegment = 0
        }
        let log = devices[device].machine.log
        let cid = devices[device].record.cid
        for index in 0..<log.count where log[index].location.segment == segment {
            remains.kept.append(
                MessageReference(cid: cid, seq: log[index].seq, location: log[index].location))
        }
    }
}

/// A revoked API token and the segment that its record is in (0: the tables, or another shard's to keep).
struct RevokedToken {
    var expiresAt: Instant
    var segment: UInt32
}
