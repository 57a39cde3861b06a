internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// Tasks of single pushes whose devices are this shard's.
struct SingleOrder: Sendable {
    let app: AppID
    let tasks: [Identifier128]
    let origin: APIOrigin
}

/// Found singles whose devices are being loaded.
final class SingleGathering {
    let order: SingleOrder
    var missing: Int
    var part = ReportPart()
    var isComplete = true

    init(_ order: SingleOrder, missing: Int) {
        self.order = order
        self.missing = missing
    }
}

/// Reports of single pushes: nothing is counted for one message alone, so what the timeline tells is the report, for as long as
/// it tells of it.
extension Shard {
    mutating func take(_ order: SingleOrder) {
        guard let timeline = environment.timeline else {
            return send(ReportReply(origin: order.origin, part: ReportPart()))
        }
        handOverFacts()
        let mailbox = mailbox
        timeline.ask(TimelineQuestion(tasks: order.tasks)) { outcome in
            switch outcome {
            case .found(let found): mailbox.post(.report(.found(order, found)))
            case .answered, .busy: mailbox.post(.report(.found(order, nil)))
            }
        }
    }

    mutating func answer(_ order: SingleOrder, _ found: [FoundTask]?) {
        guard let found = found?.filter({ environment.owner(of: $0.device) == index }) else {
            return send(ReportReply(origin: order.origin, part: nil))
        }
        guard !found.isEmpty else { return send(ReportReply(origin: order.origin, part: ReportPart())) }
        let gathering = SingleGathering(order, missing: found.count)
        for single in found {
            if let device = devices.index(of: single.device) {
                gather(gathering, single, device)
            } else {
                wait(for: single.device, .single(gathering, single))
            }
        }
    }

    /// The device is known, or known not to exist. Another app's is answered like that.
    mutating func gather(_ gathering: SingleGathering, _ single: FoundTask, _ device: Int?) {
        gathering.missing -= 1
        if let device, devices.app(of: device) == gathering.order.app {
            let machine = devices[device].machine
            let view = view(of: device)
            // What is older is of a device of the same name that was removed.
            let story = DeviceStory(
                facts: single.facts.filter { $0.at >= view.registeredAt }, view: view, coverage: TimelineCoverage(),
                target: .task(single.task),
                isKept: { machine.isKept($0) })
            if let report = story.report {
                gathering.part.tasks[single.task, default: ReportCounters()] += report
            }
        }
        guard gathering.missing == 0 else { return }
        send(ReportReply(origin: gathering.order.origin, part: gathering.isComplete ? gathering.part : nil))
    }

    // MARK: - One task at one device

    mutating func askPath(_ cid: CID, _ task: ReportedTask, _ app: App, _ origin: APIOrigin) {
        let query = TimelineQuery(cid: cid, target: .task(task.task), limit: TimelineQuery.defaultLimit)
        let order = TimelineOrder(
            app: app.id, query: query, origin: origin, path: (environment.configuration.reportOffset, task.text))
        post(.order(.timeline(order)), to: environment.owner(of: cid))
    }
}
