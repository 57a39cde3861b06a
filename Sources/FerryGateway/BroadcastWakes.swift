internal import FerryCore
internal import FerryRouting
internal import FerryStore

/// A shard's walks through the devices of pushes to all that wake the owners of those that are away.
struct BroadcastWakes {
    /// Devices that were looked at together.
    struct Step {
        /// The last of them; nil at the end of the wave.
        let cursor: CID?
        /// Of these it is not settled yet whether their owner is woken.
        var open: [(cid: CID, seq: Seq)] = []
    }

    /// What a shard of a gateway with more shards, or fewer, has left.
    struct Former {
        let shards: Int
        let shard: Int
        let walk: WakeWalk

        func hasSettled(_ cid: CID) -> Bool {
            let partition = Partition(of: cid).index
            return partition % shards == shard && walk.hasSettled(cid, local: partition / shards)
        }
    }

    struct Walk {
        let task: Identifier128
        /// The app's number in the device table.
        let number: Int
        var walk = WakeWalk()
        /// Not settled, in order.
        var steps: [Step] = []
        /// The wave has been looked at to its end.
        var isThrough = false
        /// It is not looked at before.
        var lookAt: Instant
        /// When the wave began.
        var waveAt = Instant.distantPast
        /// Its row says less.
        var isChanged = false
        /// Its rows, of this gateway and of others before: they go with it.
        var rows: Set<ControlName> = []
        var former: [Former] = []

        var open: Int { steps.reduce(0) { $0 + $1.open.count } }
    }

    var walks: [Walk] = []
    /// Whose turn it is.
    var turn = 0
    var pace: Pace?
    /// Devices of the last step that are not in memory yet, and those that the store could not read.
    var loading: Set<CID> = []
    var failed: [CID] = []
    /// The walk of that step.
    var stepping: Identifier128?
    var pausedUntil = Instant.distantPast
    var checkedAt = Instant.distantPast
    var savedAt = Instant.distantPast
    /// Rows of what is over.
    var orphans: [ControlRow] = []

    var isIdle: Bool { walks.isEmpty && orphans.isEmpty }
    var open: Int { walks.reduce(0) { $0 + $1.open } }

    func index(_ task: Identifier128) -> Int? { walks.firstIndex { $0.task == task } }

    /// The next walk with something to look at, in their turn.
    mutating func next(now: Instant) -> Int? {
        for _ in walks.indices {
            turn = turn + 1 < walks.count ? turn + 1 : 0
            if walks[turn].walk.isInWave, !walks[turn].isThrough, walks[turn].lookAt <= now { return turn }
        }
        return nil
    }
}
