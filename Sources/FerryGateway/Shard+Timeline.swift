internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// What a backend wants to know of a device's past.
struct TimelineOrder: Sendable {
    let app: AppID
    let query: TimelineQuery
    let origin: APIOrigin
    /// The answer is a task's way in GeTui's form, by these clocks; and what the task was called.
    var path: (offset: UTCOffset, task: String)?
}

/// "Why did this device not get that message?": the log tells what happened, the device's owner how it stands now.
extension Shard {
    mutating func askTimeline(_ query: TimelineQuery, _ app: App, _ origin: APIOrigin) {
        let order = TimelineOrder(app: app.id, query: query, origin: origin)
        post(.order(.timeline(order)), to: environment.owner(of: query.cid))
    }

    mutating func take(_ order: TimelineOrder) {
        waitingBytes += order.query.weight
        if let device = devices.index(of: order.query.cid) {
            explain(order, device: device)
        } else {
            wait(for: order.query.cid, .timeline(order))
        }
    }

    /// The device is known, or known not to exist.
    mutating func explain(_ order: TimelineOrder, device: Int?) {
        // Another app's device is answered like one that does not exist.
        guard let device, devices.app(of: device) == order.app else {
            return answer(order, .failure(.targetInvalid(order.query.cid.description)))
        }
        catchUp(device)
        let view = view(of: device)
        if order.query.isPresentOnly { return answer(order, .success(view.json(cid: order.query.cid))) }
        let machine = devices[device].machine
        guard let timeline = environment.timeline else {
            var coverage = TimelineCoverage()
            coverage.isOff = true
            return answer(order, Self.story(order, view, machine, .answered([], coverage)))
        }
        handOverFacts()
        let question = TimelineQuestion(
            device: order.query.cid, target: order.query.target.map(TimelineTarget.init), limit: order.query.limit)
        let mailbox = mailbox
        // The story is made on the log's thread: a long one must not hold up this shard's devices.
        timeline.ask(question) { outcome in
            mailbox.post(.timelineRead(order, Self.story(order, view, machine, outcome)))
        }
    }

    /// The log has answered. The device is told of as it was when the log was asked, so that both are of one moment.
    private static func story(
        _ order: TimelineOrder, _ view: DeviceView, _ machine: DeviceStateMachine, _ outcome: TimelineOutcome
    ) -> Result<[UInt8], APIError> {
        switch outcome {
        case .busy, .found: return .failure(.busy(retryAfterSeconds: 1))
        case .answered(let facts, let coverage):
            // What is older is of a device of the same name that was removed.
            let own = facts.filter { $0.at >= view.registeredAt }
            let story = DeviceStory(
                facts: own, view: view, coverage: coverage, target: order.query.target.map(TimelineTarget.init),
                limit: order.query.limit, isKept: { machine.isKept($0) })
            if let path = order.path {
                guard story.isFound else { return .failure(.invalid("taskid", "\(path.task): \(story.verdict)")) }
                return .success(story.pathJSON(path.offset))
            }
            return .success(story.json(cid: order.query.cid))
        }
    }

    /// The end of every question that was taken.
    mutating func answer(_ order: TimelineOrder, _ result: Result<[UInt8], APIError>) {
        waitingBytes -= order.query.weight
        post(.reply(.timeline(order.origin, result)), to: order.origin.shard)
    }

    func view(of device: Int) -> DeviceView {
        let machine = devices[device].machine
        let presence: DeviceView.Presence =
            switch machine.presence {
            case .attached(let session): .attached(session)
            case .grace(let until): .grace(until: until)
            case .offline: .offline
            case .restored(let until): .restored(until: until)
            }
        return DeviceView(
            now: now, presence: presence, registeredAt: devices[device].registeredAt,
            seenAt: devices[device].seenAt,
            hasToken: machine.hasToken, acknowledged: machine.acknowledged, keptCount: machine.log.count,
            keptBytes: machine.log.bytes + machine.log.sharedBytes, sentUpTo: machine.window.sent)
    }
}

extension TimelineTarget {
    init(_ target: TimelineQuery.Target) {
        self =
            switch target {
            case .message(let id): .message(id)
            case .task(let id): .task(id)
            }
    }
}
