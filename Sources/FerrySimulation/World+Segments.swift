internal import FerryGateway
internal import FerryStore

/// How long the oldest segment of the journal has been one too many.
struct SegmentWait {
    var oldest = ""
    /// How often the store had a turn and then each shard.
    var rounds = 0
    /// Shards that had a turn since the last of these turns of the store.
    var turned: Set<Int> = []
}

extension World {
    /// After a turn of the whole store. P7: the journal takes no more and more room, whatever is pushed to whom. Where nothing
    /// fails, a segment is past when each part has had its say.
    func checkSegments() {
        guard let gateway, scenario.diskFaults == 0, scenario.tableFaults == 0 else { return }
        let segments = disk.list().filter { $0.hasPrefix("journal-") }
        let oldest = segments.min() ?? ""
        guard oldest == segmentWait.oldest, segments.count > configuration.keptSegments + 1 else {
            segmentWait = SegmentWait(oldest: oldest)
            return
        }
        guard segmentWait.turned.count == gateway.shards else { return }
        segmentWait.rounds += 1
        segmentWait.turned = []
        guard segmentWait.rounds > Self.roundsOfRetirement else { return }
        report(
            Violation(
                promise: "P7",
                what: "\(oldest) has not gone in \(segmentWait.rounds) rounds, of \(segments.count) segments"))
    }

    /// The shards are told, drops on their way are decided, the shards answer, the tables take over; and some more.
    private static let roundsOfRetirement = 8
}
