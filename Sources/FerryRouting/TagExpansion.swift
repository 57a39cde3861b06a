package import FerryCore

/// The devices of one shard that are to get a task's content, by partition, and how far it is with them. What it knows is in rows:
/// one with the devices of a partition, one with the count of those that are done. So the count can be put on disk in the same
/// batch as the messages that it tells of, and a crash leaves neither a device out nor any twice.
package struct TagExpansion: Sendable {
    package struct Part: Hashable, Sendable {
        package let partition: Partition
        /// In the order in which they get it.
        package let cids: [CID]
        /// So many of them have it, or can not.
        package fileprivate(set) var done: Int

        package init(partition: Partition, cids: [CID], done: Int) {
            self.partition = partition
            self.cids = cids
            self.done = min(max(0, done), cids.count)
        }

        package var isOver: Bool { done == cids.count }
    }

    /// What is done in one step.
    package struct Slice: Hashable, Sendable {
        package struct Run: Hashable, Sendable {
            /// Index in `parts`.
            package let part: Int
            /// Among the part's devices.
            package let range: Range<Int>
        }

        package var runs: [Run] = []
        package var count: Int { runs.reduce(0) { $0 + $1.range.count } }
    }

    package let task: TaskID
    package let app: AppID
    package private(set) var parts: [Part] = []
    /// Targets a second of this shard, in thousandths; 0 for no limit.
    private let milliRate: Int64
    /// Since when targets are counted against the rate, and how many there were.
    private var paceFrom: Instant?
    private var paced: Int64 = 0
    /// The first part that may not be over.
    private var next = 0
    /// All shards have their part on disk: what is over may be forgotten.
    package var isPlacedEverywhere = false

    /// `speed`: targets a second over all `shards`; 0 for no limit.
    package init(task: TaskID, app: AppID, speed: Int64, shards: Int) {
        self.task = task
        self.app = app
        milliRate = speed > 0 ? max(1, min(speed, 1 << 40) * 1_000 / Int64(max(1, shards))) : 0
    }

    /// Each partition once.
    package mutating func add(_ part: Part) {
        parts.append(part)
        if !part.isOver { next = min(next, parts.count - 1) }
    }

    /// What the row of a part's count says, after a start.
    package mutating func restore(_ partition: Partition, done: Int) {
        guard let place = parts.firstIndex(where: { $0.partition == partition }) else { return }
        parts[place] = Part(partition: partition, cids: parts[place].cids, done: done)
    }

    package func holds(_ partition: Partition) -> Bool { parts.contains { $0.partition == partition } }

    package var remaining: Int { parts.reduce(0) { $0 + $1.cids.count - $1.done } }
    package var total: Int { parts.reduce(0) { $0 + $1.cids.count } }
    package var isOver: Bool { parts[min(next, parts.count)...].allSatisfy(\.isOver) }
    /// What it takes of memory, about.
    package var bytes: Int { parts.reduce(0) { $0 + $1.cids.count * 16 + 96 } }

    /// The next devices, at most `limit`; none when all are done, or before `nextAt`. Nothing changes: a slice that came to
    /// nothing is made again.
    package mutating func slice(limit: Int, now: Instant) -> Slice {
        while next < parts.count, parts[next].isOver { next += 1 }
        var slice = Slice()
        var room = min(limit, allowance(now))
        var place = next
        while room > 0, place < parts.count {
            let first = parts[place].done
            let end = min(parts[place].cids.count, first + room)
            if end > first {
                slice.runs.append(Slice.Run(part: place, range: first..<end))
                room -= end - first
            }
            place += 1
        }
        return slice
    }

    /// All of the slice is on disk.
    package mutating func settle(_ slice: Slice, now: Instant) {
        for run in slice.runs { parts[run.part].done = max(parts[run.part].done, run.range.upperBound) }
        if milliRate > 0 {
            _ = allowance(now)
            paced += Int64(slice.count)
        }
    }

    /// What the rate leaves room for now. Time in which nothing was due is not made up for beyond a second's worth.
    private mutating func allowance(_ now: Instant) -> Int {
        guard milliRate > 0 else { return .max }
        guard let from = paceFrom else {
            paceFrom = now
            paced = 0
            return Int(clamping: due(after: 0))
        }
        let elapsed = max(0, (now - from).inMilliseconds)
        let room = due(after: elapsed) - paced
        let burst = max(1, milliRate / 1_000)
        if room > burst {
            paceFrom = now
            paced = 0
            return Int(clamping: burst)
        }
        return Int(clamping: max(0, room))
    }

    /// The first is due at once.
    private func due(after elapsed: Int64) -> Int64 {
        let (product, overflow) = milliRate.multipliedReportingOverflow(by: elapsed)
        return overflow ? .max : product / 1_000_000 + 1
    }

    /// When there is something to do again; nil when all is done.
    package func nextAt(now: Instant) -> Instant? {
        guard !isOver else { return nil }
        guard milliRate > 0, let from = paceFrom else { return now }
        // The smallest time after which one more than `paced` is due.
        let (product, overflow) = paced.multipliedReportingOverflow(by: 1_000_000)
        guard !overflow else { return now }
        return max(now, from + .milliseconds((product + milliRate - 1) / milliRate))
    }
}

/// The rows of a part.
extension TagExpansion {
    private static let version: UInt8 = 1

    /// The devices of a part, with what a start must know of the task.
    package static func audienceRow(_ part: Part, task: TaskID, app: AppID, speed: Int64) -> [UInt8] {
        var writer = ByteWriter()
        writer.bytes.reserveCapacity(part.cids.count * 16 + 64)
        writer.byte(version)
        writer.string(app.text.utf8)
        writer.identifier(task.value)
        writer.varint(UInt64(task.monthDay))
        writer.byte(task.kind.rawValue)
        writer.varint(UInt64(max(0, speed)))
        writer.varint(UInt64(part.cids.count))
        for cid in part.cids { writer.identifier(cid.value) }
        return writer.bytes
    }

    package struct Audience: Hashable, Sendable {
        package let task: TaskID
        package let app: AppID
        package let speed: Int64
        package let cids: [CID]
    }

    /// nil when the bytes are no such row.
    package static func audience(_ row: [UInt8]) -> Audience? {
        row.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == version, let name = reader.string(limit: reader.remaining),
                let app = String(validating: name, as: UTF8.self).flatMap({ AppID($0) }),
                let value = reader.identifier(), let day = reader.varint(), let monthDay = UInt16(exactly: day),
                let kind = reader.byte().flatMap({ TaskID.Kind(rawValue: $0) }),
                let speed = reader.varint().flatMap({ Int64(exactly: $0) }), let count = reader.varint(),
                count == UInt64(reader.remaining / 16), reader.remaining % 16 == 0
            else { return nil }
            var cids: [CID] = []
            cids.reserveCapacity(Int(count))
            while let cid = reader.identifier() { cids.append(CID(cid)) }
            return Audience(
                task: TaskID(value, monthDay: monthDay, kind: kind), app: app, speed: speed, cids: cids)
        }
    }

    package static func cursorRow(_ done: Int) -> [UInt8] {
        var writer = ByteWriter()
        writer.byte(version)
        writer.varint(UInt64(max(0, done)))
        return writer.bytes
    }

    /// nil when the bytes are no such row.
    package static func cursor(_ row: [UInt8]) -> Int? {
        row.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == version, let done = reader.varint().flatMap({ Int(exactly: $0) }), reader.isAtEnd
            else { return nil }
            return done
        }
    }
}
