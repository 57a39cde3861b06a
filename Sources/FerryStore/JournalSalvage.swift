internal import FerryCore
internal import FerryIO

/// Makes a damaged journal one that opens: what cannot be read is covered by holes, readable batches stay where they are,
/// and a new epoch tells every device that the numbers of before mean nothing.
struct JournalSalvage {
    private let folder: JournalFolder
    private let disk: any Disk
    private let format: FolderFormat

    /// What is to become of one segment.
    private struct Plan {
        var segment: JournalFolder.Found
        var firstBatch: UInt64
        var holes: [(range: Range<Int>, number: UInt64)] = []
        /// How far it counts, and the batch number after that.
        var end: Int
        var number: UInt64
    }

    init(disk: any Disk, format: FolderFormat) {
        self.disk = disk
        self.format = format
        folder = JournalFolder(disk: disk, salt: format.salt)
    }

    /// Answers the folder's format: a new one when there was damage.
    /// - Parameter hasLostTables: there was damage elsewhere, whatever the journal looks like.
    func run(from first: UInt32, hasLostTables: Bool = false) throws(StoreFailure) -> FolderFormat {
        var found = try folder.find(from: first)
        if found.isEmpty { found = [JournalFolder.Found(number: first)] }
        var plans: [Plan] = []
        var isDamaged = hasLostTables
        for (index, segment) in found.enumerated() {
            let next = index + 1 < found.count ? found[index + 1] : nil
            plans.append(try plan(segment, next: next, after: plans.last, &isDamaged))
        }
        join(&plans, &isDamaged)
        guard isDamaged else { return format }
        var fresh = FolderFormat.new(since: (found.last?.number ?? first) + 1)
        fresh.salt = format.salt
        // Before the first trace of the damage goes.
        try fresh.write(to: disk)
        for (index, plan) in plans.enumerated() {
            try carryOut(plan, previousLength: index == 0 ? 0 : plans[index - 1].end)
        }
        return fresh
    }

    private func plan(
        _ segment: JournalFolder.Found, next: JournalFolder.Found?, after previous: Plan?, _ isDamaged: inout Bool
    ) throws(StoreFailure) -> Plan {
        let limit = next?.header.map { Int($0.previousLength) }
        var bytes: [UInt8] = []
        if let file = segment.file { bytes = try folder.read(file, limit: limit) }
        let isUnused = bytes.dropFirst(SegmentHeader.bytes).allSatisfy { $0 == 0 }
        var plan = Plan(segment: segment, firstBatch: 0, end: SegmentHeader.bytes, number: 0)
        if let header = segment.header {
            plan.firstBatch = header.firstBatch
            if (header.epoch == format.epoch) != (segment.number >= format.since) { isDamaged = true }
        } else {
            // A last segment whose header was under way is no damage.
            if next != nil || previous == nil || !isUnused { isDamaged = true }
            plan.firstBatch = previous?.number ?? 1
        }
        bytes.withUnsafeBytes { buffer in
            if segment.header == nil {
                var scan = SegmentScan(buffer, salt: format.salt, segment: segment.number, firstBatch: 0)
                if scan.skipDamage() { plan.firstBatch = scan.number }
            }
            var scan = SegmentScan(
                buffer, salt: format.salt, segment: segment.number, firstBatch: plan.firstBatch)
            walk: while true {
                switch scan.next() {
                case .batch: continue
                case .end: break walk
                case .broken(let tail):
                    if next != nil || tail == .damaged { isDamaged = true }
                    let start = scan.offset
                    guard scan.skipDamage() else { break walk }
                    if scan.offset > start { plan.holes.append((start..<scan.offset, scan.number &- 1)) }
                }
            }
            plan.end = scan.offset
            plan.number = scan.number
            if let limit, limit != plan.end { isDamaged = true }
        }
        return plan
    }

    /// Where batch numbers are missing between two segments, a hole at the end of the first stands for them.
    private func join(_ plans: inout [Plan], _ isDamaged: inout Bool) {
        for index in plans.indices.dropLast() where plans[index].number != plans[index + 1].firstBatch {
            isDamaged = true
            if plans[index + 1].firstBatch < plans[index].number {
                plans[index + 1].firstBatch = plans[index].number
                continue
            }
            let start = plans[index].end
            plans[index].end = start + BatchHeader.bytes
            plans[index].number = plans[index + 1].firstBatch
            plans[index].holes.append((start..<plans[index].end, plans[index].number &- 1))
        }
    }

    private func carryOut(_ plan: Plan, previousLength: Int) throws(StoreFailure) {
        let number = plan.segment.number
        do throws(SystemError) {
            let file =
                if let file = plan.segment.file { file } else {
                    try disk.create(SegmentHeader.fileName(number), bytes: SegmentHeader.bytes)
                }
            for hole in plan.holes {
                let header = BatchHeader(
                    kind: .hole, recordBytes: UInt32(truncatingIfNeeded: hole.range.count - BatchHeader.bytes),
                    recordCount: 0, number: hole.number, time: .distantPast)
                try file.write(
                    header.encoded(salt: format.salt, segment: number, offset: hole.range.lowerBound),
                    at: hole.range.lowerBound)
            }
            let header = SegmentHeader(
                segment: number, epoch: plan.segment.header?.epoch ?? format.epoch, firstBatch: plan.firstBatch,
                previousLength: UInt32(truncatingIfNeeded: previousLength))
            try file.write(header.encoded(salt: format.salt), at: 0)
            try file.sync()
            if plan.segment.file == nil { try disk.syncDirectory() }
        } catch {
            throw StoreFailure(error)
        }
    }
}
