package import FerryCore

/// What one shard has counted for reports: its part of each task that has many targets, and of each app's days. Rows carry it
/// across restarts; they are absolute, so that writing one twice changes nothing, and go to the disk with the records that they
/// count.
///
/// It does not: read clocks, know devices, write to disks. Numbers of apps are those of the shard.
package struct ReportBook: Sendable {
    struct CountedTask: Sendable {
        let app: AppID
        let terms: TaskTerms
        var own = ReportCounters()
        /// Rows that a shard wrote whose partitions are this one's now.
        var others: [(writer: Int, counters: ReportCounters)] = []
        /// Kept here and accepted by other shards, or the other way, after a change of their count; found anew at each start, and
        /// nothing over all shards.
        var moved: Int64 = 0
        var isChanged = false

        var sum: ReportCounters { others.reduce(into: own) { $0 += $1.counters } }
    }

    struct Day: Sendable {
        var own = DayCounters()
        var others: [(writer: Int, counters: DayCounters)] = []

        var sum: DayCounters { others.reduce(into: own) { $0 += $1.counters } }
    }

    /// An app's present day.
    struct Today: Sendable {
        let app: AppID
        var day = Day()
        /// As of a task.
        var moved: Int64 = 0
        var isChanged = false
    }

    let shard: Int
    package let offset: UTCOffset
    private let retention: Int
    private let taskLimit: Int
    /// By the app's number.
    private(set) var today: [Today] = []
    /// Of past days.
    var past: [AppID: [CalendarDay: Day]] = [:]
    var tasks: [Identifier128: CountedTask] = [:]
    /// Tasks in the order of their acceptance, some of them gone.
    private var order: [Identifier128] = []
    private var changedTasks: [Identifier128] = []
    private var changedDays: [Int] = []
    /// Rows that are to go.
    private var gone: [ReportRow] = []
    package private(set) var day: CalendarDay
    private var dayEnds: Instant
    /// Since when something is counted that no row tells of.
    private var changedAt: Instant?

    /// - Parameters:
    ///   - retention: days for which tasks and days are kept.
    ///   - taskLimit: tasks that are kept; of more the oldest that have ended go.
    package init(shard: Int, offset: UTCOffset, now: Instant, retention: Int, taskLimit: Int) {
        self.shard = shard
        self.offset = offset
        self.retention = max(1, retention)
        self.taskLimit = max(1, taskLimit)
        day = CalendarDay(of: now, offset)
        dayEnds = day.advanced(by: 1).start(offset)
    }

    /// Tasks and days, for an estimate of memory.
    package var count: Int { tasks.count + past.values.reduce(today.count) { $0 + $1.count } }

    // MARK: - Counting

    /// Apps that were begun: their numbers are below.
    package var appCount: Int { today.count }

    /// Makes room for the app with the next number. To be done before anything of it is counted, and after its rows were found.
    package mutating func begin(_ app: AppID) {
        today.append(Today(app: app, day: past[app]?.removeValue(forKey: day) ?? Day()))
    }

    package mutating func accept(_ number: Int, count: Int64 = 1) {
        today[number].day.own.messages.accepted += count
        change(number)
    }

    package mutating func end(_ number: Int, _ reason: EndReason, count: Int64 = 1) {
        today[number].day.own.messages.end(reason, count)
        change(number)
    }

    package mutating func stubRequested(_ number: Int) {
        today[number].day.own.messages.stubsRequested += 1
        change(number)
    }

    package mutating func stubAnswered(_ number: Int, isAccepted: Bool) {
        if isAccepted {
            today[number].day.own.messages.stubsAccepted += 1
        } else {
            today[number].day.own.messages.stubsRefused += 1
        }
        change(number)
    }

    /// A device registered; `total` devices are registered now, over all shards.
    package mutating func register(_ number: Int, total: Int) {
        today[number].day.own.registered += 1
        noteRegistered(number, total: total)
    }

    /// So many devices are registered, over all shards.
    package mutating func noteRegistered(_ number: Int, total: Int) {
        today[number].day.own.accumulated = max(today[number].day.own.accumulated, Int64(total))
        change(number)
    }

    /// A device came whose last coming was at `before`; nil for one that has just registered.
    package mutating func come(_ number: Int, before: Instant?) {
        if let before, before >= day.start(offset) { return }
        today[number].day.own.active += 1
        change(number)
    }

    /// So many devices of the app are online, over all shards.
    package mutating func noteOnline(_ number: Int, _ count: Int) {
        guard Int64(count) > today[number].day.own.peakOnline else { return }
        today[number].day.own.peakOnline = Int64(count)
        change(number)
    }

    /// The task has messages for so many more devices of this shard, perhaps none. What is taken back counts below zero.
    package mutating func accept(_ terms: TaskTerms, _ number: Int, count: Int64) {
        let name = terms.task.value
        if tasks[name] == nil {
            tasks[name] = CountedTask(app: today[number].app, terms: terms)
            order.append(name)
            makeRoom()
        }
        tasks[name]?.own.accepted += count
        change(name)
        accept(number, count: count)
    }

    package mutating func end(_ task: Identifier128, _ number: Int, _ reason: EndReason, count: Int64 = 1) {
        end(number, reason, count: count)
        end(task, reason, count: count)
    }

    /// For the task alone: the day is told of it elsewhere.
    package mutating func end(_ task: Identifier128, _ reason: EndReason, count: Int64 = 1) {
        guard tasks[task] != nil else { return }
        tasks[task]?.own.end(reason, count)
        change(task)
    }

    /// The day's row is to be written again, though nothing is new in it.
    package mutating func touch(_ number: Int) { change(number) }

    private mutating func change(_ number: Int) {
        guard !today[number].isChanged else { return }
        today[number].isChanged = true
        changedDays.append(number)
    }

    private mutating func change(_ task: Identifier128) {
        guard tasks[task]?.isChanged == false else { return }
        tasks[task]?.isChanged = true
        changedTasks.append(task)
    }

    // MARK: - Days

    /// To be called before anything is counted at a later time.
    package mutating func timePassed(_ now: Instant) {
        if now >= dayEnds { beginDay(now) }
        if changedAt == nil, hasChanges { changedAt = now }
    }

    private mutating func beginDay(_ now: Instant) {
        // The rows of the old day are made now, and go with the next batch.
        let rows = takeRows()
        gone += rows
        let next = CalendarDay(of: now, offset)
        for number in today.indices {
            if today[number].day.own != DayCounters() || !today[number].day.others.isEmpty {
                past[today[number].app, default: [:]][day] = today[number].day
            }
            today[number].day = Day()
        }
        day = next
        dayEnds = day.advanced(by: 1).start(offset)
        forgetOld()
    }

    /// What is older than `retention` days goes, with its rows. What was kept on a day that goes is kept on.
    private mutating func forgetOld() {
        let first = day.advanced(by: -retention)
        for (number, entry) in today.enumerated() {
            for (old, counted) in past[entry.app] ?? [:] where old < first {
                past[entry.app]?[old] = nil
                let kept = counted.sum.messages.kept
                if kept != 0 {
                    today[number].day.own.messages.carried += kept
                    change(number)
                }
                dropRows(ReportKey.day(entry.app, old).bytes, [shard] + counted.others.map(\.writer))
            }
        }
        for name in order where tasks[name].map({ CalendarDay(of: $0.terms.acceptedAt, offset) < first }) ?? false {
            forget(name)
        }
        order.removeAll { tasks[$0] == nil }
    }

    /// The oldest that have ended go for the newest; of those that have not, a few are looked at each time.
    private mutating func makeRoom() {
        var looks = 4
        while tasks.count > taskLimit, looks > 0, let name = order.first {
            looks -= 1
            order.removeFirst()
            if let task = tasks[name], task.sum.kept + task.moved != 0 { order.append(name) } else { forget(name) }
        }
    }

    private mutating func forget(_ name: Identifier128) {
        guard let task = tasks.removeValue(forKey: name) else { return }
        changedTasks.removeAll { $0 == name }
        dropRows(ReportKey.task(task.app, name).bytes, [shard] + task.others.map(\.writer))
    }

    private mutating func dropRows(_ key: [UInt8], _ writers: [Int]) {
        gone += writers.map { ReportRow(writer: $0, key: key, value: nil) }
    }

    // MARK: - Rows

    /// Something is counted that no row tells of.
    package var hasChanges: Bool { !changedDays.isEmpty || !changedTasks.isEmpty || !gone.isEmpty }

    /// When rows are to be written even if nothing else is: what they count is then a second old.
    package var rowsDue: Instant { changedAt.map { $0 + .seconds(1) } ?? .distantFuture }

    /// When the next day begins.
    package var nextDay: Instant { dayEnds }

    /// The rows of all that has changed since they were taken last.
    package mutating func takeRows() -> [ReportRow] {
        var rows = gone
        gone = []
        changedAt = nil
        for number in changedDays {
            today[number].isChanged = false
            rows.append(
                ReportRow(
                    writer: shard, key: ReportKey.day(today[number].app, day).bytes,
                    value: ReportValue.write(today[number].day.own)))
        }
        for name in changedTasks {
            tasks[name]?.isChanged = false
            guard let task = tasks[name] else { continue }
            rows.append(
                ReportRow(
                    writer: shard, key: ReportKey.task(task.app, name).bytes,
                    value: ReportValue.write(task.terms, task.own)))
        }
        changedDays.removeAll(keepingCapacity: true)
        changedTasks.removeAll(keepingCapacity: true)
        return rows
    }

    /// The disk refused rows: all that they might have told of is to be written again.
    package mutating func refused(_ rows: [ReportRow]) {
        for row in rows {
            guard row.value != nil else {
                gone.append(row)
                continue
            }
            switch ReportKey(row.key) {
            case .task(_, let name): change(name)
            case .day(let app, let written):
                if written == day, let number = today.firstIndex(where: { $0.app == app }) {
                    change(number)
                } else if let old = past[app]?[written]?.own {
                    gone.append(ReportRow(writer: shard, key: row.key, value: ReportValue.write(old)))
                }
            case nil: break
            }
        }
    }

    // MARK: - At the start

    /// A row that was found. One that cannot be read is left out: no promise depends on it.
    package mutating func restore(_ row: ReportRow) {
        guard let value = row.value else { return }
        switch ReportKey(row.key) {
        case .task(let app, let name):
            guard let (terms, counters) = ReportValue.task(value, name) else { return }
            if tasks[name] == nil {
                tasks[name] = CountedTask(app: app, terms: terms)
                order.append(name)
            }
            if row.writer == shard {
                tasks[name]?.own = counters
            } else {
                tasks[name]?.others.append((row.writer, counters))
            }
        case .day(let app, let old):
            guard let counters = ReportValue.day(value) else { return }
            if row.writer == shard {
                past[app, default: [:]][old, default: Day()].own = counters
            } else {
                past[app, default: [:]][old, default: Day()].others.append((row.writer, counters))
            }
        case nil: return
        }
    }

    /// A task of which no row may have been found: one that an older version took.
    package mutating func restore(_ terms: TaskTerms, of app: AppID) {
        guard tasks[terms.task.value] == nil else { return }
        tasks[terms.task.value] = CountedTask(app: app, terms: terms)
        order.append(terms.task.value)
    }

    /// All rows are there. `kept` are the messages that this shard has for each app, by number, and `waiting` those of
    /// tasks with many devices. `corrections` are of the apps that it owns: where the last life ended between a record and its count, the count is
    /// set right. What is missing then has expired, since every other end is counted in the batch of its record.
    ///
    /// The corrections are of one shard's rows, which go to the disk together: if the power goes before, they are found again.
    package mutating func finishRestoring(
        kept: [Int64], waiting: [Identifier128: Int64], corrections: ReportCorrections
    ) {
        for correction in corrections.tasks {
            restore(correction.terms, of: correction.app)
            tasks[correction.terms.task.value]?.own += correction.counters
            change(correction.terms.task.value)
        }
        order.sort { (tasks[$0]?.terms.acceptedAt ?? .distantPast) < (tasks[$1]?.terms.acceptedAt ?? .distantPast) }
        for name in order {
            guard let task = tasks[name] else { continue }
            tasks[name]?.moved = (waiting[name] ?? 0) - task.sum.kept
        }
        for number in today.indices {
            if let correction = corrections.apps[today[number].app] {
                today[number].day.own.messages += correction
                change(number)
            }
            today[number].moved = (number < kept.count ? kept[number] : 0) - sum(number).kept
        }
    }

    /// Messages of one app that this shard has.
    package func kept(_ number: Int) -> Int64 { sum(number).kept + today[number].moved }

    /// Of all days of one app.
    package func sum(_ number: Int) -> ReportCounters {
        (past[today[number].app] ?? [:]).values.reduce(into: today[number].day.sum.messages) { $0 += $1.sum.messages }
    }
}
