internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryStats
internal import FerryStore

/// What a shard is asked for a report.
struct ReportOrder: Sendable {
    let app: AppID
    let question: ReportQuestion
    let origin: APIOrigin
}

/// What shards tell each other of reports.
enum ReportMail: Sendable {
    case question(ReportOrder)
    case part(ReportReply)
    /// To the owner of the app.
    case curve(AppID, APIOrigin)
    /// To the owner of the devices of single pushes: their tasks.
    case singles(SingleOrder)
    /// What the timeline found of them.
    case found(SingleOrder, [FoundTask]?)
}

/// A part of a report; nil when the gateway could not tell, and may later.
struct ReportReply: Sendable {
    let origin: APIOrigin
    let part: ReportPart?
}

/// A report that waits for its parts.
struct ReportGathering {
    let request: ReportRequest
    var missing: Int
    var sum = ReportPart()
    var isComplete = true
}

/// Reports: each shard tells what it counted, and where the call came in the parts are added up.
extension Shard {
    mutating func ask(_ request: ReportRequest, _ app: App, _ origin: APIOrigin) {
        var singles: [ReportedTask] = []
        let question: ReportQuestion
        switch request {
        case .tasks(let tasks, _, _):
            singles = tasks.filter { $0.kind == .single }
            question = .tasks(tasks.filter { $0.kind != .single }.map(\.task))
        case .group(let name, let from, let through): question = .group(name, from: from, through: through)
        case .pushDay(let day), .userDay(let day): question = .day(day)
        case .pushCount: question = .day(book.day)
        case .online:
            let owner = Partition(of: app.id).owner(among: environment.shards)
            return post(.report(.curve(app.id, origin)), to: owner)
        case .path(let cid, let task):
            return askPath(cid, task, app, origin)
        }
        var orders: [Int: [ReportedTask]] = [:]
        for task in singles {
            for owner in ownersOfSingle(task.task) { orders[owner, default: []].append(task) }
        }
        reportQuestions[origin] = ReportGathering(request: request, missing: environment.shards + orders.count)
        for (owner, tasks) in orders {
            let order = SingleOrder(app: app.id, tasks: tasks.map(\.task), origin: origin)
            post(.report(.singles(order)), to: owner)
        }
        let order = ReportOrder(app: app.id, question: question, origin: origin)
        for shard in 0..<environment.shards { post(.report(.question(order)), to: shard) }
    }

    mutating func take(_ mail: ReportMail) {
        switch mail {
        case .question(let order): take(order)
        case .part(let reply): collect(reply)
        case .curve(let app, let origin): settle(origin, .success(.report(curve.json(app, now: now))))
        case .singles(let order): take(order)
        case .found(let order, let singles): answer(order, singles)
        }
    }

    /// The part leaves when rows that tell of all that it tells are on disk (P1).
    private mutating func take(_ order: ReportOrder) {
        let reply = ReportReply(origin: order.origin, part: book.answer(order.question, of: order.app))
        if book.appCount == 0 || (!book.hasChanges && unsynced.count == unsyncedHead && journal.isEmpty) {
            send(reply)
        } else {
            reportReplies.append(reply)
        }
    }

    mutating func send(_ reply: ReportReply) { post(.report(.part(reply)), to: reply.origin.shard) }

    private mutating func collect(_ reply: ReportReply) {
        guard var gathering = reportQuestions.removeValue(forKey: reply.origin) else { return }
        gathering.missing -= 1
        if let part = reply.part { gathering.sum += part } else { gathering.isComplete = false }
        guard gathering.missing <= 0 else {
            reportQuestions[reply.origin] = gathering
            return
        }
        guard gathering.isComplete else { return fill(reply.origin, .failure(.busy(retryAfterSeconds: 1))) }
        fill(reply.origin, .success(.report(Self.json(gathering))))
    }

    private static func json(_ gathering: ReportGathering) -> [UInt8] {
        let sum = gathering.sum
        switch gathering.request {
        case .tasks(let tasks, let detail, let actions):
            return sum.tasksJSON(tasks.map { ($0.text, $0.task) }, detail: detail, actions: actions)
        case .group(let name, _, _): return sum.groupJSON(name)
        case .pushDay(let day): return sum.dayJSON(day)
        case .userDay(let day): return sum.usersJSON(day)
        case .pushCount, .online, .path: return sum.countJSON
        }
    }
}
