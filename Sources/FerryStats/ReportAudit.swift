package import FerryCore

/// What the end of the last life left between records and their counts, found at a start from what the disk has: the rows on
/// one side, kept messages on the other. Over all shards, since their number may be another than it was.
package struct ReportAudit: Sendable {
    /// Of one task: what is to be added to its counters.
    package struct TaskCorrection: Sendable {
        package let app: AppID
        package let terms: TaskTerms
        package let counters: ReportCounters
    }

    /// What is found of one task.
    private struct FoundTask {
        let app: AppID
        let terms: TaskTerms
        /// How many messages more are kept than the rows tell, or fewer.
        var missing: Int64 = 0
        /// What the rows tell.
        var told = ReportCounters()
        /// What has ended those that no row tells of.
        var ending = EndReason.ttlRanOut
        /// A push to all whose places are there.
        var isPlaced = false
    }

    /// The same of one app.
    private struct FoundApp {
        var missing: Int64 = 0
        var told = ReportCounters()
    }

    private var apps: [AppID: FoundApp] = [:]
    private var tasks: [Identifier128: FoundTask] = [:]
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
            apps[app, default: FoundApp()].missing -= day.messages.kept
            apps[app]?.told += day.messages
        case nil: return
        }
    }

    /// So many messages of the app are kept for devices one by one.
    package mutating func keep(_ app: AppID, _ count: Int) {
        apps[app, default: FoundApp()].missing += Int64(count)
    }

    /// One of these messages, by its task.
    package mutating func keep(_ task: Identifier128) { references[task, default: 0] += 1 }

    /// A push to all has no end yet at so many devices. Where it has one that no row tells of, it is `ending`.
    package mutating func keep(_ app: AppID, _ terms: TaskTerms, _ count: Int, ending: EndReason = .ttlRanOut) {
        keep(app, count)
        change(app, terms, Int64(count))
        tasks[terms.task.value]?.ending = ending
        tasks[terms.task.value]?.isPlaced = true
    }

    private mutating func change(_ app: AppID, _ terms: TaskTerms, _ count: Int64) {
        tasks[terms.task.value, default: FoundTask(app: app, terms: terms)].missing += count
    }

    /// What the shard that owns the apps is to set right.
    package func corrections(where isOwner: (AppID) -> Bool) -> ReportCorrections {
        var corrections = ReportCorrections()
        for (name, found) in tasks where isOwner(found.app) {
            var task = found
            task.missing += references[name] ?? 0
            guard task.missing != 0 else { continue }
            let counters = ReportCounters(missing: task.missing, told: task.told, ending: task.ending)
            corrections.tasks.append(TaskCorrection(app: task.app, terms: task.terms, counters: counters))
            // Whatever a task with stored content lacks, its app has: of those with too many messages at once no ends are told.
            if task.isPlaced { corrections.apps[task.app, default: ReportCounters()] += counters }
        }
        for (app, found) in apps where isOwner(app) {
            var counters = corrections.apps[app] ?? ReportCounters()
            let rest = found.missing - counters.kept
            guard rest != 0 else { continue }
            var told = found.told
            told += counters
            counters += ReportCounters(missing: rest, told: told, ending: .ttlRanOut)
            corrections.apps[app] = counters
        }
        return corrections
    }
}

/// What is to be added to what the rows tell.
package struct ReportCorrections: Sendable {
    package var apps: [AppID: ReportCounters] = [:]
    package var tasks: [ReportAudit.TaskCorrection] = []

    package init() {}
}

extension ReportCounters {
    /// What sets right that `missing` messages more are kept than the rows tell, or fewer.
    ///
    /// Fewer have ended without a row: a push to all, by its time or by its sender. More have ended in the last life in a way
    /// that is in no record, and are there again: at a push to all, where a device came that did not take it. An older version
    /// may have counted other ends whose record did not get to the disk. The rest is new: one took it that did not count.
    fileprivate init(missing: Int64, told: ReportCounters, ending: EndReason) {
        self.init()
        if missing < 0 { end(ending, -missing) }
        var rest = max(0, missing)
        for reason in [.kindNotTaken, .liveSessionEnded, .noLiveSession] + EndReason.allCases {
            // Of the shard that sets it right it may be below zero: it is right in the sum.
            let undone = min(rest, max(0, told.ended(reason) + ended(reason)))
            if undone > 0 { end(reason, -undone) }
            rest -= undone
        }
        accepted += rest
    }
}
