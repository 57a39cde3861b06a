internal import FerryCore

extension ReportCall {
    /// Tasks in one call.
    private static let tasksPerCall = 200
    /// Feedback ids in one call.
    private static let actionsPerCall = 100

    func read() -> Result<ReportRequest, APIError> {
        do throws(APIError) {
            switch self {
            case .tasks(let ids, let query, let detail):
                let actions = try Self.value("actionIdList", in: query) ?? ""
                return .success(
                    .tasks(try Self.tasks(ids), detail: detail, actions: try Self.actions(actions)))
            case .group(let name, let query):
                return .success(
                    .group(
                        try Self.group(name), from: try Self.day(named: "startDate", in: query),
                        through: try Self.day(named: "endDate", in: query)))
            case .pushDay(let text): return .success(.pushDay(try Self.day(text, "date")))
            case .userDay(let text): return .success(.userDay(try Self.day(text, "date")))
            case .pushCount: return .success(.pushCount)
            case .online: return .success(.online)
            case .path(let cid, let text):
                guard let cid = CID(hex: cid) else { throw .targetInvalid(cid) }
                guard let task = ReportedTask(text) else {
                    throw .invalid("taskid", "\(Excerpt.quoted(text)) is not a task's id as a push answers it")
                }
                return .success(.path(cid, task))
            }
        } catch {
            return .failure(error)
        }
    }

    private static func tasks(_ list: String) throws(APIError) -> [ReportedTask] {
        guard !list.isEmpty else { throw .empty("taskid") }
        let texts = list.split(separator: ",", omittingEmptySubsequences: true)
        guard texts.count <= tasksPerCall else { throw .overLimit("taskid", "at most \(tasksPerCall) in one call") }
        var seen: Set<Identifier128> = []
        return texts.compactMap { ReportedTask(String($0)) }.filter { seen.insert($0.task).inserted }
    }

    private static func actions(_ list: String) throws(APIError) -> [String] {
        let actions = list.split(separator: ",", omittingEmptySubsequences: true)
        guard actions.count <= actionsPerCall else {
            throw .overLimit("actionIdList", "at most \(actionsPerCall) in one call")
        }
        var known: [String] = []
        for action in actions {
            guard action.utf8.count <= 20, action.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw .invalid("actionIdList", "\(Excerpt.quoted(String(action))) is not a number")
            }
            if !known.contains(String(action)) { known.append(String(action)) }
        }
        return known
    }

    private static func group(_ name: String) throws(APIError) -> String {
        let isAllowed = name.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x5f: true
            default: false
            }
        }
        guard !name.isEmpty else { throw .empty("group_name") }
        guard isAllowed, name.utf8.count <= 100 else {
            throw .invalid(
                "group_name", "\(Excerpt.quoted(name)), must be at most 100 digits, letters, hyphens and underscores")
        }
        return name
    }

    private static func day(_ text: String, _ name: String) throws(APIError) -> CalendarDay {
        guard let day = CalendarDay(text) else {
            throw .invalid(name, "\(Excerpt.quoted(text)) is not a day as yyyy-MM-dd")
        }
        return day
    }

    private static func day(named name: String, in query: String) throws(APIError) -> CalendarDay? {
        guard let text = try value(name, in: query) else { return nil }
        return try day(text, name)
    }

    /// A parameter's value, decoded; nil where it is not there or empty. One that stands twice is refused.
    private static func value(_ name: String, in query: String) throws(APIError) -> String? {
        var found: String?
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts[0] == name else { continue }
            guard found == nil else { throw .duplicate(name) }
            do throws(HTTPRefusal) {
                found = try RequestLine.percentDecoded(ArraySlice((parts.count > 1 ? parts[1] : Substring()).utf8))
            } catch {
                throw .invalid(name, "it is not percent-encoded UTF-8")
            }
        }
        return found.flatMap { $0.isEmpty ? nil : $0 }
    }
}
