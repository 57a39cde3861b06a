internal import FerryCore

/// What the tables and the journal hold of broadcasts, and for how many devices each of them is still to come. Every step can
/// be done twice.
///
/// A backend may have ended more than would fit into memory. So of those that are over an app keeps the newest
/// `AcceptedBroadcast.overAtMost`, while reading already, and none has a payload unless it is live only and lacks places.
struct BroadcastReplay {
    /// The record of the content and those of the places come in any order, where a retirement broke off.
    private struct Found {
        var broadcast: AcceptedBroadcast?
        var contentSegment: UInt32 = 0
        var places = RecoveredBroadcast.nowhere
        var placeSegments = RecoveredBroadcast.nothing
        /// The segment of the record that stopped it; 0 when the tables have it.
        var stopSegment: UInt32?
    }

    private var found: [Identifier128: Found] = [:]
    /// Tasks that nobody is to be told of: other records of theirs change nothing.
    private var dropped: Set<Identifier128> = []
    /// The last time that is known to be on disk.
    private var time: Instant
    /// The count of `found` at which it is looked through for what is too much.
    private var thinAt = BroadcastReplay.thinAtLeast
    private var over: [RecoveredBroadcast] = []
    private var waiting: [AppID: [RecoveredBroadcast]] = [:]
    private var registered: [AppID: [UInt32]] = [:]

    private static let thinAtLeast = 2_048

    /// `time` is one that is on disk.
    init(at time: Instant) { self.time = time }

    mutating func take(_ broadcast: AcceptedBroadcast, segment: UInt32) {
        let task = broadcast.taskID.value
        time = max(time, broadcast.acceptedAt)
        guard !dropped.contains(task) else { return }
        var known = found.removeValue(forKey: task) ?? Found()
        known.broadcast = broadcast
        known.contentSegment = segment
        if known.stopSegment != nil || (broadcast.expiresAt <= time && !broadcast.isLiveOnly) {
            known.broadcast?.payload = []
        }
        found[task] = known
        thinInTime()
    }

    mutating func take(_ placement: BroadcastPlacement, segment: UInt32) {
        guard !dropped.contains(placement.task) else { return }
        var known = found.removeValue(forKey: placement.task) ?? Found()
        for (partition, seq) in placement.places {
            known.places[partition.index] = seq
            known.placeSegments[partition.index] = segment
        }
        found[placement.task] = known
    }

    /// Its sender stopped it.
    mutating func stop(_ task: Identifier128, segment: UInt32) {
        guard !dropped.contains(task) else { return }
        found[task, default: Found()].stopSegment = segment
        found[task]?.broadcast?.payload = []
    }

    /// Nobody is to be told of it.
    mutating func drop(_ task: Identifier128) {
        found[task] = nil
        dropped.insert(task)
    }

    private mutating func thinInTime() {
        guard found.count >= thinAt else { return }
        thin()
        thinAt = max(Self.thinAtLeast, found.count * 2)
    }

    /// Drops what is over and too much of one app.
    private mutating func thin() {
        var ended: [AppID: [(acceptedAt: Instant, task: Identifier128)]] = [:]
        for (task, known) in found {
            guard let broadcast = known.broadcast else { continue }
            guard broadcast.expiresAt <= time || known.stopSegment != nil else { continue }
            // Where it has no place yet it goes out when it gets one.
            if broadcast.isLiveOnly, known.stopSegment == nil, known.places.contains(.zero) { continue }
            ended[broadcast.app, default: []].append((broadcast.acceptedAt, task))
        }
        for candidates in ended.values {
            for (_, task) in candidates { found[task]?.broadcast?.payload = [] }
            for task in AcceptedBroadcast.surplus(candidates) { drop(task) }
        }
    }

    /// Everything is known but the devices; `time` is the last that is on disk. What only its places tell of is no broadcast.
    mutating func settle(at time: Instant) {
        self.time = max(self.time, time)
        thin()
        for known in found.values {
            guard let broadcast = known.broadcast else { continue }
            // One that is over and lacks places is accepted when it gets them, and over at once.
            let isOver = broadcast.expiresAt <= self.time || known.stopSegment != nil
            var recovered = RecoveredBroadcast(broadcast, isOver: isOver)
            recovered.contentSegment = known.contentSegment
            recovered.stopSegment = known.stopSegment
            recovered.places = known.places
            recovered.placeSegments = known.placeSegments
            if isOver { over.append(recovered) } else { waiting[broadcast.app, default: []].append(recovered) }
        }
        found = [:]
        dropped = []
    }

    /// Each device once, after `settle`.
    mutating func count(_ device: DeviceRecord) {
        let partition = Partition(of: device.cid).index
        registered[device.app, default: RecoveredBroadcast.nothing][partition] += 1
        guard !waiting.isEmpty, let count = waiting[device.app]?.count else { return }
        for index in 0..<count where device.acknowledged < waiting[device.app]?[index].places[partition] ?? .zero {
            waiting[device.app]?[index].waiting[partition] += 1
        }
    }

    /// In order of acceptance.
    func finish() -> (broadcasts: [RecoveredBroadcast], registered: [AppID: [UInt32]]) {
        let sorted = (over + waiting.values.joined()).sorted {
            ($0.broadcast.acceptedAt, $0.broadcast.taskID.value) < ($1.broadcast.acceptedAt, $1.broadcast.taskID.value)
        }
        return (sorted, registered)
    }
}

extension AcceptedBroadcast {
    /// Which of one app's broadcasts that are over are too many: all but the newest `overAtMost`.
    static func surplus(_ ended: [(acceptedAt: Instant, task: Identifier128)]) -> [Identifier128] {
        guard ended.count > overAtMost else { return [] }
        let sorted = ended.sorted { ($0.acceptedAt, $0.task) < ($1.acceptedAt, $1.task) }
        return sorted.dropLast(overAtMost).map(\.task)
    }
}
