internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStore

/// Pushes to those that an expression describes. Who they are is fixed, shard by shard, before the call is answered; then each
/// shard gives its own their references, slice by slice, behind all else, and notes in the same batch how far it is.
extension Shard {
    private static var visitsPerTurn: Int { 4_096 }
    private static var targetsPerStep: Int { 128 }
    /// Of one put.
    private static var rowBytes: Int { 4 << 20 }
    private static var mostTargetsOfPart: Int { (ControlRow.valueBytes - 256) / 16 }
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

    /// One slice.
    private mutating func continueGathering() {
        guard var gathering = lists.tags.gatherings.first else { return }
        lists.tags.gatherings.removeFirst()
        let order = gathering.order
        let slice = audience.slice(
            devices.number(of: order.task.app), of: order.audience, after: gathering.cursor, limit: Self.visitsPerTurn,
            visits: Self.visitsPerTurn)
        for cid in slice.devices { gathering.found[broadcasts.local(Partition(of: cid))].append(cid) }
        gathering.cursor = slice.cursor
        if slice.cursor != nil {
            lists.tags.gatherings.append(gathering)
        } else {
            fix(gathering)
        }
    }

    /// Partitions whose targets an earlier life has fixed stay as they are.
    private mutating func fix(_ gathering: TagGathering) {
        let order = gathering.order
        var parts: [TagExpansion.Part] = []
        for (local, cids) in gathering.found.enumerated() where !cids.isEmpty {
            let partition = broadcasts.partition(local)
            if lists.tags.expansions[order.name]?.holds(partition) == true { continue }
            parts.append(
                TagExpansion.Part(partition: partition, cids: Array(cids.prefix(Self.mostTargetsOfPart)), done: 0))
        }
        var first = 0
        while first < parts.count {
            var end = first
            var bytes = 0
            while end < parts.count, bytes < Self.rowBytes {
                bytes += parts[end].cids.count * 16
                end += 1
            }
            put(order, Array(parts[first..<end]), isLast: end == parts.count)
            first = end
        }
        if parts.isEmpty { tagGathered(order, [], isLast: true) }
    }

    private mutating func put(_ order: TagAudience, _ parts: [TagExpansion.Part], isLast: Bool) {
        let rows = parts.map { part in
            ControlRow(
                .tagAudience, part.partition, key: order.name.bytes,
                value: TagExpansion.audienceRow(
                    part, task: order.task.taskID, app: order.task.app, speed: order.speed))
        }
        put(rows, then: .tagGathered(order, parts, isLast: isLast))
    }

    /// These parts are on disk.
    mutating func tagGathered(_ order: TagAudience, _ parts: [TagExpansion.Part], isLast: Bool) {
        if !parts.isEmpty {
            beginExpansion(order.task.taskID, order.task.app, order.speed)
            for part in parts { lists.tags.expansions[order.name]?.add(part) }
            if isStopped(order.name) { stopExpansion(order.name) }
        }
        guard isLast else { return }
        post(.order(.list(.gathered(order.name, shard: index))), to: environment.owner(of: order.task.app))
    }

    /// They are looked for once more: those of other parts that are on disk stay.
    mutating func tagGatheringRefused(_ order: TagAudience, isLast: Bool) {
        lists.tags.pausedUntil = now + Self.pause
        if isLast { gather(order) }
    }

    private mutating func beginExpansion(_ task: TaskID, _ app: AppID, _ speed: Int64) {
        guard lists.tags.expansions[task.value] == nil else { return }
        lists.tags.expansions[task.value] = TagExpansion(
            task: task, app: app, speed: speed, shards: environment.shards)
        lists.tags.turns.append(task.value)
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
        guard lists.tags.step == nil, lists.tags.awaited == nil, let task = nextExpansion(),
            let app = lists.tags.expansions[task]?.app
        else { return }
        lists.tags.awaited = task
        want(task, of: app, .expansion(task))
    }

    /// Whose turn it is of those that may go on now.
    private mutating func nextExpansion() -> Identifier128? {
        for _ in 0..<lists.tags.turns.count {
            let task = lists.tags.turns.removeFirst()
            guard let expansion = lists.tags.expansions[task] else { continue }
            lists.tags.turns.append(task)
            if let next = expansion.nextAt(now: now), next <= now { return task }
        }
        return nil
    }

    private mutating func beginStep(_ task: Identifier128, _ content: TaskContent) {
        guard let slice = lists.tags.expansions[task]?.slice(limit: Self.targetsPerStep, now: now), slice.count > 0
        else { return }
        lists.tags.step = TagStep(task: task, content: content, slice: slice)
        let away = targets(of: slice, task).filter { devices.index(of: $0) == nil }
        lists.tags.step?.loading = away.count
        for cid in away { wait(for: cid, .tagTarget) }
        if away.isEmpty { performStep() }
    }

    private func targets(of slice: TagExpansion.Slice, _ task: Identifier128) -> [CID] {
        guard let parts = lists.tags.expansions[task]?.parts else { return [] }
        return slice.runs.flatMap { parts[$0.part].cids[$0.range] }
    }

    /// A device's record is in memory, or is known not to be there; `isKnown` false: the store could not tell.
    mutating func tagTargetLoaded(isKnown: Bool) {
        lists.tags.step?.loading -= 1
        if !isKnown { lists.tags.step?.hasFailed = true }
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
        let cids = targets(of: step.slice, step.task)
        guard !step.hasFailed, !isDraining, !isDiskShort, !isMemoryShort(for: cids.count * MemoryCost.keptMessage),
            unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes
        else { return breakOffStep() }
        let placement = ListPlacement(
            content: step.content, number: UInt32(devices.number(of: expansion.app)),
            targets: cids.enumerated().map { ($1, Int32(truncatingIfNeeded: $0)) }, origin: nil)
        // Who is gone, or full where that means to be refused, is left out.
        for target in cids.indices { accept(placement, target, device: devices.index(of: cids[target])) }
        let rows = step.slice.runs.map { run in
            ControlRow(
                .tagCursor, expansion.parts[run.part].partition, key: step.task.bytes,
                value: TagExpansion.cursorRow(run.range.upperBound))
        }
        put(rows, then: .tagStep(step))
    }

    mutating func breakOffStep() {
        lists.tags.step = nil
        lists.tags.pausedUntil = now + Self.pause
    }

    mutating func tagStepDone(_ step: TagStep) {
        lists.tags.step = nil
        lists.tags.expansions[step.task]?.settle(step.slice, now: now)
        finishIfOver(step.task)
    }

    mutating func placedEverywhere(_ task: Identifier128) {
        lists.tags.expansions[task]?.isPlacedEverywhere = true
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
        lists.tags.expansions[task] = nil
        lists.tags.turns.removeAll { $0 == task }
        // What the disk refuses of it is found over at the next start.
        put(
            expansion.parts.flatMap { part in
                [
                    ControlRow(.tagAudience, part.partition, key: task.bytes, value: nil),
                    ControlRow(.tagCursor, part.partition, key: task.bytes, value: nil),
                ]
            })
    }

    /// The content is there; nil: it is gone, and so is the push.
    mutating func expansionContentCame(_ task: Identifier128, _ content: TaskContent?) {
        lists.tags.awaited = nil
        // The step begins with it at once: where memory is short it may be gone again soon.
        if let content { return beginStep(task, content) }
        guard let expansion = lists.tags.expansions[task] else { return }
        EventLog.write(
            .error, "a push to an audience is given up: its content is gone",
            ["task": expansion.task.description, "targetsLeft": String(expansion.remaining)])
        endExpansion(expansion)
    }

    // MARK: - Recovery

    mutating func restoreTagAudience(_ row: ControlRow) {
        guard let found = row.value.flatMap({ TagExpansion.audience($0) }) else {
            return EventLog.write(.error, "targets of a push cannot be read", ["partition": "\(row.partition.index)"])
        }
        beginExpansion(found.task, found.app, found.speed)
        lists.tags.expansions[found.task.value]?.add(
            TagExpansion.Part(partition: row.partition, cids: found.cids, done: 0))
        lists.tags.mustAsk = true
    }

    /// Cursors come behind all audiences.
    mutating func restoreTagCursor(_ row: ControlRow) {
        guard let task = Identifier128(bytes: row.key), let done = row.value.flatMap({ TagExpansion.cursor($0) })
        else { return }
        lists.tags.expansions[task]?.restore(row.partition, done: done)
    }

    mutating func restoreTagCall(_ row: ControlRow) {
        guard let task = Identifier128(bytes: row.key), let value = row.value else { return }
        lists.tags.restored.append((task, value))
    }

    /// Once, when all shards serve.
    private mutating func askAtStart() {
        let restored = lists.tags.restored
        lists.tags.restored = []
        for (task, row) in restored {
            guard let known = lists.table[task], let order = TagAudience(known, encoded: row) else {
                EventLog.write(.error, "a push to an audience cannot be read", ["task": task.hex])
                continue
            }
            beginTagCall(order, waiting: [])
        }
        guard lists.tags.mustAsk else { return }
        lists.tags.mustAsk = false
        for (task, expansion) in lists.tags.expansions {
            post(.order(.list(.askPlaced(expansion.app, task, shard: index))), to: environment.owner(of: expansion.app))
        }
    }

    mutating func answerPlaced(_ task: Identifier128, to shard: Int) {
        // Where its call is still open it will be told.
        guard lists.tags.calls[task] == nil, !lists.tags.restored.contains(where: { $0.task == task }) else { return }
        post(.order(.list(.placedEverywhere(task))), to: shard)
    }
}
