package import FerryCore

/// Which report a path asks for, as it stands there.
package enum ReportCall: Hashable, Sendable {
    /// Comma-separated.
    case tasks(ids: String, query: String, detail: Bool)
    case group(name: String, query: String)
    case pushDay(String)
    case pushCount
    case userDay(String)
    case online
    /// What happened to one task at one device.
    case path(cid: String, task: String)

    /// Of a path's first `count` segments, the first two of which are the version and the app. All are asked for by GET.
    static func find(_ path: [String], _ count: Int, query: String) -> ReportCall? {
        switch (count, path[2], path[3]) {
        case (4, "report", "online_user"): return .online
        case (5, "report", "push") where path[4] == "count": return .pushCount
        case (6, "report", "push"):
            switch path[4] {
            case "task": return .tasks(ids: path[5], query: query, detail: false)
            case "task_group": return .group(name: path[5], query: query)
            case "date": return .pushDay(path[5])
            default: return nil
            }
        case (7, "report", "push") where path[4] == "task" && path[6] == "detail":
            return .tasks(ids: path[5], query: query, detail: true)
        case (6, "report", "user") where path[4] == "date": return .userDay(path[5])
        case (6, "task", "detail"): return .path(cid: path[4], task: path[5])
        default: return nil
        }
    }
}

/// A report with what it is of, read and checked.
package enum ReportRequest: Hashable, Sendable {
    /// Each once, in the order asked; what is no id of this gateway is left out.
    case tasks([ReportedTask], detail: Bool, actions: [String])
    case group(String, from: CalendarDay?, through: CalendarDay?)
    case pushDay(CalendarDay)
    case pushCount
    case userDay(CalendarDay)
    case online
    case path(CID, ReportedTask)
}

/// A task by its id's text.
package struct ReportedTask: Hashable, Sendable {
    /// As it was asked for.
    package let text: String
    package let task: Identifier128
    package let kind: TaskID.Kind

    /// nil for a text that is no id of this gateway. Such as RASS_1130_ and 32 hex digits.
    package init?(_ text: String) {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.count == 4, parts[0].hasPrefix("RAS"),
            let kind = parts[0].utf8.last.flatMap({ TaskID.Kind(rawValue: $0) }), parts[1].utf8.count == 4,
            let id = Identifier128(hex: String(parts[2]))
        else { return nil }
        self.text = text
        task = id
        self.kind = kind
    }
}
