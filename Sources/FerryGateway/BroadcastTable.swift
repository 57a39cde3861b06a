internal import FerryCore
internal import FerryStore

/// What a shard knows of broadcasts. It does not do: I/O, telling devices, counting facts.
struct BroadcastTable {
    /// By the app's number in the device table.
    var lines: [BroadcastLine] = []
    /// The last ordinal, or arrival of a place.
    var newest: UInt32 = 0
    /// Up to here are those that were found at the start: their order is not that of their places in every partition, since
    /// other shards may have placed them.
    private(set) var lastRestored: UInt32 = 0
    /// No broadcast's time is over before this.
    private(set) var nextEnd = Instant.distantFuture
    /// Over all lines.
    var unreached = 0
    /// Lines with a pass to do, in their turn.
    private(set) var sweeping: [Int] = []
    /// Memory of this shard's part of content, and of places.
    var bytes = 0
    private let shard: Int
    private let shards: Int
    /// Partitions of this shard.
    let partitions: Int

    init(shard: Int, shards: Int) {
        self.shard = shard
        self.shards = shards
        partitions = (Limits.partitions - shard + shards - 1) / shards
    }

    /// The shard's own number of a partition that it owns.
    func local(_ partition: Partition) -> Int { partition.index / shards }
    func partition(_ local: Int) -> Partition { Partition(index: local * shards + shard) }

    /// Makes room for the app with this number in the device table.
    mutating func begin(_ number: Int, _ app: AppID) {
        // Numbers are given out one by one, but the apps between may have no broadcast yet.
        while lines.count <= number {
            lines.append(BroadcastLine(app: app, registered: [Int](repeating: 0, count: partitions)))
        }
        if lines[number].app != app { lines[number] = BroadcastLine(app: app, registered: lines[number].registered) }
    }

    mutating func register(_ number: Int, _ partition: Partition, count: Int = 1) {
        lines[number].registered[local(partition)] += count
    }

    // MARK: - Coming

    /// Devices that the places are for: those that are registered now.
    func targets(_ number: Int, _ seqs: [Seq]) -> Int {
        var count = 0
        for local in seqs.indices where seqs[local] > .zero { count += lines[number].registered[local] }
        return count
    }

    /// Its places are on disk.
    mutating func add(
        _ number: Int, _ broadcast: AcceptedBroadcast, _ content: BroadcastContent?, seqs: [Seq], segment: UInt32,
        unreached count: Int, state: PlacedBroadcast.State = .live, isStopped: Bool = false
    ) {
        newest += 1
        var known = broadcast
        known.payload = []
        known.terms.alert = nil
        lines[number].placed.append(
            PlacedBroadcast(
                ordinal: newest, broadcast: known, content: content, seqs: seqs, segment: segment, state: state,
                isStopped: isStopped, unreached: count, pass: lines[number].passes + 1))
        unreached += count
        bytes += seqs.count * 8 + part(of: content)
        if state == .live, !broadcast.isLiveOnly { expectEnd(number, at: broadcast.expiresAt) }
    }

    /// The content is in memory once for all shards: each counts its part.
    private func part(of content: BroadcastContent?) -> Int {
        content.map { ($0.broadcast.payload.count + shards - 1) / shards } ?? 0
    }

    private mutating func expectEnd(_ number: Int, at time: Instant) {
        lines[number].nextEnd = min(lines[number].nextEnd, time)
        nextEnd = min(nextEnd, time)
    }

    mutating func finishRestoring() {
        lastRestored = newest
        for number in lines.indices where !lines[number].placed.isEmpty {
            var top = [Seq](repeating: .zero, count: partitions)
            for placed in lines[number].placed {
                for local in top.indices { top[local] = max(top[local], placed.seqs[local]) }
            }
            lines[number].restoredTop = top
        }
    }

    // MARK: - The owner's door

    /// How many of the app were accepted after `time`. Older ones are forgotten.
    mutating func recentCount(_ number: Int, since time: Instant) -> Int {
        let past = lines[number].recent.firstIndex { $0 > time } ?? lines[number].recent.count
        if past > 0 { lines[number].recent.removeFirst(past) }
        return lines[number].recent.count
    }

    /// One more is on its way to the disk, or was found there without all of its places.
    mutating func expect(_ number: Int) { lines[number].coming += 1 }

    mutating func noteAccepted(_ number: Int, at time: Instant) { lines[number].recent.append(time) }

    /// Over all apps.
    var coming: Int { lines.reduce(0) { $0 + $1.coming } }

    /// Its places are on disk here.
    mutating func arrived(_ number: Int) { lines[number].coming -= lines[number].coming > 0 ? 1 : 0 }

    /// The disk refused it: it does not count.
    mutating func takeBack(_ number: Int, acceptedAt time: Instant) {
        arrived(number)
        if let index = lines[number].recent.lastIndex(of: time) { lines[number].recent.remove(at: index) }
    }

    // MARK: - Looking up

    func index(_ number: Int, ordinal: UInt32) -> Int? {
        var low = 0
        var high = lines[number].placed.count
        while low < high {
            let middle = (low + high) / 2
            if lines[number].placed[middle].ordinal < ordinal { low = middle + 1 } else { high = middle }
        }
        return low < lines[number].placed.count && lines[number].placed[low].ordinal == ordinal ? low : nil
    }

    /// What a device that was caught up to `ordinal` is to be told of, by index and in order of `seq`. What was placed since the
    /// start rises in every partition, so the look goes from the newest back to the first that is acknowledged.
    func pending(_ number: Int, after ordinal: UInt32, _ local: Int, above acknowledged: Seq) -> [Int] {
        guard lines.indices.contains(number) else { return [] }
        let usual = pendingAtOnce(number, after: ordinal, local, above: acknowledged)
        return lines[number].pacedCount == 0
            ? usual : addingPaced(usual, number, after: ordinal, local, above: acknowledged)
    }

    private func pendingAtOnce(
        _ number: Int, after ordinal: UInt32, _ local: Int, above acknowledged: Seq
    ) -> [Int] {
        var found: [Int] = []
        var index = lines[number].placed.count
        while index > 0, lines[number].placed[index - 1].ordinal > max(ordinal, lastRestored) {
            index -= 1
            guard lines[number].placed[index].arrivals.isEmpty else { continue }
            let seq = lines[number].placed[index].seqs[local]
            if seq > acknowledged { found.append(index) } else if seq > .zero { return found.reversed() }
        }
        found.reverse()
        guard ordinal < lastRestored, !lines[number].restoredTop.isEmpty,
            lines[number].restoredTop[local] > acknowledged
        else { return found }
        let restored = (0..<index).filter {
            lines[number].placed[$0].ordinal > ordinal && lines[number].placed[$0].seqs[local] > acknowledged
                && lines[number].placed[$0].arrivals.isEmpty
        }
        return restored.sorted { lines[number].placed[$0].seqs[local] < lines[number].placed[$1].seqs[local] } + found
    }

    /// Whether a broadcast of the app has its place in the partition here.
    func isPlace(_ number: Int, _ partition: Partition, _ seq: Seq) -> Bool {
        guard lines.indices.contains(number) else { return false }
        let local = local(partition)
        return lines[number].placed.contains { $0.seqs[local] == seq }
    }

    // MARK: - Devices

    /// A device's machine is told of it.
    mutating func reach(_ number: Int, _ index: Int) {
        let step = lines[number].placed[index].unreached > 0 ? 1 : 0
        lines[number].placed[index].unreached -= step
        unreached -= step
        lines[number].placed[index].reached += 1
    }

    /// A device leaves memory and takes it along.
    mutating func unreach(_ number: Int, ordinal: UInt32) {
        guard let index = index(number, ordinal: ordinal) else { return }
        lines[number].placed[index].reached -= 1
        lines[number].placed[index].unreached += 1
        unreached += 1
    }

    /// It has ended at a device.
    mutating func left(_ number: Int, ordinal: UInt32) {
        guard let index = index(number, ordinal: ordinal) else { return }
        lines[number].placed[index].reached -= 1
        if lines[number].placed[index].state == .over { releaseIfDone(number, index) }
    }

    private mutating func releaseIfDone(_ number: Int, _ index: Int) {
        // What is live only may be in a log and not sent yet; of others nothing is sent when their time is over.
        guard lines[number].placed[index].reached <= 0 || !lines[number].placed[index].broadcast.isLiveOnly,
            let content = lines[number].placed[index].content
        else { return }
        bytes -= part(of: content)
        lines[number].placed[index].content = nil
    }

    // MARK: - Going

    /// Those whose time is over, which count as ending from now on: by line and ordinal.
    mutating func takeEnding(now: Instant) -> [(number: Int, ordinal: UInt32)] {
        var found: [(number: Int, ordinal: UInt32)] = []
        nextEnd = .distantFuture
        for number in lines.indices {
            if lines[number].nextEnd <= now { takeEnding(number, now, &found) }
            nextEnd = min(nextEnd, lines[number].nextEnd)
        }
        return found
    }

    private mutating func takeEnding(_ number: Int, _ now: Instant, _ found: inout [(number: Int, ordinal: UInt32)]) {
        lines[number].nextEnd = .distantFuture
        for index in lines[number].placed.indices {
            let expiresAt = lines[number].placed[index].broadcast.expiresAt
            guard lines[number].placed[index].state == .live, !lines[number].placed[index].broadcast.isLiveOnly else {
                continue
            }
            if expiresAt <= now {
                lines[number].placed[index].state = .ending
                found.append((number, lines[number].placed[index].ordinal))
            } else {
                lines[number].nextEnd = min(lines[number].nextEnd, expiresAt)
            }
        }
    }

    /// The record was refused; at `time` it is tried again.
    mutating func endAgain(_ number: Int, ordinal: UInt32, at time: Instant) {
        guard let index = index(number, ordinal: ordinal) else { return }
        lines[number].placed[index].state = .live
        expectEnd(number, at: time)
    }

    /// The app's entries of a task that a device may still be sent, by index: those that are not over, and live-only ones, which
    /// stay in the logs of those that had a session when they came.
    func open(_ number: Int, task: Identifier128) -> [Int] {
        lines[number].placed.indices.filter { index in
            let placed = lines[number].placed[index]
            guard placed.broadcast.taskID.value == task, !placed.isStopped else { return false }
            return placed.state != .over || (placed.broadcast.isLiveOnly && placed.reached > 0)
        }
    }

    /// What is known of a task of the app; nil when that is nothing.
    func broadcast(_ number: Int, _ task: TaskID) -> AcceptedBroadcast? {
        lines[number].placed.first { $0.broadcast.taskID == task }?.broadcast
    }

    /// It is over. Answers for how many devices at once: those whose machine was not told of it.
    mutating func end(_ number: Int, _ index: Int, isStopped: Bool = false) -> Int {
        let count = lines[number].placed[index].unreached
        lines[number].placed[index].state = .over
        lines[number].placed[index].isStopped = isStopped
        lines[number].placed[index].unreached = 0
        unreached -= count
        if lines[number].placed[index].reached > 0 { lines[number].hasEnded = true }
        releaseIfDone(number, index)
        return count
    }

    /// Live-only ones that every device has been looked at for.
    func passed(_ number: Int) -> [Int] {
        let line = lines[number]
        return line.placed.indices.filter {
            line.placed[$0].broadcast.isLiveOnly && line.placed[$0].state == .live
                && line.placed[$0].pass <= line.passes && !line.placed[$0].isPlacing
        }
    }

    /// Forgets those that nobody is to be told of any more. Moves the indices of the others.
    mutating func trim(_ number: Int, endedBefore time: Instant) {
        var surplus = lines[number].placed.count { $0.state == .over } - AcceptedBroadcast.overAtMost
        var going: [PlacedBroadcast] = []
        lines[number].placed.removeAll { placed in
            guard placed.state == .over, !placed.isPlacing, placed.reached <= 0,
                surplus > 0 || placed.broadcast.expiresAt <= time
            else {
                return false
            }
            surplus -= 1
            going.append(placed)
            return true
        }
        for placed in going {
            bytes -= placed.seqs.count * 8 + placed.arrivals.count * 4 + part(of: placed.content)
            lines[number].pacedCount -= placed.arrivals.isEmpty ? 0 : 1
        }
    }

    // MARK: - Passes over the devices

    mutating func wantPass(_ number: Int) {
        if !lines[number].isSweeping { sweeping.append(number) }
        lines[number].wantsPass = true
    }

    /// The line whose turn it is and where its pass stands; nil when no line has one to do.
    mutating func nextSlice() -> (number: Int, cursor: Int)? {
        guard !sweeping.isEmpty else { return nil }
        let number = sweeping.removeFirst()
        if let cursor = lines[number].cursor { return (number, cursor) }
        lines[number].wantsPass = false
        lines[number].hasEnded = false
        lines[number].passes += 1
        lines[number].cursor = 0
        return (number, 0)
    }

    /// `cursor` nil: the pass is through.
    mutating func endSlice(_ number: Int, cursor: Int?) {
        lines[number].cursor = cursor
        if lines[number].isSweeping { sweeping.append(number) }
    }

    // MARK: - Retirement

    /// Places whose records lie in segments up to this one. They count as in the tables from then on.
    mutating func takePlacements(upTo segment: UInt32, retention: Duration) -> [RetainedPlacement] {
        var found: [RetainedPlacement] = []
        for number in lines.indices {
            for index in lines[number].placed.indices {
                let placed = lines[number].placed[index]
                guard placed.segment != 0, placed.segment <= segment else { continue }
                lines[number].placed[index].segment = 0
                let places = placed.seqs.indices.map { (partition: partition($0), seq: placed.seqs[$0]) }
                found.append(
                    RetainedPlacement(
                        BroadcastPlacement(task: placed.broadcast.taskID.value, places: places),
                        forgetAt: placed.broadcast.expiresAt + retention))
            }
        }
        return found
    }

    /// The payload, if it is still in memory.
    func payload(of broadcast: AcceptedBroadcast) -> [UInt8]? {
        for line in lines where line.app == broadcast.app {
            let placed = line.placed.first { $0.broadcast.taskID == broadcast.taskID && $0.content != nil }
            if let content = placed?.content { return content.broadcast.payload }
        }
        return nil
    }
}
