package import FerryCore

/// `GET /v1/{appId}/devices/{cid}/timeline`.
package struct TimelineQuery: Hashable, Sendable {
    package enum Target: Hashable, Sendable {
        case message(MessageID)
        /// Of a `TaskID`, whose other parts only say when it was made.
        case task(Identifier128)
    }

    package let cid: CID
    /// nil asks for all that is known of the device.
    package let target: Target?
    /// Events in the answer, the newest: 1...`maximumLimit`.
    package let limit: Int

    package static let maximumLimit = 5_000
    package static let defaultLimit = 500

    package init(cid: CID, target: Target?, limit: Int) {
        self.cid = cid
        self.target = target
        self.limit = limit
    }

    /// Parameters that are not known are not looked at; one that stands twice is refused.
    static func read(cid text: String, query: String) -> Result<TimelineQuery, APIError> {
        guard let cid = CID(hex: text) else { return .failure(.targetInvalid(text)) }
        var values: [String: String] = [:]
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard ["msgid", "taskid", "limit"].contains(name) else { continue }
            guard values[name] == nil else { return .failure(.duplicate(name)) }
            values[name] = parts.count > 1 ? String(parts[1]) : ""
        }
        if values["msgid"] != nil, values["taskid"] != nil {
            return .failure(.badParameter("msgid and taskid are given: ask for one of them"))
        }
        var target: Target?
        if let text = values["msgid"] {
            guard let id = Identifier128(hex: text) else {
                return .failure(.invalid("msgid", "\(Excerpt.quoted(text)) is not 32 hex digits"))
            }
            target = .message(MessageID(id))
        }
        if let text = values["taskid"] {
            // Such as RASS_1130_ and 32 hex digits.
            let parts = text.split(separator: "_", omittingEmptySubsequences: false)
            guard parts.count == 3, parts[0].hasPrefix("RAS"), let id = Identifier128(hex: String(parts[2])) else {
                return .failure(.invalid("taskid", "\(Excerpt.quoted(text)) is not a task's id as a push answers it"))
            }
            target = .task(id)
        }
        var limit = defaultLimit
        if let text = values["limit"] {
            guard let number = Int(text), (1...maximumLimit).contains(number) else {
                return .failure(.invalid("limit", "\(Excerpt.quoted(text)) is not a whole number, 1…\(maximumLimit)"))
            }
            limit = number
        }
        return .success(TimelineQuery(cid: cid, target: target, limit: limit))
    }
}
