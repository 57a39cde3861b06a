internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStore

/// Pushes to those that an expression describes. Who they are is fixed, shard by shard, before the call is answered; then each
/// shard gives its own their references, slice by slice, behind all else, and notes in the same batch how far it is. Who cannot
/// get it is passed over, and that is told; what passes by itself is waited for.
extension Shard {
    private static var visitsPerLook: Int { 512 }
    private static var gatheringTime: Duration { .milliseconds(1) }
    private static var targetsPerStep: Int { 128 }
    /// Of one put.
    private static var rowBytes: Int { 4 << 20 }
    private static var mostTargetsOfPart: Int { TagExpansion.mostTargets(inRowOf: ControlRow.valueBytes) }
    private static var pause: Duration { .milliseconds(500) }

    // MARK: - The owner of the app

    /// The task is on disk: all shards are to fix their targets.
    mutating func beginTagCall(_ order: TagAudience, waiting: [APIOrigin]) {
        lists.tags.calls[order.name] = TagCall(
            order: order, missing: Set(0..<environment.shards), waiting: waiting)
        for shard in 0..<environment.shards { post(.order(.list(.gather(order))), to: shard) }
    }

    /// The part of one shard is on disk.
    mutating func gathered(_ task: Identifier128, by shard: Int) {
        lists.tags.calls[task]?.missing.remove(shard)
        if lists.tags.calls[task]?.missing.isEmpty == true { finishTagCall(task) }
    }

    private mutating func finishTagCall(_ task: Identifier128) {
        guard let call = lists.tags.calls[task] else { return }
        put(
            [ControlRow(.tagCall, Partition(of: call.order.task.app), key: task.bytes, value: nil)],
            then: .tagPlaced(task))
    }

    /// Nothing will be fixed again, whatever happens: the call is answered.
    mutating func tagPlaced(_ task: Identifier128) {
        guard let call = lists.tags.calls.removeValue(forKey: task) else { return }
        for origin in call.waiting { settle(origin, .success(.pushedAll(task: call.order.task.taskID))) }
        for shard in 0..<environment.shards { post(.order(.list(.placedEverywhere(task))), to: shard) }
    }

    mutating func tagPlacedRefused(_ task: Identifier128) {
        lists.tags.unfinished.append(task)
        lists.tags.pausedUntil = now + Self.pause
    }

    // MARK: - Every shard: who gets it

    mutating func gather(_ order: TagAudience) {
        lists.tags.gatherings.append(
            TagGathering(order: order, found: Array(repeating: [], count: broadcasts.partitions)))
    }

    /// The first goes on for a while, then the next has its turn.
    private mutating func continueGathering() {
        guard now >= lists.tags.gatherAfter, var gathering = lists.tags.gatherings.first else { return }
        // Calls were taken before their audiences were known. What is given out takes its room back meanwhile.
        guard !isMemoryShort(for: 0) else {
            lists.tags.gatherAfter = now + Self.pause
            return
        }
        lists.tags.gatherings.removeFirst()
        let number = devices.number(of: gathering.order.task.app)
        let end = environment.clock() + Self.gatheringTime
        repeat {
            let slice = audience.slice(
                number, of: gathering.order.audience, after: gathering.cursor, limit: Self.visitsPerLook,
                visits: Self.visitsPerLook)
            for cid in slice.devices { gathering.found[broadcasts.local(Partition(of: cid))].append(cid) }
            gathering.foundCount += slice.devices.count
            gathering.cursor = slice.cursor
            if slice.cursor == nil { return fix(gathering) }
        } while environment.clock() < end
        lists.tags.gatherings.append(gathering)
    }

    /// Partitions whose targets an earlier life has fixed stay as they are. So all of a partition goes to the disk at once.
    private mutating func fix(_ gathering: TagGathering) {
        let order = gathering.order
        var batches: [[TagExpansion.Part]] = []
        var room = 0
        for (local, cids) in gathering.found.enumerated() where !cids.isEmpty {
            let partition = broadcasts.partition(local)
            if lists.tags.expansions[order.name]?.holds(partition) == true { continue }
            if room <= 0 {
                batches.append([])
                room = Self.rowBytes
            }
            batches[batches.count - 1] += TagExpansion.parts(of: partition, cids, most: Self.mostTargetsOfPart)
            room -= cids.count * 16
        }
        put(order, batches[...])
    }

    /// One after the other, so that a large audience does not hold up what others put on the disk.
    private mutating func put(_ order: TagAudience, _ batches: ArraySlice<[TagExpansion.Part]>) {
        guard let parts = batches.first else {
            return post(.order(.list(.gathered(order.name, shard: index))), to: environment.owner(of: order.task.app))
        }
        let rows = parts.map { part in
            ControlRow(
                .tagAudience, part.partition, key: TagExpansion.rowKey(order.name, piece: part.piece),
                value: TagExpansion.audienceRow(part, of: order.task, speed: order.speed))
        }
        put(rows, then: .tagGathered(order, parts, rest: batches.dropFirst()))
    }

    /// These parts are on disk.
    mutating func tagGathered(
        _ order: TagAudience, _ parts: [TagExpansion.Part], rest: ArraySlice<[TagExpansion.Part]>
    ) {
        lists.tags.begin(order.task, speed: order.speed, shards: environment.shards)
        for part in parts { lists.tags.add(part, to: order.name) }
        if isStopped(order.name) { stopExpansion(order.name) }
        put(order, rest)
    }

    /// They are looked for once more: those of other parts that are on disk stay.
    mutating func tagGatheringRefused(_ order: TagAudience) {
        lists.tags.pausedUntil = now + Self.pause
        gather(order)
    }

    // MARK: - Every shard: giving it to them

    /// `distantFuture` for none.
    var nextTagTurn: Instant { isDraining ? .distantFuture : lists.tags.nextTurn(now: now) ?? .distantFuture }
    var hasTagsToDo: Bool { nextTagTurn <= now }

    /// At each turn, behind all else.
    mutating func continueTags() {
        guard hasTagsToDo else { return }
        askAtStart()
        let unfinished = lists.tags.unfinished
        lists.tags.unfinished = []
        for task in unfinished { finishTagCall(task) }
        continueGathering()
        if let task = lists.tags.awaited, now >= lists.tags.awaitedSince + TagWork.patience {
            lists.tags.late.insert(task)
            lists.tags.awaited = nil
        }
        guard lists.tags.step == nil, lists.tags.awaited == nil, let task = nextExpansion(),
            let expansion = lists.tags.expansions[task]
        else { return }
        if now >= expansion.endsAt { return endOverdue(expansion) }
        lists.tags.awaited = task
        lists.tags.awaitedSince = now
        want(task, of: expansion.app, .expansion(task))
    }

    /// Whose turn it is of those that may go on now.
    private mutating func nextExpansion() -> Identifier128? {
        for _ in 0..<lists.tags.turns.count {
            let task = lists.tags.turns.removeFirst()
            lists.tags.turns.append(task)
            if let next = lists.tags.nextTurn(of: task, now: now), next <= now { return task }
        }
        return nil
    }

    private mutating func endOverdue(_ expansion: TagExpansion) {
        let task = expansion.task.value
        if lists.tags.overdue.insert(task).inserted {
            EventLog.write(
                .warning, "the time of a push to an audience is over",
                ["task": expansion.task.description, "targetsLeft": String(expansion.remaining)])
        }
        beginStep(task, nil, passingOver: .turnTooLate)
    }

    /// The content is there; nil: it is gone, and nobody else gets it.
    mutating func expansionContentCame(_ task: Identifier128, _ content: TaskContent?) {
        lists.tags.late.remove(task)
        if lists.tags.awaited == task { lists.tags.awaited = nil }
        // Of one that came late: its turn comes again.
        guard lists.tags.step == nil, let expansion = lists.tags.expansions[task] else { return }
        if content == nil, lists.tags.overdue.insert(task).inserted {
            EventLog.write(
                .error, "a push to an audience is given up: its content is gone",
                ["task": expansion.task.description, "targetsLeft": String(expansion.remaining)])
        }
        // The step begins with it at once: where memory is short it may be gone again soon.
        beginStep(task, content, passingOver: content == nil ? .unreadable : nil)
    }

    private mutating func beginStep(
        _ task: Identifier128, _ content: TaskContent?, passingOver reason: EndReason? = nil
    ) {
        let time = now
        guard let slice = lists.tags.change(task, { $0.slice(limit: Self.targetsPerStep, now: time) }), slice.count > 0
        else { return }
        lists.tags.step = TagStep(task: task, content: content, reason: reason, slice: slice)
        // Who gets nothing need not be known.
        let away = reason == nil ? targets(of: slice, task).filter { devices.index(of: $0) == nil } : []
        lists.tags.step?.loading = away.count
        for cid in away { wait(for: cid, .tagTarget(cid)) }
        if away.isEmpty { performStep() }
    }

    private func targets(of slice: TagExpansion.Slice, _ task: Identifier128) -> [CID] {
        guard let parts = lists.tags.expansions[task]?.parts else { return [] }
        return slice.runs.flatMap { parts[$0.part].cids[$0.range] }
    }

    /// A device's record is in memory, or is known not to be there, or could not be read.
    mutating func tagTargetLoaded(_ cid: CID, _ load: TagTargetLoad) {
        lists.tags.troubles.note(load, cid)
        lists.tags.step?.loading -= 1
        switch load {
        case .known: break
        case .absent: lists.tags.step?.absent.insert(cid)
        case .failed: lists.tags.step?.failed.insert(cid)
        }
        if lists.tags.step?.loading == 0 { performStep() }
    }

    /// All references of the step and the count that covers them go to the disk in one batch.
    private mutating func performStep() {
        guard let step = lists.tags.step else { return }
        // Stopped meanwhile.
        guard let expansion = lists.tags.expansions[step.task] else {
            lists.tags.step = nil
            return
        }
        let number = devices.number(of: expansion.app)
        let cids = targets(of: step.slice, step.task)
        guard !isDraining, !isDiskShort,
            // Who is passed over takes none.
            step.content == nil || !isMemoryShort(for: cids.count * MemoryCost.keptMessage),
            unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes
        else { return breakOffStep() }
        guard step.content == nil || cids.allSatisfy({ isSettled($0, number, step) }) else {
            lists.tags.step = nil
            lists.tags.resting[step.task] = now + Self.pause
            return
        }
        let placement = ListPlacement(
            content: step.content ?? TaskContent(expansion.content, payload: [], alert: nil), number: UInt32(number),
            targets: cids.enumerated().map { ($1, Int32(truncatingIfNeeded: $0)) }, origin: nil)
        lists.tags.leftOut.removeAll(keepingCapacity: true)
        for target in cids.indices { give(placement, target, step, number) }
        put(cursors(step, expansion), then: .tagStep(step))
    }

    /// What becomes of the device can be decided now; if not, it can soon.
    private func isSettled(_ cid: CID, _ number: Int, _ step: TagStep) -> Bool {
        if let device = devices.index(of: cid) { return !devices[device].isLeaving }
        if step.absent.contains(cid) { return true }
        if step.failed.contains(cid) { return lists.tags.troubles.isHopeless(cid) }
        // It has left memory while others were loaded, or is gone for good.
        return !audience.contains(number, cid)
    }

    private mutating func give(_ placement: ListPlacement, _ target: Int, _ step: TagStep, _ number: Int) {
        let cid = placement.targets[target].cid
        // Who is gone has nobody who could be told.
        guard audience.contains(number, cid) else { return }
        if let reason = step.reason { return leaveOut(placement, target, reason) }
        if let device = devices.index(of: cid) { return accept(placement, target, device: device) }
        lists.tags.troubles.forget(cid)
        EventLog.write(
            .error, "a push to an audience passes over a device: what is known of it cannot be read",
            ["task": placement.content.task.taskID.description, "cid": cid.description])
        leaveOut(placement, target, .deviceUnreadable)
    }

    private func cursors(_ step: TagStep, _ expansion: TagExpansion) -> [ControlRow] {
        var before = 0
        return step.slice.runs.map { run in
            let part = expansion.parts[run.part]
            let shift = run.range.lowerBound - before
            let own = before..<before + run.range.count
            before = own.upperBound
            let leftOut = lists.tags.leftOut.filter { own.contains($0.place) }.map {
                TagExpansion.Cursor.LeftOut(place: $0.place + shift, seq: $0.seq, reason: $0.reason)
            }
            return ControlRow(
                .tagCursor, part.partition, key: TagExpansion.rowKey(step.task, piece: part.piece),
                value: TagExpansion.cursorRow(
                    TagExpansion.Cursor(
                        done: run.range.upperBound, first: run.range.lowerBound, at: now, leftOut: leftOut)))
        }
    }

    mutating func breakOffStep() {
        lists.tags.step = nil
        lists.tags.pausedUntil = now + Self.pause
    }

    mutating func tagStepDone(_ step: TagStep) {
        lists.tags.step = nil
        let time = now
        _ = lists.tags.change(step.task) { $0.settle(step.slice, now: time) }
        finishIfOver(step.task)
    }

    mutating func placedEverywhere(_ task: Identifier128) {
        _ = lists.tags.change(task) { $0.isPlacedEverywhere = true }
        finishIfOver(task)
    }

    /// Its rows stay until no shard can be asked to fix its targets again.
    private mutating func finishIfOver(_ task: Identifier128) {
        guard let expansion = lists.tags.expansions[task], expansion.isOver, expansion.isPlacedEverywhere else {
            return
        }
        endExpansion(expansion)
    }

    /// Nobody else gets it.
    mutating func stopExpansion(_ task: Identifier128) {
        if let expansion = lists.tags.expansions[task] { endExpansion(expansion) }
    }

    private mutating func endExpansion(_ expansion: TagExpansion) {
        let task = expansion.task.value
        lists.tags.remove(task)
        // What the disk refuses of it is found over at the next start.
        put(
            expansion.parts.flatMap { part in
                let key = TagExpansion.rowKey(task, piece: part.piece)
                return [
                    ControlRow(.tagAudience, part.partition, key: key, value: nil),
                    ControlRow(.tagCursor, part.partition, key: key, value: nil),
                ]
            })
    }
}
