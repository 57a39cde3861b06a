package import FerryCore

/// What a backend wants to know of one of its apps.
package enum ReportQuestion: Hashable, Sendable {
    case tasks([Identifier128])
    /// Tasks with this `group_name` that were accepted in these days; nil is open.
    case group(String, from: CalendarDay?, through: CalendarDay?)
    case day(CalendarDay)
}

/// What one shard, or several together, say to it.
package struct ReportPart: Hashable, Sendable {
    /// Of a group the sum is under one name that the question has.
    package var tasks: [Identifier128: ReportCounters] = [:]
    package var group: ReportCounters?
    package var day: DayCounters?
    /// How many devices there were on the last day, up to the one that is asked for, of which that is known.
    package var devices: DeviceCount?

    package struct DeviceCount: Hashable, Sendable {
        package var day: CalendarDay
        package var count: Int64

        package init(day: CalendarDay, count: Int64) {
            self.day = day
            self.count = count
        }
    }

    package init() {}

    package static func += (left: inout Self, right: Self) {
        for (task, counters) in right.tasks { left.tasks[task, default: ReportCounters()] += counters }
        if let group = right.group { left.group = left.group.sum(with: group) { $0 += $1 } }
        if let day = right.day { left.day = left.day.sum(with: day) { $0 += $1 } }
        if let count = right.devices {
            left.devices = left.devices.sum(with: count) { left, right in
                if right.day > left.day || (right.day == left.day && right.count > left.count) { left = right }
            }
        }
    }
}

extension Optional {
    fileprivate func sum(with other: Wrapped, _ add: (inout Wrapped, Wrapped) -> Void) -> Wrapped {
        guard var sum = self else { return other }
        add(&sum, other)
        return sum
    }
}

extension ReportBook {
    package func answer(_ question: ReportQuestion, of app: AppID) -> ReportPart {
        var part = ReportPart()
        switch question {
        case .tasks(let names):
            for name in names {
                // Another app's task is answered like one that does not exist.
                if let task = tasks[name], task.app == app { part.tasks[name] = task.sum }
            }
        case .group(let group, let from, let through):
            for task in tasks.values where task.app == app && task.terms.group == group {
                let day = CalendarDay(of: task.terms.acceptedAt, offset)
                guard from.map({ $0 <= day }) ?? true, through.map({ day <= $0 }) ?? true else { continue }
                part.group = part.group ?? ReportCounters()
                part.group? += task.sum
            }
        case .day(let asked):
            part.day = counted(asked, app)
            part.devices = devices(asked, app)
        }
        return part
    }

    private func counted(_ asked: CalendarDay, _ app: AppID) -> DayCounters? {
        if asked == day, let entry = today.first(where: { $0.app == app }) { return entry.day.sum }
        return past[app]?[asked]?.sum
    }

    private func devices(_ asked: CalendarDay, _ app: AppID) -> ReportPart.DeviceCount? {
        if asked >= day, let now = today.first(where: { $0.app == app })?.day.sum, now.accumulated > 0 {
            return ReportPart.DeviceCount(day: day, count: now.accumulated)
        }
        return (past[app] ?? [:]).filter { $0.key <= asked && $0.value.sum.accumulated > 0 }
            .max { $0.key < $1.key }
            .map { ReportPart.DeviceCount(day: $0.key, count: $0.value.sum.accumulated) }
    }
}
