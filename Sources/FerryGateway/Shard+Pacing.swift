internal import FerryCore
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// A broadcast with a pace, in one shard: the partitions that are to get their places yet.
struct PacedBroadcast {
    let content: BroadcastContent
    /// The app's number in the device table.
    let number: Int
    /// By the shard's own numbers of its partitions.
    var lacking: [Bool]
    /// None before this is lacking.
    var next = 0
    var pace: Pace
    /// Places are on their way to the disk.
    var isStepping = false

    var task: Identifier128 { content.broadcast.taskID.value }
}

/// Broadcasts with a pace. A message of a task is accepted when its device's partition gets its place, so the pace is kept by
/// giving partitions their places one after the other: each is paid for with as many devices as are registered in it. What is
/// in no stream yet needs nobody to remember it, and a restart goes on with the partitions that lack their place.
extension Shard {
    /// Steps are not smaller than what comes due in this time.
    private static var pacingStep: Duration { .milliseconds(20) }

    /// `wanted` is for the partitions that lack a place. `isRestored`: a start found it under way.
    mutating func beginPaced(_ wanted: WantedPlaces, isRestored: Bool = false) {
        let broadcast = wanted.content.broadcast
        let number = broadcastLine(of: broadcast.app)
        broadcasts.beginPaced(number, broadcast, wanted.content)
        if environment.owner(of: broadcast.app) == index { broadcasts.arrived(number) }
        var pace = Pace(perSecond: broadcast.terms.speed, parts: environment.shards, now: now)
        // The last step of the life before is not paid for.
        if isRestored {
            let devices = broadcasts.registeredCount(number)
            pace.spend((devices + broadcasts.partitions - 1) / broadcasts.partitions, now: now)
        }
        pacing.append(
            PacedBroadcast(
                content: wanted.content, number: number,
                lacking: (0..<broadcasts.partitions).map { wanted.isWanted($0) }, pace: pace))
        beginWakes(number, broadcast)
    }

    /// When a partition is due; `distantFuture` for none.
    var nextPacedTurn: Instant {
        guard !pacing.isEmpty, !isDraining else { return .distantFuture }
        var next = Instant.distantFuture
        for paced in pacing where !paced.isStepping {
            next = min(next, isHurried(paced) ? now : max(paced.pace.nextAt, pacedAt + Self.pacingStep))
        }
        return next
    }

    /// At each turn, and before the ends of broadcasts: what is accepted and over at once is accepted first.
    mutating func continuePacing() {
        guard nextPacedTurn <= now else { return }
        pacedAt = now
        for place in pacing.indices where !pacing[place].isStepping { step(place) }
    }

    /// Over before all have it: those that lack it are accepted for and end at once, so that all are accounted for.
    private func isHurried(_ paced: PacedBroadcast) -> Bool {
        let broadcast = paced.content.broadcast
        if !broadcast.isLiveOnly, broadcast.expiresAt <= now { return true }
        return broadcasts.index(paced.number, task: paced.task).map {
            broadcasts.lines[paced.number].placed[$0].state == .over
        } ?? false
    }

    private mutating func step(_ place: Int) {
        var paced = pacing[place]
        let isHurried = isHurried(paced)
        var mask = [Bool](repeating: false, count: paced.lacking.count)
        var isEmpty = true
        while paced.next < paced.lacking.count, isHurried || paced.pace.isDue(now: now) {
            if paced.lacking[paced.next] {
                mask[paced.next] = true
                isEmpty = false
                paced.pace.spend(broadcasts.lines[paced.number].registered[paced.next], now: now)
            }
            paced.next += 1
        }
        paced.isStepping = !isEmpty
        pacing[place] = paced
        guard !isEmpty else { return }
        self.place(WantedPlaces(content: paced.content, lacking: mask))
    }

    /// Some of its places are on disk. False when it has none by and by.
    mutating func pacedPlaced(_ pending: PendingPlaces, segment: UInt32) -> Bool {
        let task = pending.wanted.content.broadcast.taskID
        guard let place = pacing.firstIndex(where: { $0.task == task.value }) else { return false }
        let number = pacing[place].number
        guard let index = broadcasts.index(number, task: task.value) else { return false }
        let targets = broadcasts.targets(number, pending.seqs)
        broadcasts.extend(number, index, pending.seqs, segment: segment, unreached: targets)
        if targets > 0 { note(.broadcastPlaced(targets: UInt64(targets)), of: CID(task.value)) }
        countPlaces(pending, targets: targets)
        tasks.placing[task.value] = nil
        let wasStopped = tasks.stoppedEarly.remove(task.value) != nil
        pacing[place].isStepping = false
        for local in pending.seqs.indices where pending.seqs[local] > .zero { pacing[place].lacking[local] = false }
        if broadcasts.lines[number].placed[index].state == .over {
            end(number, index, broadcasts.lines[number].placed[index].isStopped ? .taskStopped : .ttlRanOut)
        } else if wasStopped {
            endStopped(number, task.value)
        }
        // Who is there gets it, or is told that it came too late.
        broadcasts.wantPass(number)
        if !pacing[place].lacking.contains(true) { endPaced(place, index) }
        return true
    }

    private mutating func endPaced(_ place: Int, _ index: Int) {
        let paced = pacing.remove(at: place)
        broadcasts.endPaced(paced.number, index)
        // What is live only is over when all have been looked at once more.
        broadcasts.wantPass(paced.number)
        post(.placesKnown(paced.task), to: environment.owner(of: paced.content.broadcast.app))
        trimBroadcasts(paced.number)
    }
}
