package import FerryCore

/// The devices of one shard that are to get a task's content, by partition, and how far it is with them. What it knows is in rows:
/// one with the devices of a partition, one with the count of those that are done. So the count can be put on disk in the same
/// batch as the messages that it tells of, and a crash leaves neither a device out nor any twice.
///
/// It does not: read clocks, know devices beyond their names, write rows.
package struct TagExpansion: Sendable {
    package struct Part: Hashable, Sendable {
        package let partition: Partition
        /// Which piece of its partition it is: a row holds so many devices and no more.
        package let piece: UInt16
        /// In the order in which they get it.
        package let cids: [CID]
        /// So many of them have it, or can not.
        package fileprivate(set) var done: Int

        package init(partition: Partition, piece: UInt16 = 0, cids: [CID], done: Int) {
            self.partition = partition
            self.piece = piece
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

    /// Of it the digests may be anything.
    package let content: ListTask
    /// Targets a second over all shards; 0 for no limit.
    package let speed: Int64
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
    package init(_ content: ListTask, speed: Int64, shards: Int) {
        self.content = content
        self.speed = speed
        milliRate = speed > 0 ? max(1, min(speed, 1 << 40) * 1_000 / Int64(max(1, shards))) : 0
    }

    package var task: TaskID { content.taskID }
    package var app: AppID { content.app }

    /// Whoever has not got it then does not get it.
    package var endsAt: Instant { content.usableUntil }

    /// Each piece of each partition once.
    package mutating func add(_ part: Part) {
        parts.append(part)
        bytes += Self.bytes(of: part)
        if !part.isOver { next = min(next, parts.count - 1) }
    }

    /// What the row of a part's count says, after a start.
    /// - Returns: the part, nil when there is none.
    @discardableResult
    package mutating func restore(_ partition: Partition, piece: UInt16 = 0, done: Int) -> Part? {
        guard let place = parts.firstIndex(where: { $0.partition == partition && $0.piece == piece }) else {
            return nil
        }
        parts[place] = Part(partition: partition, piece: piece, cids: parts[place].cids, done: done)
        return parts[place]
    }

    package func holds(_ partition: Partition) -> Bool { parts.contains { $0.partition == partition } }

    package var remaining: Int { parts.reduce(0) { $0 + $1.cids.count - $1.done } }
    package var total: Int { parts.reduce(0) { $0 + $1.cids.count } }
    package var isOver: Bool { parts[min(next, parts.count)...].allSatisfy(\.isOver) }
    /// What it takes of memory, about. It is asked for at each push, so it is not counted anew.
    package private(set) var bytes = 0

    package static func bytes(of part: Part) -> Int { part.cids.count * 16 + 96 }

    /// The next devices, at most `limit`; none when all are done, or before `nextAt`. Nothing changes: a slice that came to
    /// nothing is made again. When its time is over the rate is over too.
    package mutating func slice(limit: Int, now: Instant) -> Slice {
        while next < parts.count, parts[next].isOver { next += 1 }
        var slice = Slice()
        var room = now >= endsAt ? limit : min(limit, allowance(now))
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
        guard milliRate > 0, now < endsAt, let from = paceFrom else { return now }
        // The smallest time after which one more than `paced` is due.
        let (product, overflow) = paced.multipliedReportingOverflow(by: 1_000_000)
        guard !overflow else { return now }
        return max(now, min(endsAt, from + .milliseconds((product + milliRate - 1) / milliRate)))
    }
}
