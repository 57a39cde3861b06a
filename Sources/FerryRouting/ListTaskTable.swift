package import FerryCore

/// The tasks with stored content of the apps that one shard owns: found by their id and by the request id that they came with,
/// and given up in time. It does not do: I/O, holding contents.
package struct ListTaskTable: Sendable {
    /// What a request id means at this moment.
    package enum Finding: Equatable, Sendable {
        case unknown
        /// The first try is on its way to the disk.
        case inFlight(content: Identifier128)
        case known(ListTask)
    }

    /// What has come to its end.
    package enum End: Equatable, Sendable {
        /// Nobody needs the content any more.
        case content(ListTask)
        /// The request id is forgotten, and the task with it.
        case task(ListTask)
    }

    private enum Step { case content, task }

    private var tasks: [Identifier128: ListTask] = [:]
    private var byRequest: [Identifier128: Identifier128] = [:]
    private var inFlight: [Identifier128: Identifier128] = [:]
    private var countByApp: [AppID: Int] = [:]
    /// Payload bytes of contents that are on disk or on their way there.
    package private(set) var contentBytes = 0
    /// By the minute in which it is due.
    private var due: [Int64: [(task: Identifier128, step: Step)]] = [:]
    /// The first minute that may be in `due`.
    private var nextMinute = Int64.max
    /// How long a request id is remembered at least.
    private let requestWindow: Duration

    package init(requestWindow: Duration) { self.requestWindow = requestWindow }

    package var count: Int { tasks.count }
    /// What one takes of memory, about.
    package static var bytesPerTask: Int { 512 }

    /// Tasks of the app that are remembered, and those on their way.
    package func count(of app: AppID) -> Int { countByApp[app] ?? 0 }

    package subscript(task: Identifier128) -> ListTask? { tasks[task] }

    package func find(request: Identifier128) -> Finding {
        if let task = byRequest[request].flatMap({ tasks[$0] }) { return .known(task) }
        return inFlight[request].map { .inFlight(content: $0) } ?? .unknown
    }

    /// No task has the request id.
    package func isNew(request: Identifier128) -> Bool {
        if case .unknown = find(request: request) { true } else { false }
    }

    /// Its record is on its way to the disk.
    package mutating func begin(_ task: ListTask) {
        inFlight[task.request] = task.content
        count(task)
    }

    /// The disk refused it.
    package mutating func abandon(_ task: ListTask) {
        inFlight[task.request] = nil
        contentBytes -= Int(task.payloadBytes)
        uncount(task.app)
    }

    /// It is on disk, or was found there.
    package mutating func add(_ task: ListTask) {
        if inFlight.removeValue(forKey: task.request) == nil { count(task) }
        tasks[task.taskID.value] = task
        byRequest[task.request] = task.taskID.value
        schedule(task, .content, at: task.contentOverAt)
        schedule(task, .task, at: forgetAt(task))
    }

    private mutating func count(_ task: ListTask) {
        countByApp[task.app, default: 0] += 1
        contentBytes += Int(task.payloadBytes)
    }

    private func forgetAt(_ task: ListTask) -> Instant { max(task.contentOverAt, task.createdAt + requestWindow) }

    private mutating func schedule(_ task: ListTask, _ step: Step, at time: Instant) {
        // Rounded up: nothing ends early.
        let minute = time.milliseconds / 60_000 + 1
        due[minute, default: []].append((task.taskID.value, step))
        nextMinute = min(nextMinute, minute)
    }

    private mutating func uncount(_ app: AppID) {
        let left = (countByApp[app] ?? 0) - 1
        countByApp[app] = left > 0 ? left : nil
    }

    /// Nothing ends before this.
    package var nextEnd: Instant {
        nextMinute == .max ? .distantFuture : Instant(milliseconds: nextMinute * 60_000)
    }

    /// What has ended by `now`, in order of time; a task that is forgotten is no more in here.
    package mutating func takeEnded(now: Instant) -> [End] {
        guard now >= nextEnd else { return [] }
        var ended: [End] = []
        let minutes = due.keys.filter { Instant(milliseconds: $0 * 60_000) <= now }.sorted()
        for minute in minutes {
            for (id, step) in due.removeValue(forKey: minute) ?? [] {
                guard let task = tasks[id] else { continue }
                switch step {
                case .content:
                    contentBytes -= Int(task.payloadBytes)
                    ended.append(.content(task))
                case .task:
                    tasks[id] = nil
                    if byRequest[task.request] == id { byRequest[task.request] = nil }
                    uncount(task.app)
                    ended.append(.task(task))
                }
            }
        }
        nextMinute = due.keys.min() ?? .max
        return ended
    }
}
