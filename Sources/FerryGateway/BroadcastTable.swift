internal import FerryCore
internal import FerryStore

/// A broadcast as it stands in the streams of a shard's partitions.
struct PlacedBroadcast {
    enum State {
        /// Devices still get it.
        case live
        /// Its time is over, and the record that says so is on its way to the disk.
        case ending
        /// A device that did not get it is told so.
        case over
    }

    /// Rises with each placement of the shard, of all apps; 0 is before the first.
    let ordinal: UInt32
    /// Without its payload.
    let broadcast: AcceptedBroadcast
    /// Until nobody can be sent it any more.
    var content: BroadcastContent?
    /// By the shard's own numbers of its partitions; zero where it has its place by another entry, or not yet.
    let seqs: [Seq]
    /// The first segment with a record of its places; 0 when the tables have them.
    var segment: UInt32
    var state = State.live
    /// Devices for which it is accepted and whose machine was not told of it: what is known of them is their number.
    var unreached: Int
    /// Devices that have it in their log.
    var reached = 0
    /// For a live-only one: it is over at the end of this pass over the devices.
    var pass: UInt64 = 0
}

/// The broadcasts of one app in one shard.
struct BroadcastLine {
    let app: AppID
    /// By ordinal, rising.
    var placed: [PlacedBroadcast] = []
    /// Registered devices, by the shard's own numbers of its partitions.
    var registered: [Int]
    /// Where the pass over the devices stands that is under way.
    var cursor: Int?
    /// Something is new since it began: another follows.
    var wantsPass = false
    /// Passes that have begun.
    var passes: UInt64 = 0

    /// Some device may not have been told yet what is new.
    var isSweeping: Bool { cursor != nil || wantsPass }

    /// Takes memory and a part of its devices' time still.
    var liveCount: Int { placed.count { $0.state != .over } }
}

/// What a shard knows of broadcasts. It does not do: I/O, telling devices, counting facts.
struct BroadcastTable {
    /// By the app's number in the device table.
    private(set) var lines: [BroadcastLine] = []
    /// The last ordinal.
    private(set) var newest: UInt32 = 0
    /// Up to here are those that were found at the start: their order is not that of their places in every partition, since
    /// other shards may have placed them.
    private(set) var lastRestored: UInt32 = 0
    /// No broadcast's time is over before this.
    private(set) var nextEnd = Instant.distantFuture
    /// Over all lines.
    private(set) var unreached = 0
    /// Lines with a pass to do, in their turn.
    private(set) var sweeping: [Int] = []
    /// Memory of content that this shard holds, and of places.
    private(set) var bytes = 0
    private let shard: Int
    private let shards: Int
    /// Partitions of this shard.
    let partitions: Int

    /// A device that missed one of more than so many is told of the latest only.
    static let overAtMost = 1_000

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
        unreached count: Int, state: PlacedBroadcast.State = .live
    ) {
        newest += 1
        var known = broadcast
        known.payload = []
        lines[number].placed.append(
            PlacedBroadcast(
                ordinal: newest, broadcast: known, content: content, seqs: seqs, segment: segment, state: state,
                unreached: count, pass: lines[number].passes + 1))
        unreached += count
        bytes += seqs.count * 8 + (content?.broadcast.payload.count ?? 0)
        if state == .live, !broadcast.isLiveOnly { nextEnd = min(nextEnd, broadcast.expiresAt) }
    }

    mutating func finishRestoring() { lastRestored = newest }

    // MARK: - Looking up

    /// The index in `placed` of the first that has an ordinal above this one.
    func first(_ number: Int, after ordinal: UInt32) -> Int {
        var index = lines[number].placed.count
        while index > 0, lines[number].placed[index - 1].ordinal > ordinal { index -= 1 }
        return index
    }

    func index(_ number: Int, ordinal: UInt32) -> Int? {
        var low = 0
        var high = lines[number].placed.count
        while low < high {
            let middle = (low + high) / 2
            if lines[number].placed[middle].ordinal < ordinal { low = middle + 1 } else { high = middle }
        }
        return low < lines[number].placed.count && lines[number].placed[low].ordinal == ordinal ? low : nil
    }

    /// What a device that was caught up to `ordinal` is to be told of, by index and in order of `seq`.
    func pending(_ number: Int, after ordinal: UInt32, _ local: Int, above acknowledged: Seq) -> [Int] {
        guard lines.indices.contains(number) else { return [] }
        let placed = lines[number].placed
        let indices = (first(number, after: ordinal)..<placed.count).filter { placed[$0].seqs[local] > acknowledged }
        guard ordinal < lastRestored else { return indices }
        return indices.sorted { placed[$0].seqs[local] < placed[$1].seqs[local] }
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
        bytes -= content.broadcast.payload.count
        lines[number].placed[index].content = nil
    }

    // MARK: - Going

    /// Those whose time is over, which count as ending from now on: by line and ordinal.
    mutating func takeEnding(now: Instant) -> [(number: Int, ordinal: UInt32)] {
        var found: [(number: Int, ordinal: UInt32)] = []
        nextEnd = .distantFuture
        for number in lines.indices {
            for index in lines[number].placed.indices {
                let placed = lines[number].placed[index]
                guard placed.state == .live, !placed.broadcast.isLiveOnly else { continue }
                if placed.broadcast.expiresAt <= now {
                    lines[number].placed[index].state = .ending
                    found.append((number, placed.ordinal))
                } else {
                    nextEnd = min(nextEnd, placed.broadcast.expiresAt)
                }
            }
        }
        return found
    }

    /// The record was refused; at `time` it is tried again.
    mutating func endAgain(_ number: Int, ordinal: UInt32, at time: Instant) {
        guard let index = index(number, ordinal: ordinal) else { return }
        lines[number].placed[index].state = .live
        nextEnd = min(nextEnd, time)
    }

    /// It is over. Answers for how many devices at once: those whose machine was not told of it.
    mutating func end(_ number: Int, _ index: Int) -> Int {
        let count = lines[number].placed[index].unreached
        lines[number].placed[index].state = .over
        lines[number].placed[index].unreached = 0
        unreached -= count
        releaseIfDone(number, index)
        return count
    }

    /// Live-only ones that every device has been looked at for.
    func passed(_ number: Int) -> [Int] {
        let line = lines[number]
        return line.placed.indices.filter {
            line.placed[$0].broadcast.isLiveOnly && line.placed[$0].state == .live
                && line.placed[$0].pass <= line.passes
        }
    }

    /// Forgets those that nobody is to be told of any more.
    mutating func trim(_ number: Int, endedBefore time: Instant) {
        var surplus = lines[number].placed.count { $0.state == .over } - Self.overAtMost
        lines[number].placed.removeAll { placed in
            guard placed.state == .over, placed.reached <= 0, surplus > 0 || placed.broadcast.expiresAt <= time else {
                return false
            }
            surplus -= 1
            bytes -= placed.seqs.count * 8
            return true
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
