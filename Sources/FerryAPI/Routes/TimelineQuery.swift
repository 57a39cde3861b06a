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
    /// Events in the answer, the newest: 1...`maximumLimit`; 0 for `isPresentOnly`.
    package let limit: Int

    package static let maximumLimit = 5_000
    package static let defaultLimit = 500

    package init(cid: CID, target: Target?, limit: Int) {
        self.cid = cid
        self.target = target
        self.limit = limit
    }

    /// Nothing of the log, only the device as it is now.
    package var isPresentOnly: Bool { limit == 0 }

    static func present(cid text: String) -> Result<TimelineQuery, APIError> {
        guard let cid = CID(hex: text) else { return .failure(.targetInvalid(text)) }
        return .success(TimelineQuery(cid: cid, target: nil, limit: 0))
    }

    static func read(cid text: String, query: String) -> Result<TimelineQuery, APIError> {
        do throws(APIError) {
            guard let cid = CID(hex: text) else { throw .targetInvalid(text) }
            let fields = try QueryFields(query, names: ["msgid", "taskid", "limit"])
            var target: Target?
            switch (fields["msgid"], fields["taskid"]) {
            case (_?, _?): throw .badParameter("msgid and taskid are given: ask for one of them")
            case (let id?, nil): target = try message(id)
            case (nil, let id?): target = try task(id)
            case (nil, nil): break
            }
            return .success(TimelineQuery(cid: cid, target: target, limit: try limit(fields)))
        } catch {
            return .failure(error)
        }
    }

    /// Of one message, named by its own id or its task's; the device is named in the query.
    static func read(message id: String, query: String) -> Result<TimelineQuery, APIError> {
        do throws(APIError) {
            let fields = try QueryFields(query, names: ["cid", "limit"])
            guard let text = fields["cid"], !text.isEmpty else { throw .empty("cid") }
            guard let cid = CID(hex: text) else { throw .targetInvalid(text) }
            let target = id.hasPrefix("RAS") ? try task(id) : try message(id)
            return .success(TimelineQuery(cid: cid, target: target, limit: try limit(fields)))
        } catch {
            return .failure(error)
        }
    }

    private static func message(_ text: String) throws(APIError) -> Target {
        guard let id = Identifier128(hex: text) else {
            throw .invalid("msgid", "\(Excerpt.quoted(text)) is not 32 hex digits")
        }
        return .message(MessageID(id))
    }

    /// Such as RASS_1130_ and 32 hex digits.
    private static func task(_ text: String) throws(APIError) -> Target {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].hasPrefix("RAS"), let id = Identifier128(hex: String(parts[2])) else {
            throw .invalid("taskid", "\(Excerpt.quoted(text)) is not a task's id as a push answers it")
        }
        return .task(id)
    }

    private static func limit(_ fields: QueryFields) throws(APIError) -> Int {
        guard let text = fields["limit"] else { return defaultLimit }
        guard let number = Int(text), (1...maximumLimit).contains(number) else {
            throw .invalid("limit", "\(Excerpt.quoted(text)) is not a whole number, 1…\(maximumLimit)")
        }
        return number
    }
}
