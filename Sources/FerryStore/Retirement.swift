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

/// Moves what is still needed of the oldest segment into the tables, so that its file can go. Starts over from the
/// beginning after a failure: every step can be done twice.
struct Retirement {
    let segment: UInt32
    private var parts: [RemainsPart] = []
    private var finished: Set<Int> = []
    /// Rows that were forgotten since the shards were asked; a part may still name them.
    private var forgotten: Set<[UInt8]> = []

    init(segment: UInt32) { self.segment = segment }

    mutating func add(_ part: RemainsPart) {
        guard part.segment == segment else { return }
        parts.append(part)
        if part.isLast { finished.insert(part.shard) }
    }

    mutating func forget(_ key: [UInt8]) { forgotten.insert(key) }

    func isComplete(shards: Int) -> Bool { finished.count == shards }

    /// Writes everything and flushes. `file` is the segment's. Answers messages that could not be read.
    func carryOut(
        tables: any Tables, file: (any DiskFile)?, requestWindow: Duration
    ) throws(StoreFailure) -> [MessageReference] {
        var batch = TableBatch(tables)
        let lost = try putMessages(from: file, into: &batch)
        let devices = parts.flatMap { part in part.remains.devices.map { ($0, part.asOf) } }
            .sorted { $0.0.cid < $1.0.cid }
        for (record, asOf) in devices {
            let row = DeviceRow(record: record, asOf: asOf)
            try batch.put(.devices, key: DeviceRow.key(record.cid), value: row.value)
        }
        let carrying = parts.flatMap { part in
            part.remains.carryingDevices.map { record in
                let row = DeviceRow(record: record, asOf: part.asOf)
                return TableChange.put(.devices, key: DeviceRow.key(record.cid), value: row.value)
            }
        }
        for part in parts {
            for (key, answer) in part.remains.requests {
                let row = RequestRow(key: key, answer: answer)
                try batch.put(.requests, key: row.keyBytes, value: row.value)
            }
            for kept in part.remains.broadcasts {
                try batch.put(
                    .broadcasts, key: BroadcastRow.key(kept.broadcast),
                    value: BroadcastRow.value(kept.broadcast, forgetAt: kept.forgetAt))
            }
            for kept in part.remains.placements {
                try batch.put(
                    .broadcasts, key: BroadcastRow.key(kept.placement, segment: segment, shard: part.shard),
                    value: BroadcastRow.value(kept.placement, forgetAt: kept.forgetAt))
            }
            for (digest, expiresAt) in part.remains.revokedTokens {
                try batch.put(.revoked, key: digest, value: RevokedRow.value(expiresAt))
            }
        }
        let meta = try self.meta(over: TablesMeta.read(from: tables) ?? TablesMeta())
        try purge(tables, before: meta.lastTime, requestWindow: requestWindow, &batch)
        try batch.finish()
        try tables.apply(carrying + [meta.change])
        try tables.flush()
        return lost
    }

    private func putMessages(
        from file: (any DiskFile)?, into batch: inout TableBatch
    ) throws(StoreFailure) -> [MessageReference] {
        var lost: [MessageReference] = []
        let kept = parts.flatMap(\.remains.kept).map { (key: QueueRow.key($0.cid, $0.seq), reference: $0) }
            .filter { $0.reference.location.segment == segment && !forgotten.contains($0.key) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        for (key, reference) in kept {
            guard let file, let body = try MessageReading.body(of: reference, in: file) else {
                lost.append(reference)
                continue
            }
            try batch.put(.queue, key: key, value: body)
        }
        return lost
    }

    private func meta(over last: TablesMeta) -> TablesMeta {
        var meta = last
        meta.firstSegment = segment + 1
        for part in parts {
            meta.lastTime = max(meta.lastTime, part.time)
            for index in meta.highest.indices { meta.highest[index] = max(meta.highest[index], part.highest[index]) }
        }
        return meta
    }

    /// Deletes what nobody will ask for again.
    private func purge(
        _ tables: any Tables, before now: Instant, requestWindow: Duration, _ batch: inout TableBatch
    ) throws(StoreFailure) {
        var old: [[UInt8]] = []
        let oldest = now + (.zero - requestWindow)
        try tables.scan(.requests) { key, value throws(StoreFailure) in
            guard let row = RequestRow(key: key, value: value), row.answer.acceptedAt < oldest else { return false }
            old.append([UInt8](key))
            return old.count < Self.purgeLimit
        }
        for key in old { try batch.delete(.requests, key: key) }
        var expired: [[UInt8]] = []
        try tables.scan(.revoked) { key, value throws(StoreFailure) in
            if let expiresAt = RevokedRow.expiry(value), expiresAt <= now { expired.append([UInt8](key)) }
            return true
        }
        for key in expired { try batch.delete(.revoked, key: key) }
        var forgotten: [[UInt8]] = []
        try tables.scan(.broadcasts) { key, value throws(StoreFailure) in
            if let forgetAt = BroadcastRow.forgetAt(value), forgetAt <= now { forgotten.append([UInt8](key)) }
            return true
        }
        for key in forgotten { try batch.delete(.broadcasts, key: key) }
    }

    /// More than a segment can bring in, so that purging keeps up.
    private static let purgeLimit = 1 << 20
}
