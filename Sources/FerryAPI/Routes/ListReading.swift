internal import FerryAudience
internal import FerryCore

extension ListRoute {
    /// The call whose path ends in these, behind `push`.
    init?(_ family: String, _ name: String) {
        switch (family, name) {
        case ("list", "message"): self = .message
        case ("list", "cid"): self = .cid
        case ("list", "alias"): self = .alias
        case ("tag", ""): self = .tag
        case ("fast_custom_tag", ""): self = .fastCustomTag
        default: return nil
        }
    }

    func read(_ fields: FieldReader, limits: APILimits) throws(APIError) -> ListCall {
        switch self {
        case .message: .message(try ListMessage(fields, limits: limits))
        case .cid: .targets(try ListTargets(fields))
        case .alias: .targets(try ListTargets(named: fields))
        case .tag, .fastCustomTag:
            .audience(
                try ListMessage(fields, limits: limits, canWait: true),
                try ListAudience(fields, isTag: self == .fastCustomTag, limits: limits))
        }
    }
}

extension ListMessage {
    /// Reads the body; the first thing wrong with it is thrown. `audience` is not looked at: senders write there whatever the
    /// call before had.
    /// `canWait`: it may be for a later time.
    init(_ fields: FieldReader, limits: APILimits, canWait: Bool = false) throws(APIError) {
        let requestID = try SinglePush.readRequestID(fields)
        let options = try MessageOptions(fields, limits: limits)
        guard options.scheduleTime == nil || canWait else {
            throw .invalid("settings.schedule_time", "this call cannot wait")
        }
        self.init(
            requestID: requestID, payload: options.payload, ttl: options.ttl, traits: options.traits,
            alert: options.alert)
        scheduledAt = options.scheduleTime.map { Instant(milliseconds: $0) }
    }
}

extension ListAudience {
    /// `isTag`: one tag, in place of conditions.
    init(_ fields: FieldReader, isTag: Bool, limits: APILimits) throws(APIError) {
        guard let audience = try fields.object("audience", at: "audience") else { throw .null("audience") }
        let speed = try fields.object("settings", at: "settings")?.integer("speed") ?? 0
        guard (0...Self.mostSpeed).contains(speed) else {
            throw .invalid("settings.speed", "\(speed), must be 0 to \(Self.mostSpeed) a second")
        }
        guard isTag else {
            self.init(try AudienceExpression(audience, "tag", limits.users), speed: speed)
            return
        }
        guard let tag = try audience.nonEmptyString("fast_custom_tag") else { throw .empty("audience.fast_custom_tag") }
        self.init(
            AudienceExpression(tag: try UserReading.checked(tag: tag, "audience.fast_custom_tag", limits.users)),
            speed: speed)
    }

    private static let mostSpeed: Int64 = 1_000_000_000
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

extension ListTargets {
    /// Devices by their names.
    init(named fields: FieldReader) throws(APIError) {
        guard let task = try fields.nonEmptyString("taskid") else { throw .empty("taskid") }
        guard let audience = try fields.object("audience", at: "audience") else { throw .null("audience") }
        guard let list = try audience.strings("alias") else {
            if try audience.value("cid") != nil { throw .invalid("audience.cid", "this call takes audience.alias") }
            throw .null("audience.alias")
        }
        guard !list.isEmpty else { throw .empty("audience.alias") }
        guard list.count <= APILimits.targetsPerCall else {
            throw .overLimit("audience.alias", "at most \(APILimits.targetsPerCall) in one call")
        }
        var aliases: [String] = []
        var seen: Set<String> = []
        for text in list where seen.insert(text).inserted {
            aliases.append(try UserReading.alias(text, "audience.alias"))
        }
        let isAsync = try fields.truth("is_async") ?? false
        let needsDetail = try fields.truth("need_alias_detail") ?? false
        self.init(
            task: task, cids: [], isAsync: isAsync, aliases: aliases, needsAliasDetail: needsDetail && !isAsync)
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

    /// Its sender stopped the task: nobody is added to it.
    package static func taskStopped(_ task: String) -> APIError {
        badParameter("taskid is invalid: the task \(Excerpt.quoted(task)) was stopped")
    }
}
