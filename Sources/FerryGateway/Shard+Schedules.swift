internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStore

/// What of schedules waits for a row to be on disk.
enum ScheduleEffect {
    case accepted(ScheduledCall)
    /// It is not released any more; the call that wanted it gets this answer.
    case cancelled(ScheduledCall, APIOrigin?, TaskAnswer)
    /// It was released, or could not be.
    case ended(ScheduledCall)
}

/// Scheduled calls: a row each, at the owner of the app. When its time has come the owner makes the call: the acceptance of the
/// task goes to the journal before the row that says so, in one piece. The task has its name from the beginning, so where a
/// crash left the acceptance without the row, the next start sees that it was released.
extension Shard {
    mutating func order(_ push: ScheduledPush, _ app: App, _ origin: APIOrigin) {
        let order = ScheduleOrder(app: app.id, push: push, key: push.content.key(app.id), origin: origin)
        post(.order(.task(.schedule(order))), to: environment.owner(of: app.id))
    }

    // MARK: - Coming

    mutating func take(_ order: ScheduleOrder) {
        let requestID = order.push.content.requestID
        if answerRepeat(order.key, requestID, order.origin) { return }
        // Not before: a repeat may come when its time is past.
        if let error = order.push.check(now: now) ?? shortage(for: order) {
            return answer(order.origin, .failure(error))
        }
        accept(order)
    }

    /// Why it cannot be taken; nil, and its body's bytes taken of the budget, when it can.
    private mutating func shortage(for order: ScheduleOrder) -> APIError? {
        if isDiskShort { return refusal(.disk) }
        if isMemoryShort(for: order.push.body.count + MemoryCost.order) { return refusal(.memory) }
        guard unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes, !isDraining else {
            return refusal(.sync)
        }
        let waiting = tasks.schedules.waitingCount(of: order.app) + tasks.comingSchedules
        guard waiting < environment.configuration.scheduledPerApp else {
            counters.refused[Shortage.broadcasts.rawValue] += 1
            return .tooManyBroadcasts("the app has \(waiting) scheduled tasks (scheduledPerApp)")
        }
        guard environment.broadcastBudget.take(order.push.body.count) else {
            counters.refused[Shortage.broadcasts.rawValue] += 1
            return .tooManyBroadcasts("pushes to all and schedules hold as much memory as they may (broadcastBytes)")
        }
        return nil
    }

    private mutating func accept(_ order: ScheduleOrder) {
        _ = requests.begin(order.key.key, content: order.key.content)
        openBroadcasts[order.key.key] = [order.origin]
        tasks.comingSchedules += 1
        let call = ScheduledCall(
            app: order.app, taskID: TaskID(randomIdentifier(), monthDay: now.monthDay, kind: .app),
            kind: ScheduledCall.Kind(order.push.kind),
            createdAt: now, releaseAt: order.push.releaseAt, request: order.key.key, content: order.key.content,
            body: order.push.body)
        put([call.row], then: .schedule(.accepted(call)))
    }

    mutating func committed(_ effect: ScheduleEffect, segment: UInt32) {
        switch effect {
        case .accepted(let call):
            tasks.comingSchedules -= 1
            requests.settle(call.request, call.answer, acceptedAt: call.createdAt, segment: segment)
            forget(tasks.schedules.add(call))
            for origin in openBroadcasts.removeValue(forKey: call.request) ?? [] {
                answer(origin, .success(call.taskID))
            }
        case .cancelled(let call, let origin, let reply):
            settle(call)
            tell(origin, .success(reply))
        case .ended(let call): settle(call)
        }
    }

    mutating func refused(_ effect: ScheduleEffect) {
        switch effect {
        case .accepted(let call):
            tasks.comingSchedules -= 1
            environment.broadcastBudget.change(by: -call.body.count)
            requests.abandon(call.request)
            for origin in openBroadcasts.removeValue(forKey: call.request) ?? [] {
                answer(origin, .failure(.busy(retryAfterSeconds: 5)))
            }
        case .cancelled(let call, let origin, _):
            tasks.schedules.keptWaiting(call.taskID.value)
            tell(origin, .failure(.busy(retryAfterSeconds: 5)))
        case .ended(let call): tasks.schedules.tryAgain(call.taskID.value, at: now + .seconds(1))
        }
    }

    /// `call` is in its last state.
    private mutating func settle(_ call: ScheduledCall) {
        if let known = tasks.schedules.find(call.taskID, of: call.app) {
            environment.broadcastBudget.change(by: -known.body.count)
        }
        forget(tasks.schedules.settle(call.taskID.value, call.state))
    }

    private mutating func forget(_ calls: [ScheduledCall]) {
        guard !calls.isEmpty else { return }
        put(calls.map { ControlRow(.schedule, Partition(of: $0.app), key: $0.taskID.value.bytes, value: nil) })
    }

    // MARK: - Release

    /// At each tick. The gateway's own time counts, which a step of the wall clock does not move at once.
    mutating func releaseSchedules() {
        guard now >= tasks.schedules.nextDue, !isDraining else { return }
        let due = tasks.schedules.takeDue(now: now)
        for call in due.release { release(call) }
        forget(due.forget)
    }

    private mutating func release(_ call: ScheduledCall) {
        // It was, and a crash took the row that says so.
        guard knownBroadcast(call.taskID, call.app) == nil, lists.table[call.taskID.value] == nil else {
            return end(call, .released)
        }
        switch parser.stored(ScheduledKind(call.kind), call.body) {
        case .failure(let error): fail(call, error)
        case .success(.all(let push)):
            // Its window is over; only want of room passes.
            if let error = shortage(for: push, call.app) { return wait(call, error) }
            accept(
                push, call.app, RequestKey(key: call.request, content: call.content), origins: [], task: call.taskID)
            end(call, .released)
        case .success(.audience(let message, let audience)):
            let creation = ListCreation(call.app, message, audience, origin: nil, task: call.taskID)
            if let error = shortage(for: creation) { return wait(call, error) }
            store(creation)
            end(call, .released)
        }
    }

    private mutating func wait(_ call: ScheduledCall, _ error: APIError) {
        guard error.code == 30_019 else { return fail(call, error) }
        EventLog.write(
            .warning, "a scheduled task waits for room",
            ["taskid": call.taskID.description, "reason": error.message])
        tasks.schedules.tryAgain(call.taskID.value, at: now + .seconds(5))
    }

    private mutating func fail(_ call: ScheduledCall, _ error: APIError) {
        EventLog.write(
            .error, "a scheduled task cannot be released",
            ["taskid": call.taskID.description, "reason": error.message])
        end(call, .failed)
    }

    private mutating func end(_ call: ScheduledCall, _ state: ScheduledCall.State) {
        let ended = call.ended(state)
        put([ended.row], then: .schedule(.ended(ended)))
    }

    // MARK: - Other calls

    mutating func cancel(_ task: TaskID, _ app: AppID, _ origin: APIOrigin) {
        switch tasks.schedules.beginCancelling(task, of: app, now: now) {
        case .unknown: tell(origin, .failure(.scheduleUnknown(task)))
        case .tooLate: tell(origin, .failure(.scheduleTooLate(task)))
        case .alreadyRun: tell(origin, .failure(.scheduleRun(task)))
        case .alreadyCancelled: tell(origin, .success(.cancelled))
        case .begun: putCancelled(task, app, origin, .cancelled)
        }
    }

    /// Whether a stop of the task is answered here: it waits for its time, or was cancelled.
    mutating func stopSchedule(_ task: TaskID, _ app: AppID, _ origin: APIOrigin?) -> Bool {
        guard let call = tasks.schedules.find(task, of: app) else { return false }
        switch tasks.schedules.beginCancelling(task, of: app, now: now, isStop: true) {
        case .unknown: return false
        case .alreadyCancelled: tell(origin, .success(.stopped))
        case .begun: putCancelled(task, app, origin, .stopped)
        case .tooLate, .alreadyRun:
            // On its way to the disk it is neither waiting nor known.
            guard call.state == .waiting, knownBroadcast(task, app) == nil, lists.table[task.value] == nil else {
                return false
            }
            tell(origin, .failure(.busy(retryAfterSeconds: 1)))
        }
        return true
    }

    private mutating func putCancelled(_ task: TaskID, _ app: AppID, _ origin: APIOrigin?, _ reply: TaskAnswer) {
        guard let call = tasks.schedules.find(task, of: app)?.ended(.cancelled) else { return }
        put([call.row], then: .schedule(.cancelled(call, origin, reply)))
    }

    mutating func tellSchedule(_ task: TaskID, _ app: AppID, _ origin: APIOrigin) {
        guard let call = tasks.schedules.find(task, of: app) else {
            return tell(origin, .failure(.scheduleUnknown(task)))
        }
        let content = call.body.isEmpty ? nil : try? parser.stored(ScheduledKind(call.kind), call.body).get()
        tell(origin, .success(.schedule(ScheduleView(call, payload: content?.transmission ?? []))))
    }

    // MARK: - Recovery

    mutating func restoreSchedule(_ row: ControlRow) {
        guard let call = row.value.flatMap({ ScheduledCall($0) }) else {
            EventLog.write(.error, "a scheduled task's row cannot be read", [:])
            return
        }
        environment.broadcastBudget.change(by: call.body.count)
        if call.createdAt + environment.configuration.requestWindow > now {
            requests.settle(call.request, call.answer, acceptedAt: call.createdAt, segment: 0)
        }
        forget(tasks.schedules.add(call))
    }
}

extension ScheduledCall {
    fileprivate var row: ControlRow {
        ControlRow(.schedule, Partition(of: app), key: taskID.value.bytes, value: encoded)
    }

    fileprivate var answer: RequestAnswer {
        RequestAnswer(content: content, taskID: taskID, wasOnline: false, acceptedAt: createdAt)
    }
}

extension ScheduleView {
    fileprivate init(_ call: ScheduledCall, payload: [UInt8]) {
        let state: State =
            switch call.state {
            case .waiting: .waiting
            case .released: .released
            case .cancelled: .cancelled
            case .failed: .failed
            }
        self.init(
            task: call.taskID, state: state, createdAt: call.createdAt, releaseAt: call.releaseAt, payload: payload)
    }
}

extension ScheduledContent {
    fileprivate func key(_ app: AppID) -> RequestKey {
        switch self {
        case .all(let push): Shard.requestKey(app, push.requestID, "all", push.contentDigestInput)
        case .audience(let message, let audience):
            Shard.requestKey(app, message.requestID, "tag", message.contentDigestInput + audience.digestInput)
        }
    }
}

extension ScheduledCall.Kind {
    fileprivate init(_ kind: ScheduledKind) {
        self =
            switch kind {
            case .all: .all
            case .tag: .tag
            case .fastCustomTag: .fastCustomTag
            }
    }
}

extension ScheduledKind {
    fileprivate init(_ kind: ScheduledCall.Kind) {
        self =
            switch kind {
            case .all: .all
            case .tag: .tag
            case .fastCustomTag: .fastCustomTag
            }
    }
}
