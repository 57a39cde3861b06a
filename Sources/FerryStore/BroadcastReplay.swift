internal import FerryCore

/// What the tables and the journal hold of broadcasts, and for how many devices each of them is still to come. Every step can
/// be done twice.
struct BroadcastReplay {
    /// The record of the content and those of the places come in any order, where a retirement broke off.
    private struct Found {
        var broadcast: AcceptedBroadcast?
        var contentSegment: UInt32 = 0
        var places = [Seq](repeating: .zero, count: Limits.partitions)
        var placeSegments = [UInt32](repeating: 0, count: Limits.partitions)
    }

    private var found: [Identifier128: Found] = [:]
    private var over: [RecoveredBroadcast] = []
    private var waiting: [AppID: [RecoveredBroadcast]] = [:]
    private var registered: [AppID: [UInt32]] = [:]

    mutating func take(_ broadcast: AcceptedBroadcast, segment: UInt32) {
        found[broadcast.taskID.value, default: Found()].broadcast = broadcast
        found[broadcast.taskID.value]?.contentSegment = segment
    }

    mutating func take(_ placement: BroadcastPlacement, segment: UInt32) {
        var known = found.removeValue(forKey: placement.task) ?? Found()
        for (partition, seq) in placement.places {
            known.places[partition.index] = seq
            known.placeSegments[partition.index] = segment
        }
        found[placement.task] = known
    }

    /// Everything is known but the devices; `time` is the last that is on disk. What only its places tell of is no broadcast.
    mutating func settle(at time: Instant) {
        for known in found.values {
            guard var broadcast = known.broadcast else { continue }
            let isOver = broadcast.isLiveOnly || broadcast.expiresAt <= time
            // Where it has no place yet it is accepted when it gets one.
            if isOver, !known.places.contains(.zero) { broadcast.payload = [] }
            var recovered = RecoveredBroadcast(broadcast, isOver: isOver)
            recovered.contentSegment = known.contentSegment
            recovered.places = known.places
            recovered.placeSegments = known.placeSegments
            if isOver { over.append(recovered) } else { waiting[broadcast.app, default: []].append(recovered) }
        }
        found = [:]
    }

    /// Each device once, after `settle`.
    mutating func count(_ device: DeviceRecord) {
        let partition = Partition(of: device.cid).index
        registered[device.app, default: Self.nobody][partition] += 1
        guard !waiting.isEmpty, let count = waiting[device.app]?.count else { return }
        for index in 0..<count where device.acknowledged < waiting[device.app]?[index].places[partition] ?? .zero {
            waiting[device.app]?[index].waiting[partition] += 1
        }
    }

    private static let nobody = [UInt32](repeating: 0, count: Limits.partitions)

    /// In order of acceptance.
    func finish() -> (broadcasts: [RecoveredBroadcast], registered: [AppID: [UInt32]]) {
        let sorted = (over + waiting.values.joined()).sorted {
            ($0.broadcast.acceptedAt, $0.broadcast.taskID.value) < ($1.broadcast.acceptedAt, $1.broadcast.taskID.value)
        }
        return (sorted, registered)
    }
}
