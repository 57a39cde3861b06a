internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStore

/// Tasks whose content is stored once, at the owner of their app: they come with one call, get their devices with others, and
/// are given up in time. `Shard+ListDevices` is what happens at the devices.
extension Shard {
    // MARK: - Where a call came in

    mutating func order(_ call: ListCall, _ app: App, _ origin: APIOrigin) {
        switch call {
        case .message(let message): order(message, app, origin)
        case .targets(let targets): order(targets, app, origin)
        case .audience(let message, let audience): order(message, app, origin, audience)
        }
    }

    private mutating func order(
        _ message: ListMessage, _ app: App, _ origin: APIOrigin, _ audience: ListAudience? = nil
    ) {
        let creation = ListCreation(app.id, message, audience, origin: origin)
        post(.order(.list(.create(creation))), to: environment.owner(of: app.id))
    }

    private mutating func order(_ targets: ListTargets, _ app: App, _ origin: APIOrigin) {
        guard let task = targets.taskValue else { return fill(origin, .failure(.taskUnknown(targets.task))) }
        if isMemoryShort(for: (targets.cids.count + targets.aliases.count) * MemoryCost.loading) {
            return fill(origin, .failure(refusal(.memory)))
        }
        guard targets.aliases.isEmpty else {
            return post(.order(.list(.resolve(targets, app, origin))), to: environment.owner(of: app.id))
        }
        ask(BatchQuestion(targets), task, targets, app, origin)
    }

    /// The names' devices are known.
    private mutating func name(
        _ targets: ListTargets, _ devices: [(alias: String, cids: [CID])], _ app: App, _ origin: APIOrigin
    ) {
        guard let task = targets.taskValue else { return }
        let question = BatchQuestion(targets, devices)
        guard !question.cids.isEmpty else {
            return fill(origin, .failure(.aliasInvalid(targets.aliases.first ?? "")))
        }
        ask(question, task, targets, app, origin)
    }

    private mutating func ask(
        _ question: BatchQuestion, _ task: Identifier128, _ targets: ListTargets, _ app: App, _ origin: APIOrigin
    ) {
        batches[origin] = question
        let order = ListTargetsOrder(
            app: app, task: task, taskText: targets.task, cids: question.cids, origin: origin)
        post(.order(.list(.targets(order))), to: environment.owner(of: app.id))
    }

    // MARK: - The owner of the app

    mutating func take(_ order: ListOrder) {
        switch order {
        case .create(let creation): create(creation)
        case .targets(let order): take(order)
        case .resolve(let targets, let app, let origin): resolve(targets, app, origin)
        case .resolved(let targets, let app, let origin, let devices):
            name(targets, Array(zip(targets.aliases, devices)), app, origin)
        case .place(let placement): place(placement)
        case .wantContent(let app, let task, let shard): want(task, of: app, .shard(shard))
        case .content(let task, let content): contentCame(task, content)
        case .gather(let order): gather(order)
        case .gathered(let task, let shard): gathered(task, by: shard)
        case .placedEverywhere(let task): placedEverywhere(task)
        case .askPlaced(_, let task, let shard): answerPlaced(task, to: shard)
        }
    }

    private mutating func create(_ creation: ListCreation) {
        switch lists.table.find(request: creation.request) {
        case .known(let task):
            guard task.content == creation.digest, let origin = creation.origin else { return refuseRepeat(creation) }
            // Until who gets it is fixed a crash could find others.
            guard lists.tags.calls[task.taskID.value] == nil else {
                lists.tags.calls[task.taskID.value]?.waiting.append(origin)
                return
            }
            settle(origin, .success(.pushedAll(task: task.taskID)))
        case .inFlight(let content):
            guard content == creation.digest, let origin = creation.origin else { return refuseRepeat(creation) }
            lists.creating[creation.request, default: []].append(origin)
        case .unknown:
            // It was for a later time when it came first.
            guard creation.audience == nil || isUnknown(creation.scheduleKey) else { return refuseRepeat(creation) }
            if let error = shortage(for: creation) { return refuse(creation, error) }
            store(creation)
        }
    }

    private func isUnknown(_ request: Identifier128) -> Bool {
        if case .unknown = requests.find(request) { true } else { false }
    }

    private mutating func refuseRepeat(_ creation: ListCreation) {
        refuse(creation, .requestIDReused(creation.message.requestID))
    }

    private mutating func refuse(_ creation: ListCreation, _ error: APIError) {
        if let origin = creation.origin { settle(origin, .failure(error)) }
    }

    /// Why it cannot be taken; nil, and its bytes taken of the budget of contents, when it can.
    mutating func shortage(for creation: ListCreation) -> APIError? {
        let bytes = creation.message.payload.count
        if isDiskShort { return refusal(.disk) }
        if isMemoryShort(for: bytes + MemoryCost.order) { return refusal(.memory) }
        guard unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes, !isDraining else {
            return refusal(.sync)
        }
        let most = environment.configuration.listTasksPerApp
        guard lists.table.count(of: creation.app) < most else {
            counters.refused[Shortage.lists.rawValue] += 1
            return APIError(
                code: 30019,
                message: "please retry later: the app has \(most) tasks from /push/list/message (listTasksPerApp)",
                retryAfterSeconds: 60)
        }
        if creation.audience != nil {
            let open = lists.tags.calls.count + lists.tags.expansions.count
            guard open < environment.configuration.broadcastsPerApp else {
                return .tooManyBroadcasts("\(open) pushes to audiences are under way (broadcastsPerApp)")
            }
        }
        guard environment.listBudget.take(bytes) else { return refusal(.lists) }
        return nil
    }

    mutating func store(_ creation: ListCreation) {
        let message = creation.message
        let timeToLive: Int64 =
            switch message.ttl {
            case .liveOnly: 0
            case .milliseconds(let milliseconds): milliseconds
            }
        let task = ListTask(
            app: creation.app,
            taskID: creation.task
                ?? TaskID(randomIdentifier(), monthDay: now.monthDay, kind: creation.audience == nil ? .list : .app),
            createdAt: now, timeToLive: timeToLive, payloadBytes: UInt32(truncatingIfNeeded: message.payload.count),
            hasAlert: message.alert != nil, request: creation.request, content: creation.digest)
        let alert = message.alert.map {
            OwnAlert(body: $0.payload, collapseID: $0.collapseID, isBackground: $0.pushType == .background)
        }
        let content = TaskContent(task, payload: message.payload, alert: alert, traits: message.traits)
        lists.table.begin(task)
        lists.creating[creation.request] = creation.origin.map { [$0] } ?? []
        let partition = Partition(of: task.app)
        var rows = [
            ControlRow(.listTask, partition, key: Self.rowKey(task), value: task.encoded),
            ControlRow(.listContent, partition, key: Self.contentKey(task), value: content.encoded),
        ]
        let order = creation.audience.map { TagAudience(task, $0.expression, speed: $0.speed) }
        if let order { rows.append(ControlRow(.tagCall, partition, key: Self.rowKey(task), value: order.encoded)) }
        put(rows, then: .listStored(content, order))
    }

    private static func rowKey(_ task: ListTask) -> [UInt8] { task.taskID.value.bytes }
    /// No other key lies between this and the task's id.
    private static func contentKey(_ task: ListTask) -> [UInt8] { task.taskID.value.bytes + [0] }

    /// Its rows are on disk.
    mutating func listStored(_ content: TaskContent, _ audience: TagAudience?) {
        lists.table.add(content.task)
        lists.contents.add(content)
        if let audience {
            return beginTagCall(audience, waiting: lists.creating.removeValue(forKey: content.task.request) ?? [])
        }
        for origin in lists.creating.removeValue(forKey: content.task.request) ?? [] {
            settle(origin, .success(.pushedAll(task: content.task.taskID)))
        }
    }

    mutating func listRefused(_ content: TaskContent) {
        lists.table.abandon(content.task)
        environment.listBudget.change(by: -content.payload.count)
        for origin in lists.creating.removeValue(forKey: content.task.request) ?? [] {
            settle(origin, .failure(.busy(retryAfterSeconds: 5)))
        }
    }

    private mutating func take(_ order: ListTargetsOrder) {
        guard let task = lists.table[order.task], task.app == order.app, task.isOpen,
            task.taskID.description == order.taskText
        else { return refuse(order, .taskUnknown(order.taskText)) }
        guard now < task.usableUntil else { return refuse(order, .taskOver(order.taskText)) }
        guard !isStopped(order.task) else { return refuse(order, .taskStopped(order.taskText)) }
        want(order.task, of: order.app, .targets(order))
    }

    private mutating func resolve(_ targets: ListTargets, _ app: App, _ origin: APIOrigin) {
        let number = devices.number(of: app.id)
        let found = targets.aliases.map { audience.devices(number, of: $0) }
        post(.order(.list(.resolved(targets, app, origin, found))), to: origin.shard)
    }

    private mutating func refuse(_ order: ListTargetsOrder, _ error: APIError) {
        for place in order.cids.indices { noteBatchRefused(order.origin, Int32(truncatingIfNeeded: place), error) }
    }

    private mutating func divide(_ order: ListTargetsOrder, _ content: TaskContent?) {
        guard let content else { return refuse(order, .taskOver(order.taskText)) }
        var parts: [[(cid: CID, place: Int32)]] = Array(repeating: [], count: environment.shards)
        for (place, cid) in order.cids.enumerated() {
            parts[environment.owner(of: cid)].append((cid, Int32(truncatingIfNeeded: place)))
        }
        for shard in parts.indices where !parts[shard].isEmpty {
            let placement = ListPlacement(
                content: content, number: order.number, targets: parts[shard], origin: order.origin)
            post(.order(.list(.place(placement))), to: shard)
        }
    }

    // MARK: - Contents

    /// Has the content brought to `waiter`, at once if it is in memory.
    mutating func want(_ task: Identifier128, of app: AppID, _ waiter: ContentWaiter) {
        if let content = lists.contents.find(task) { return bring(task, content, to: waiter) }
        let isAsked = lists.wanted[task] != nil
        lists.wanted[task, default: []].append(waiter)
        guard !isAsked else { return }
        let owner = environment.owner(of: app)
        guard owner == index else {
            return post(.order(.list(.wantContent(app, task, shard: index))), to: owner)
        }
        guard let known = lists.table[task] else { return contentCame(task, nil) }
        readControl(
            ControlQuestion(
                table: .listContent, partition: Partition(of: app), after: task.bytes, limit: 1,
                then: { shard, rows, _ in
                    let row = rows.first { $0.key == Self.contentKey(known) }
                    let content = row?.value.flatMap { TaskContent(known, encoded: $0) }
                    if content == nil {
                        EventLog.write(.error, "content of a task is not there", ["task": known.taskID.description])
                    }
                    shard.contentCame(task, content)
                }))
    }

    mutating func contentCame(_ task: Identifier128, _ content: TaskContent?) {
        if let content { lists.contents.add(content) }
        for waiter in lists.wanted.removeValue(forKey: task) ?? [] { bring(task, content, to: waiter) }
    }

    private mutating func bring(_ task: Identifier128, _ content: TaskContent?, to waiter: ContentWaiter) {
        switch waiter {
        case .targets(let order): divide(order, content)
        case .shard(let shard): post(.order(.list(.content(task, content))), to: shard)
        case .read(let ticket): complete(ticket, task, content)
        case .expansion(let task): expansionContentCame(task, content)
        }
    }

    // MARK: - The end

    /// At each tick: what nobody needs any more is taken from the disk.
    mutating func endListsInTime() {
        guard now >= lists.table.nextEnd else { return }
        var rows: [ControlRow] = []
        for end in lists.table.takeEnded(now: now) {
            switch end {
            case .content(let task):
                lists.contents.remove(task.taskID.value)
                environment.listBudget.change(by: -Int(task.payloadBytes))
                rows.append(
                    ControlRow(.listContent, Partition(of: task.app), key: Self.contentKey(task), value: nil))
            case .task(let task):
                rows.append(ControlRow(.listTask, Partition(of: task.app), key: Self.rowKey(task), value: nil))
            }
        }
        // What the disk refuses of it comes to its end again after the next start.
        if !rows.isEmpty { put(rows) }
    }

    // MARK: - Recovery

    mutating func restoreListTask(_ row: ControlRow) {
        guard let task = row.value.flatMap({ ListTask($0) }) else {
            return EventLog.write(.error, "a stored task cannot be read", ["bytes": String(row.value?.count ?? 0)])
        }
        lists.table.add(task)
        environment.listBudget.change(by: Int(task.payloadBytes))
    }
}
