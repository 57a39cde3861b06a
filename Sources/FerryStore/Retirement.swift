internal import FerryCore
internal import FerryIO

/// One shard's answer, with what the journal knows of the moment it was given.
struct RemainsPart: Sendable {
    var segment: UInt32
    var shard: Int
    var remains: SegmentRemains
    var isLast: Bool
    var asOf: JournalPosition
    /// Of what was synced then.
    var highest: [Seq]
    var time: Instant
}

/// Moves what is still needed of the oldest segment into the tables, so that its file can go. Starts over from the beginning
/// after a failure: a write can be done twice.
struct Retirement {
    let segment: UInt32
    private var parts: [RemainsPart] = []
    private var finished: Set<Int> = []
    /// Rows that were forgotten since the shards were asked; a part may still name them.
    private var forgotten: Set<MessageKey> = []

    init(segment: UInt32) { self.segment = segment }

    mutating func add(_ part: RemainsPart) {
        guard part.segment == segment else { return }
        parts.append(part)
        if part.isLast { finished.insert(part.shard) }
    }

    mutating func forget(_ key: MessageKey) { forgotten.insert(key) }

    /// The time at which the last part was given.
    var time: Instant { parts.map(\.time).max() ?? .distantPast }

    func isComplete(shards: Int) -> Bool { finished.count == shards }

    /// Adds all that the tables must take over to `write`, which makes the segment past with it: it is there as a whole or not
    /// at all. `file` is the segment's. Answers messages that could not be read.
    func gather(
        into write: inout TableWrite, over meta: TablesMeta, file: (any DiskFile)?
    ) throws(StoreFailure) -> [MessageReference] {
        let lost = try putMessages(from: file, into: &write)
        for part in parts {
            for record in part.remains.devices + part.remains.carryingDevices {
                let row = DeviceRow(record: record, asOf: part.asOf)
                write.put(.devices, key: DeviceRow.key(record.cid), value: row.value)
            }
            for cid in part.remains.removed { write.delete(.devices, key: DeviceRow.key(cid)) }
            for (key, answer) in part.remains.requests {
                let row = RequestRow(key: key, answer: answer)
                write.put(.requests, key: row.keyBytes, value: row.value)
            }
            for kept in part.remains.broadcasts {
                write.put(
                    .broadcasts, key: BroadcastRow.key(kept.broadcast),
                    value: BroadcastRow.value(kept.broadcast, forgetAt: kept.forgetAt))
            }
            for kept in part.remains.placements {
                write.put(
                    .broadcasts, key: BroadcastRow.key(kept.placement, segment: segment, shard: part.shard),
                    value: BroadcastRow.value(kept.placement, forgetAt: kept.forgetAt))
            }
            for (task, forgetAt) in part.remains.stops {
                write.put(.broadcasts, key: BroadcastRow.stopKey(task), value: BroadcastRow.stopValue(forgetAt))
            }
            for row in part.remains.controlRows {
                if let value = row.value {
                    write.put(.control, key: row.name.bytes, value: value)
                } else {
                    write.delete(.control, key: row.name.bytes)
                }
            }
            for (digest, expiresAt) in part.remains.revokedTokens {
                write.put(.revoked, key: digest, value: RevokedRow.value(expiresAt))
            }
        }
        self.meta(over: meta).put(into: &write)
        return lost
    }

    /// In the order of the file, and in pieces: messages that lie together cost one read.
    private func putMessages(
        from file: (any DiskFile)?, into write: inout TableWrite
    ) throws(StoreFailure) -> [MessageReference] {
        var kept: [MessageReference] = []
        var bytes = 0
        for part in parts {
            for reference in part.remains.kept
            where reference.location.segment == segment
                && !forgotten.contains(MessageKey(cid: reference.cid, seq: reference.seq))
            {
                kept.append(reference)
                bytes += Int(reference.location.length) + QueueRow.keyBytes + 1
            }
        }
        for part in parts {
            bytes += part.remains.requests.count * Self.requestBytes
            bytes += (part.remains.devices.count + part.remains.carryingDevices.count) * Self.deviceBytes
        }
        guard let file else { return kept }
        kept.sort { $0.location.offset < $1.location.offset }
        // Growing would take twice as much for a moment, and a segment may be large.
        let others = parts.reduce(0) { $0 + $1.remains.requests.count + $1.remains.devices.count }
        write.reserve(rows: kept.count + others, bytes: bytes)
        var lost: [MessageReference] = []
        var next = 0
        while next < kept.count {
            let first = next
            let start = Int(kept[first].location.offset)
            var end = start
            while next < kept.count, next == first || MessageReading.end(of: kept[next]) - start <= Self.pieceBytes,
                Int(kept[next].location.offset) - end <= Self.gapBytes
            {
                end = max(end, MessageReading.end(of: kept[next]))
                next += 1
            }
            try MessageReading.bodies(of: kept[first..<next], in: file, from: start, to: end) { reference, body in
                guard let body else {
                    lost.append(reference)
                    return
                }
                write.put(MessageKey(cid: reference.cid, seq: reference.seq), body: body)
            }
        }
        return lost
    }

    private static let pieceBytes = 1 << 20
    /// What rows of these take, about.
    private static let requestBytes = 80
    private static let deviceBytes = 128
    /// So much that nobody wants is read rather than begin another piece.
    private static let gapBytes = 16 << 10

    private func meta(over last: TablesMeta) -> TablesMeta {
        var meta = last
        meta.firstSegment = segment + 1
        for part in parts {
            meta.lastTime = max(meta.lastTime, part.time)
            for index in meta.highest.indices { meta.highest[index] = max(meta.highest[index], part.highest[index]) }
        }
        return meta
    }
}
