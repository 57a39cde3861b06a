internal import FerryAPNS
internal import FerryAudience
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// Wakes the owners of devices that are away when a push to all comes. Nothing is written for a device: each shard walks
/// through its own in the order of their cids, as fast as the gateway may wake, and notes on disk how far it is. At its turn a
/// device that is away has a stub by the same rules as for any message; one that is there has one when it leaves without it.
extension Shard {
    private static var visitsPerTurn: Int { 4_096 }
    private static var devicesPerStep: Int { 64 }
    /// Stubs that wait for an answer, or for a cool-down.
    private static var mostOpen: Int { 4_096 }
    private static var checkPause: Duration { .milliseconds(50) }
    private static var savePause: Duration { .seconds(1) }
    /// Of a push with a pace: each wave looks at all devices, so there are not many.
    private static var wavePause: Duration { .seconds(30) }

    // MARK: - Beginning

    /// The broadcast is live, and has its places here or gets them.
    mutating func beginWakes(_ number: Int, _ broadcast: AcceptedBroadcast, isRestored: Bool = false) {
        let task = broadcast.taskID.value
        guard broadcast.terms.wakes, !broadcast.isLiveOnly, wakes.index(task) == nil else { return }
        var lookAt = now
        if let window = broadcast.traits.window { lookAt = max(lookAt, window.lowerBound) }
        if isRestored {
            // Devices are about to come back.
            let spread = min(60_000, broadcasts.registeredCount(number))
            lookAt = max(lookAt, now + environment.configuration.delivery.reattachGrace + .milliseconds(Int64(spread)))
        }
        wakes.walks.append(BroadcastWakes.Walk(task: task, number: number, lookAt: lookAt))
    }

    /// Behind the broadcasts. Every shard sees all of these rows.
    mutating func restoreWakes(_ row: ControlRow) {
        let isOwn = row.partition.owner(among: environment.shards) == index
        guard let (task, shards) = WakeWalk.read(key: row.key), let walk = row.value.flatMap({ WakeWalk(row: $0) }),
            let place = wakes.index(task)
        else {
            if isOwn { wakes.orphans.append(row) }
            return
        }
        if isOwn { wakes.walks[place].rows.insert(row.name) }
        if shards != environment.shards {
            wakes.walks[place].former.append(
                BroadcastWakes.Former(shards: shards, shard: row.partition.index, walk: walk))
        } else if isOwn {
            wakes.walks[place].walk = walk
        }
    }

    // MARK: - Turns

    /// When there is something to do; `distantFuture` for never.
    var nextWakeTurn: Instant {
        guard !wakes.isIdle, !isDraining else { return .distantFuture }
        if !wakes.orphans.isEmpty { return now }
        var next = Instant.distantFuture
        let open = wakes.open
        let canStep = wakes.loading.isEmpty && open < Self.mostOpen && stubsInFlight < Self.mostOpen
        let stepAt = max(wakes.pausedUntil, wakes.pace?.nextAt ?? now)
        for walk in wakes.walks {
            if !walk.steps.isEmpty { next = min(next, wakes.checkedAt + Self.checkPause) }
            if walk.isChanged { next = min(next, wakes.savedAt + Self.savePause) }
            if !walk.walk.isInWave {
                next = min(next, walk.lookAt)
            } else if !walk.isThrough, canStep {
                next = min(next, max(walk.lookAt, stepAt))
            }
        }
        return next
    }

    /// At each turn, behind all else.
    mutating func continueWakes() {
        guard nextWakeTurn <= now else { return }
        for row in wakes.orphans { put([ControlRow(row.table, row.partition, key: row.key, value: nil)]) }
        wakes.orphans = []
        if wakes.checkedAt + Self.checkPause <= now { settleWakes() }
        beginWaves()
        saveWakes()
        stepWakes()
    }

    /// Steps of which all is settled count as done.
    private mutating func settleWakes() {
        wakes.checkedAt = now
        for index in wakes.walks.indices where !wakes.walks[index].steps.isEmpty {
            while let first = wakes.walks[index].steps.first {
                let open = first.open.filter { isWakeOpen($0.cid, $0.seq) }
                wakes.walks[index].steps[0].open = open
                let isUnderWay =
                    wakes.walks[index].steps.count == 1 && wakes.stepping == wakes.walks[index].task
                    && !(wakes.loading.isEmpty && wakes.failed.isEmpty)
                guard open.isEmpty, !isUnderWay else { break }
                wakes.walks[index].walk.settle(upTo: first.cursor)
                wakes.walks[index].isChanged = true
                wakes.walks[index].steps.removeFirst()
            }
        }
    }

    private func isWakeOpen(_ cid: CID, _ seq: Seq) -> Bool {
        devices.index(of: cid).map { devices[$0].machine.isWakeOpen(seq) } ?? false
    }

    private mutating func beginWaves() {
        var over: [Int] = []
        for index in wakes.walks.indices {
            let walk = wakes.walks[index]
            let entry = broadcasts.index(walk.number, task: walk.task)
            guard let entry, broadcasts.lines[walk.number].placed[entry].state == .live else {
                over.append(index)
                continue
            }
            if walk.isThrough, walk.steps.isEmpty {
                wakes.walks[index].walk.endWave()
                wakes.walks[index].isThrough = false
                wakes.walks[index].isChanged = true
            }
            guard !wakes.walks[index].walk.isInWave, walk.lookAt <= now else { continue }
            if wakes.walks[index].walk.done == broadcasts.partitions {
                // Its row goes with the broadcast.
                let end = broadcasts.lines[walk.number].placed[entry].broadcast.expiresAt
                wakes.walks[index].lookAt = max(end, now) + .seconds(1)
                continue
            }
            let placed = broadcasts.placedCount(walk.number, task: walk.task)
            guard placed == broadcasts.partitions || walk.waveAt + Self.wavePause <= now else {
                wakes.walks[index].lookAt = now + .seconds(1)
                continue
            }
            wakes.walks[index].walk.beginWave(upTo: placed)
            wakes.walks[index].waveAt = now
            wakes.walks[index].lookAt = wakes.walks[index].walk.isInWave ? now : now + .seconds(1)
        }
        for index in over.reversed() { endWakes(index) }
    }

    private mutating func endWakes(_ index: Int) {
        let walk = wakes.walks.remove(at: index)
        let rows = walk.rows.compactMap { $0.row(nil) }
        if !rows.isEmpty { put(rows) }
        guard wakes.stepping == walk.task else { return }
        // Whoever is loaded for it still is looked at by nobody.
        wakes.stepping = nil
        wakes.loading = []
        wakes.failed = []
    }

    private mutating func saveWakes() {
        guard wakes.savedAt + Self.savePause <= now else { return }
        for index in wakes.walks.indices where wakes.walks[index].isChanged {
            wakes.savedAt = now
            wakes.walks[index].isChanged = false
            let row = ControlRow(
                .broadcastWake, broadcasts.partition(0),
                key: WakeWalk.key(wakes.walks[index].task, shards: environment.shards),
                value: wakes.walks[index].walk.row)
            wakes.walks[index].rows.insert(row.name)
            put([row])
        }
    }

    // MARK: - Steps

    private mutating func stepWakes() {
        guard wakes.loading.isEmpty, wakes.pausedUntil <= now else { return }
        guard wakes.failed.isEmpty else {
            let failed = wakes.failed
            wakes.failed = []
            return failed.forEach { lookAt($0) }
        }
        let pace =
            wakes.pace
            ?? Pace(
                perSecond: Int64(environment.configuration.broadcastWakesPerSecond), parts: environment.shards, now: now
            )
        wakes.pace = pace
        let room = min(Self.devicesPerStep, Self.mostOpen - wakes.open, Self.mostOpen - stubsInFlight)
        let limit = pace.allowance(now: now, limit: room)
        guard limit > 0 else { return }
        guard !isMemoryShort(for: limit * MemoryCost.keptMessage) else {
            wakes.pausedUntil = now + .milliseconds(500)
            return
        }
        if let index = wakes.next(now: now) { step(index, limit) }
    }

    private mutating func step(_ index: Int, _ limit: Int) {
        let walk = wakes.walks[index]
        let slice = audience.wakeable(
            walk.number, after: walk.walk.cursor, limit: limit, visits: Self.visitsPerTurn)
        wakes.walks[index].steps.append(BroadcastWakes.Step(cursor: slice.cursor))
        if let cursor = slice.cursor {
            wakes.walks[index].walk.move(to: cursor)
        } else {
            wakes.walks[index].isThrough = true
        }
        wakes.stepping = walk.task
        for cid in slice.devices where walk.walk.wave.contains(broadcasts.local(Partition(of: cid))) {
            if !walk.former.contains(where: { $0.hasSettled(cid) }) { lookAt(cid) }
        }
    }

    private mutating func lookAt(_ cid: CID) {
        if let device = devices.index(of: cid) { return wake(device) }
        wakes.loading.insert(cid)
        wait(for: cid, .wake(cid))
    }

    /// A device's record is in memory, or there is none; `isKnown` false: the store could not tell.
    mutating func wakeLoaded(_ cid: CID, _ device: Int?, isKnown: Bool) {
        guard wakes.loading.remove(cid) != nil else { return }
        if !isKnown {
            wakes.failed.append(cid)
            wakes.pausedUntil = now + .milliseconds(500)
        } else if let device {
            wake(device)
        }
    }

    private mutating func wake(_ device: Int) {
        let cid = devices[device].cid
        guard let task = wakes.stepping, let index = wakes.index(task),
            let (entry, seq) = place(of: task, wakes.walks[index].number, cid)
        else { return }
        let number = wakes.walks[index].number
        let traits = broadcasts.lines[number].placed[entry].broadcast.traits
        guard broadcasts.lines[number].placed[entry].state == .live, devices[device].machine.acknowledged < seq,
            devices[device].token != nil, !devices[device].isBlocked, !devices[device].isLeaving
        else { return }
        catchUp(device)
        guard devices[device].machine.isKept(seq) else { return }
        if traits.badge != nil { countBadge(AcceptanceTerms(traits: traits), device) }
        tell(device: device, .wakeWanted(seq))
        if !devices[device].machine.presence.isOnline { wakes.pace?.spend(1, now: now) }
        guard devices[device].machine.isWakeOpen(seq), let last = wakes.walks[index].steps.indices.last else { return }
        wakes.walks[index].steps[last].open.append((cid, seq))
    }

    /// The broadcast's entry and its `seq` in the device's stream.
    private func place(of task: Identifier128, _ number: Int, _ cid: CID) -> (entry: Int, seq: Seq)? {
        let local = broadcasts.local(Partition(of: cid))
        guard let last = broadcasts.index(number, task: task) else { return nil }
        for entry in stride(from: last, through: 0, by: -1) {
            let placed = broadcasts.lines[number].placed[entry]
            if placed.broadcast.taskID.value == task, placed.seqs[local] > .zero { return (entry, placed.seqs[local]) }
        }
        return nil
    }

    // MARK: - Stubs

    /// A broadcast's own alert.
    mutating func requestSharedStub(_ message: KeptMessage, _ plan: StubPlan, _ device: Int) {
        let number = devices.appNumber(of: device)
        let cid = devices[device].cid
        guard let index = broadcasts.index(number, ordinal: message.broadcastOrdinal),
            let broadcast = broadcasts.lines[number].placed[index].content?.broadcast,
            let alert = broadcast.terms.alert, let token = devices[device].token
        else { return stubAnswered(cid, plan, .refused("the message is over")) }
        requestOwnStub(
            OwnStub(
                cid: cid, name: "\(broadcast.taskID):\(broadcast.messageID):\(cid)", alert: alert,
                traits: broadcast.traits, expiresAt: broadcast.expiresAt,
                identity: Self.stubIdentity(cid, message.seq)),
            token, plan, device)
    }

    /// When the last message is over that a default stub up to `upTo` stands for: a machine does not know when broadcasts are.
    func known(_ expiresAt: Instant, upTo: Seq, _ device: Int) -> Instant {
        guard expiresAt == .distantFuture else { return expiresAt }
        let number = devices.appNumber(of: device)
        var latest = now
        for place in 0..<devices[device].machine.log.count {
            let message = devices[device].machine.log[place]
            guard message.seq <= upTo else { break }
            guard message.isShared else {
                latest = max(latest, message.expiresAt)
                continue
            }
            guard let index = broadcasts.index(number, ordinal: message.broadcastOrdinal) else { continue }
            latest = max(latest, broadcasts.lines[number].placed[index].broadcast.expiresAt)
        }
        return latest
    }
}
