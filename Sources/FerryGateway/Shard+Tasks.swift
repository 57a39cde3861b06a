internal import FerryAPI
internal import FerryCore
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// A call about a task, on its way from the shard that it came in at to the owner of the app.
enum TaskOrder: Sendable {
    case call(AppID, TaskCall, APIOrigin)
    case schedule(ScheduleOrder)
}

/// What shards tell each other of tasks.
enum TaskMessage: Sendable {
    /// That the task is stopped is on disk: nothing of it is sent from now on. Answered by `.stopKnown`.
    case stop(AppID, Identifier128)
    /// One shard more sends nothing of it.
    case stopKnown(Identifier128)
    /// The same of a task with stored content, answered likewise.
    case stopList(ListStop)
    /// The same of pushes to one device or to a name; answered by `singleStopped`.
    case stopSingle(SingleTask)
    /// All that was kept of it has ended on disk; or may not have.
    case singleStopped(SingleTask, isOnDisk: Bool)
}

/// What of tasks waits for a record to be on disk.
enum TaskEffect {
    case stopped(AppID, Identifier128, expiresAt: Instant)
    /// The ends of its messages here.
    case singleStopped(SingleTask)
}

/// A task whose sender stopped it, until the tables have that.
struct StoppedTask: Sendable, Equatable {
    let task: Identifier128
    /// The task's own time.
    let expiresAt: Instant
    let segment: UInt32
}

/// What a shard knows of tasks beyond what is placed.
struct ShardTasks {
    // Of the owner of the app.
    /// Stops under way, by task: shards that do not know of them yet, and calls that wait for the answer.
    var stopping: [Identifier128: (missing: Int, waiting: [APIOrigin])] = [:]
    /// Those that the tables do not have.
    var stops: [StoppedTask] = []
    var schedules = ScheduleBook()
    /// Those whose row is on its way to the disk.
    var comingSchedules = 0

    var stoppingSingles: [SingleTask: SingleStopping] = [:]

    // Of every shard.
    var lists = ListStops()
    var several = SeveralTasks()
    /// One is looked for after the other.
    var singleStops: [SingleStop] = []
    /// Tasks whose places are on their way to the disk.
    var placing: Set<Identifier128> = []
    /// Of these, those that were stopped meanwhile.
    var stoppedEarly: Set<Identifier128> = []

    mutating func takeStops(upTo segment: UInt32) -> [StoppedTask] {
        let going = stops.filter { $0.segment <= segment }
        stops.removeAll { $0.segment <= segment }
        return going
    }
}

/// The life of a task: from `DELETE /task/{taskid}` to the owner of the app, who has it on disk that the task is stopped, and to
/// all shards, which send nothing of it from then on. The call is answered when all of them know, so that nothing that was
/// not sent before the answer is sent after it.
extension Shard {
    mutating func order(_ call: TaskCall, _ app: App, _ origin: APIOrigin) {
        post(
            .order(.task(.call(app.id, call, origin))),
            to: Partition(of: app.id).owner(among: environment.shards))
    }

    // MARK: - The owner's part

    mutating func take(_ order: TaskOrder) {
        switch order {
        case .call(let app, .stop(let task), let origin): stop(task, app, origin)
        case .call(let app, .schedule(let task), let origin): tellSchedule(task, app, origin)
        case .call(let app, .cancel(let task), let origin): cancel(task, app, origin)
        case .schedule(let order): take(order)
        }
    }

    /// `origin` nil: nobody waits for the answer.
    mutating func stop(_ task: TaskID, _ app: AppID, _ origin: APIOrigin?) {
        if task.kind == .single { return stopSingle(task, app, origin) }
        if stopSchedule(task, app, origin) || stopList(task, app, origin) { return }
        guard let broadcast = knownBroadcast(task, app) else {
            return tell(origin, .failure(.taskUnknown(task)))
        }
        if tasks.stopping[task.value] != nil {
            tasks.stopping[task.value]?.waiting += origin.map { [$0] } ?? []
            return
        }
        let number = broadcastLine(of: app)
        // It may have entries to come. Of a live-only one other shards may have devices in whose logs it is.
        let isOpen =
            placing[task.value] != nil || !broadcasts.open(number, task: task.value).isEmpty
            || (broadcast.isLiveOnly && !tasks.stops.contains { $0.task == task.value })
        guard isOpen else { return tell(origin, .success(.stopped)) }
        guard unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes, !isDraining else {
            return tell(origin, .failure(refusal(.sync)))
        }
        tasks.stopping[task.value] = (environment.shards, origin.map { [$0] } ?? [])
        append(
            .broadcastStopped(task: task.value),
            .task(.stopped(app, task.value, expiresAt: broadcast.expiresAt)))
    }

    /// nil for what the app does not have, or does not have any more.
    mutating func knownBroadcast(_ task: TaskID, _ app: AppID) -> AcceptedBroadcast? {
        if let coming = placing[task.value]?.content.broadcast, coming.app == app, coming.taskID == task {
            return coming
        }
        // Before the table is looked at: the line may begin here.
        let number = broadcastLine(of: app)
        return broadcasts.broadcast(number, task)
    }

    mutating func committed(_ effect: TaskEffect, segment: UInt32) {
        switch effect {
        case .stopped(let app, let task, let expiresAt):
            tasks.stops.append(StoppedTask(task: task, expiresAt: expiresAt, segment: segment))
            for shard in 0..<environment.shards { post(.task(.stop(app, task)), to: shard) }
        case .singleStopped(let single): tellStopped(single, isOnDisk: true)
        }
    }

    mutating func refused(_ effect: TaskEffect) {
        switch effect {
        case .stopped(_, let task, _):
            for origin in tasks.stopping.removeValue(forKey: task)?.waiting ?? [] {
                tell(origin, .failure(.busy(retryAfterSeconds: 5)))
            }
        case .singleStopped(let single): tellStopped(single, isOnDisk: false)
        }
    }

    private mutating func stopKnown(_ task: Identifier128) {
        guard var stop = tasks.stopping.removeValue(forKey: task) else { return }
        stop.missing -= 1
        guard stop.missing <= 0 else {
            tasks.stopping[task] = stop
            return
        }
        for origin in stop.waiting { tell(origin, .success(.stopped)) }
    }

    mutating func tell(_ origin: APIOrigin?, _ result: Result<TaskAnswer, APIError>) {
        guard let origin else { return }
        settle(origin, result.map { .task($0) })
    }

    // MARK: - Every shard's part

    mutating func take(_ message: TaskMessage) {
        switch message {
        case .stop(let app, let task):
            // Places that are on their way to the disk are accepted first, and over at once.
            if tasks.placing.contains(task) { tasks.stoppedEarly.insert(task) }
            let number = broadcastLine(of: app)
            endStopped(number, task)
            trimBroadcasts(number)
            post(.task(.stopKnown(task)), to: Partition(of: app).owner(among: environment.shards))
        case .stopKnown(let task): stopKnown(task)
        case .stopList(let stop): take(stop)
        case .stopSingle(let single): beginStop(single)
        case .singleStopped(let single, let isOnDisk): singleStopped(single, isOnDisk: isOnDisk)
        }
    }

    /// Devices that were never told of it are counted at once; a pass tells the others. Until it has come to them they are sent
    /// nothing of it either: see `sharedContent`.
    mutating func endStopped(_ number: Int, _ task: Identifier128) {
        for index in broadcasts.open(number, task: task) { end(number, index, .taskStopped) }
        if broadcasts.lines[number].hasEnded { broadcasts.wantPass(number) }
    }
}
