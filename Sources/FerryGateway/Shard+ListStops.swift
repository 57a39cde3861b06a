internal import FerryAPI
internal import FerryCore
internal import FerryRouting
internal import FerryStore

/// Stops of tasks whose content is stored once. When the stop is on disk all shards hear of it, and the call is answered when all
/// of them know: from then on what comes to be sent of the task ends instead, and so does what is on its way to the disk. A
/// sweep over the devices ends the rest, in slices behind all else. A start knows the stops before anybody is served, and
/// sweeps once more.
extension Shard {
    private static var visitsPerTurn: Int { 1_024 }
    private static var endsPerTurn: Int { 256 }

    func isStopped(_ task: Identifier128) -> Bool { tasks.lists.contains(task) }

    // MARK: - The owner's part

    /// Whether the app has such a task with stored content. `origin` nil: nobody waits for the answer.
    mutating func stopList(_ task: TaskID, _ app: AppID, _ origin: APIOrigin?) -> Bool {
        guard let list = lists.table[task.value], list.app == app, list.taskID == task else { return false }
        if tasks.stopping[task.value] != nil {
            tasks.stopping[task.value]?.waiting += origin.map { [$0] } ?? []
        } else if isStopped(task.value) || list.contentOverAt <= now {
            tell(origin, .success(.stopped))
        } else if unsyncedBytes + journal.writer.bytes.count > environment.configuration.unsyncedBytes || isDraining {
            tell(origin, .failure(refusal(.sync)))
        } else {
            tasks.stopping[task.value] = (environment.shards, origin.map { [$0] } ?? [])
            let stop = ListStop(app: app, task: task, forgetAt: list.contentOverAt)
            put([stop.row], then: .listStop(stop))
        }
        return true
    }

    /// The row is on disk.
    mutating func listStopped(_ stop: ListStop) {
        tasks.lists.addOwn(stop)
        for shard in 0..<environment.shards { post(.task(.stopList(stop)), to: shard) }
    }

    mutating func listStopRefused(_ stop: ListStop) {
        for origin in tasks.stopping.removeValue(forKey: stop.task.value)?.waiting ?? [] {
            tell(origin, .failure(.busy(retryAfterSeconds: 5)))
        }
    }

    /// At each tick.
    mutating func forgetListStopsInTime() {
        guard now >= tasks.lists.nextEnd else { return }
        // What the disk refuses of it comes to its end again after the next start.
        let rows = tasks.lists.takeEnded(now: now).map(\.end)
        if !rows.isEmpty { put(rows) }
    }

    // MARK: - Every shard's part

    mutating func take(_ stop: ListStop) {
        tasks.lists.add(stop)
        stopExpansion(stop.task.value)
        post(.task(.stopKnown(stop.task.value)), to: environment.owner(of: stop.app))
    }

    /// Before anybody is served.
    mutating func restoreListStops(_ stops: [ListStop]) {
        for stop in stops {
            tasks.lists.add(stop)
            stopExpansion(stop.task.value)
            if environment.owner(of: stop.app) == index { tasks.lists.addOwn(stop) }
        }
    }

    // MARK: - The sweep

    /// A slice, behind all else of the tick.
    mutating func continueListSweep() {
        guard tasks.lists.isSweeping else { return }
        let numbers = Set(tasks.lists.continueSweep().compactMap { taskSlots.number(of: $0) })
        var cursor = numbers.isEmpty ? devices.endIndex : tasks.lists.cursor
        let end = min(devices.endIndex, cursor + Self.visitsPerTurn)
        var ends = 0
        while cursor < end, ends < Self.endsPerTurn {
            if devices.isInUse(cursor), !devices[cursor].isLeaving { ends += endReferences(of: numbers, cursor) }
            cursor += 1
        }
        tasks.lists.cursor = cursor
        if cursor >= devices.endIndex { tasks.lists.endSweep() }
    }

    /// Answers how many there were.
    @discardableResult
    mutating func endReferences(of numbers: Set<UInt16>, _ device: Int) -> Int {
        var found: [Seq] = []
        let log = devices[device].machine.log
        for place in 0..<log.count {
            let message = log[place]
            if message.taskSlot != TaskSlots.none, numbers.contains(message.taskSlot) { found.append(message.seq) }
        }
        for seq in found { tell(device: device, .takenBack(seq, .taskStopped)) }
        return found.count
    }

    /// The next in the stream is of a stopped task: it ends before it is sent. The stream goes on where this was called, not in
    /// the middle of it.
    mutating func takeBackStopped(_ seq: Seq, _ device: Int) {
        devices[device].isReading = true
        tell(device: device, .takenBack(seq, .taskStopped))
        devices[device].isReading = false
    }
}
