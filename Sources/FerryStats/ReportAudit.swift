package import FerryCore

/// What the end of the last life left between records and their counts, found at a start from what the disk has: the rows on
/// one side, kept messages on the other. Over all shards, since their number may be another than it was.
package struct ReportAudit: Sendable {
    /// Of one task: how many messages more are kept than the rows tell, or fewer.
    package struct TaskCorrection: Sendable {
        package let app: AppID
        package let terms: TaskTerms
        package var missing: Int64
        /// What the rows tell.
        package var told = ReportCounters()
    }

    /// The same of one app.
    package struct AppCorrection: Sendable {
        package var missing: Int64 = 0
        package var told = ReportCounters()
    }

    private var apps: [AppID: AppCorrection] = [:]
    private var tasks: [Identifier128: TaskCorrection] = [:]
    /// Messages of tasks with stored content.
    private var references: [Identifier128: Int64] = [:]

    package init() {}

    package mutating func take(_ row: ReportRow) {
        guard let value = row.value else { return }
        switch ReportKey(row.key) {
        case .task(let app, let name):
            guard let (terms, counters) = ReportValue.task(value, name) else { return }
            change(app, terms, -counters.kept)
            tasks[terms.task.value]?.told += counters
        case .day(let app, _):
            guard let day = ReportValue.day(value) else { return }
            apps[app, default: AppCorrection()].missing -= day.messages.kept
            apps[app]?.told += day.messages
        case nil: return
        }
    }

    /// So many messages of the app are kept for devices one by one.
    package mutating func keep(_ app: AppID, _ count: Int) {
        apps[app, default: AppCorrection()].missing += Int64(count)
    }

    /// One of these messages, by its task.
    package mutating func keep(_ task: Identifier128) { references[task, default: 0] += 1 }

    /// A push to all has no end yet at so many devices.
    package mutating func keep(_ app: AppID, _ terms: TaskTerms, _ count: Int) {
        keep(app, count)
        change(app, terms, Int64(count))
    }

    private mutating func change(_ app: AppID, _ terms: TaskTerms, _ count: Int64) {
        tasks[terms.task.value, default: TaskCorrection(app: app, terms: terms, missing: 0)].missing += count
    }

    /// What the shard that owns the apps is to set right.
    package func corrections(where isOwner: (AppID) -> Bool) -> ReportCorrections {
        var found: [TaskCorrection] = []
        for var task in tasks.values where isOwner(task.app) {
            task.missing += references[task.terms.task.value] ?? 0
            if task.missing != 0 { found.append(task) }
        }
        return ReportCorrections(apps: apps.filter { $0.value.missing != 0 && isOwner($0.key) }, tasks: found)
    }
}

package struct ReportCorrections: Sendable {
    package var apps: [AppID: ReportAudit.AppCorrection] = [:]
    package var tasks: [ReportAudit.TaskCorrection] = []

    package init() {}

    init(apps: [AppID: ReportAudit.AppCorrection], tasks: [ReportAudit.TaskCorrection]) {
        self.apps = apps
        self.tasks = tasks
    }
}
