internal import FerryCore

extension ListRoute {
    /// The call whose path ends in these, behind `push`.
    init?(_ family: String, _ name: String) {
        switch (family, name) {
        case ("list", "message"): self = .message
        case ("list", "cid"): self = .cid
        default: return nil
        }
    }

    func read(_ fields: FieldReader, limits: APILimits) throws(APIError) -> ListCall {
        switch self {
        case .message: .message(try ListMessage(fields, limits: limits))
        case .cid: .targets(try ListTargets(fields))
        }
    }
}

extension ListMessage {
    /// Reads the body; the first thing wrong with it is thrown. `audience` is not looked at: senders write there whatever the
    /// call before had.
    init(_ fields: FieldReader, limits: APILimits) throws(APIError) {
        let requestID = try SinglePush.readRequestID(fields)
        let payload = try SinglePush.readPayload(fields, limits: limits)
        let ttl = try SinglePush.readSettings(fields)
        if try fields.object("settings", at: "settings")?.value("schedule_time") != nil {
            throw .invalid("settings.schedule_time", "only a push to all or to a tag can wait")
        }
        let channel = try fields.object("push_channel", at: "push_channel")
        let alert = try APNsAlert.read(channel?.object("ios", at: "push_channel.ios"))
        self.init(requestID: requestID, payload: payload, ttl: ttl, alert: alert)
    }
}

extension ListTargets {
    init(_ fields: FieldReader) throws(APIError) {
        guard let task = try fields.nonEmptyString("taskid") else { throw .empty("taskid") }
        guard let audience = try fields.object("audience", at: "audience") else { throw .null("audience") }
        guard let list = try audience.value("cid") else {
            if try audience.value("alias") != nil {
                throw .invalid("audience.alias", "this call takes audience.cid")
            }
            throw .null("audience.cid")
        }
        guard let elements = list.elements else { throw .type("audience.cid", mustBe: "an array of strings") }
        var cids: [CID] = []
        var seen: Set<CID> = []
        var count = 0
        for element in elements {
            count += 1
            guard count <= APILimits.targetsPerCall else {
                throw .overLimit("audience.cid", "at most \(APILimits.targetsPerCall) in one call")
            }
            guard let found = element.withStringBytes({ Hexadecimal.identifier($0) }) else {
                throw .type("audience.cid", mustBe: "an array of strings")
            }
            guard let found else { throw .targetInvalid(element.string ?? "") }
            if seen.insert(CID(found)).inserted { cids.append(CID(found)) }
        }
        guard !cids.isEmpty else { throw .empty("audience.cid") }
        self.init(task: task, cids: cids, isAsync: try fields.truth("is_async") ?? false)
    }
}

extension APIError {
    /// No task with stored content has this id, or another app's.
    package static func taskUnknown(_ task: String) -> APIError {
        badParameter("taskid is invalid: this app has no task \(Excerpt.quoted(task)) from /push/list/message")
    }

    /// Devices could be added to it until it was as old as its ttl.
    package static func taskOver(_ task: String) -> APIError {
        badParameter("taskid is invalid: the task \(Excerpt.quoted(task)) is older than its ttl")
    }
}
