internal import FerryAudience
internal import FerryCore

/// What a route's path says, checked; and what the body must add.
enum UserReading {
    case ready(UserCall)
    case body((FieldReader) throws(APIError) -> UserCall)

    init(_ route: UserRoute, _ limits: APILimits) throws(APIError) {
        switch route {
        case .bindAliases:
            self = .body { fields throws(APIError) in .bindAliases(try Self.bindings(fields)) }
        case .unbindAliases:
            self = .body { fields throws(APIError) in .unbindAliases(try Self.bindings(fields)) }
        case .aliasOfDevice(let cid): self = .ready(.aliasOfDevice(try Self.device(cid)))
        case .devicesOfAlias(let alias): self = .ready(.devicesOfAlias(try Self.alias(alias, "alias")))
        case .dropAlias(let alias): self = .ready(.dropAlias(try Self.alias(alias, "alias")))
        case .setTags(let text):
            let cid = try Self.device(text)
            self = .body { fields throws(APIError) in .setTags(cid, try Self.tags(fields, limits.users)) }
        case .tags(let cid): self = .ready(.tags(try Self.device(cid)))
        case .tagDevices(let tag): self = try .tagging(tag, isSet: true, limits.users)
        case .untagDevices(let tag): self = try .tagging(tag, isSet: false, limits.users)
        case .block(let cids):
            self = .ready(.block(try Self.devices(cids, limit: UserLimits.devicesPerChange), isBlocked: true))
        case .unblock(let cids):
            self = .ready(.block(try Self.devices(cids, limit: UserLimits.devicesPerChange), isBlocked: false))
        case .deviceStatus(let cids):
            self = .ready(.deviceStatus(try Self.devices(cids, limit: UserLimits.statusesPerCall)))
        case .detail(let cids): self = .ready(try Self.detail(cids))
        case .badge(let text):
            let cids = try Self.devices(text, limit: UserLimits.devicesPerChange)
            self = .body { fields throws(APIError) in .badge(cids, try Self.badge(fields)) }
        case .count:
            self = .body { fields throws(APIError) in .count(try AudienceExpression(fields, "tag", limits.users)) }
        case .setProfile(let text):
            let cid = try Self.device(text)
            self = .body { fields throws(APIError) in .setProfile(cid, try ProfileChange(fields)) }
        case .erase(let cid): self = .ready(.erase(try Self.device(cid)))
        case .pushAlias:
            self = .body { fields throws(APIError) in .pushAliases(try AliasPushes(single: fields, limits)) }
        case .pushAliasBatch:
            self = .body { fields throws(APIError) in .pushAliases(try AliasPushes(batch: fields, limits)) }
        }
    }

    private static func tagging(_ tag: String, isSet: Bool, _ limits: UserLimits) throws(APIError) -> UserReading {
        let tag = try checked(tag: tag, "custom_tag", limits)
        return .body { fields throws(APIError) in
            .tagDevices(tag, try devices(fields, "cid", limit: UserLimits.entriesPerCall), isSet: isSet)
        }
    }

    // MARK: - Devices

    static func device(_ text: String) throws(APIError) -> CID {
        guard !text.isEmpty else { throw .empty("cid") }
        guard let cid = CID(hex: text) else { throw .targetInvalid(text) }
        return cid
    }

    /// Of a path; each once.
    private static func devices(_ list: String, limit: Int) throws(APIError) -> [CID] {
        var texts: [String] = []
        for text in list.split(separator: ",", maxSplits: limit, omittingEmptySubsequences: false) {
            texts.append(String(text))
        }
        return try devices(texts, "cid", limit: limit)
    }

    private static func devices(_ fields: FieldReader, _ name: StaticString, limit: Int) throws(APIError) -> [CID] {
        guard let texts = try fields.strings(name) else { throw .null(fields.path(name)) }
        return try devices(texts, fields.path(name), limit: limit)
    }

    private static func devices(_ texts: [String], _ name: String, limit: Int) throws(APIError) -> [CID] {
        guard !texts.isEmpty else { throw .empty(name) }
        guard texts.count <= limit else { throw .overLimit(name, "at most \(limit) in one call") }
        var devices: [CID] = []
        var seen: Set<CID> = []
        for text in texts {
            let cid = try device(text)
            if seen.insert(cid).inserted { devices.append(cid) }
        }
        return devices
    }

    private static func detail(_ list: String) throws(APIError) -> UserCall {
        var found: [CID] = []
        var invalid: [String] = []
        var known: Set<CID> = []
        var seen: Set<String> = []
        let texts = list.split(
            separator: ",", maxSplits: APILimits.cidsPerCall, omittingEmptySubsequences: false)
        guard texts.count <= APILimits.cidsPerCall else {
            throw .overLimit("cid", "at most \(APILimits.cidsPerCall) in one call")
        }
        for part in texts {
            let text = String(part)
            guard !text.isEmpty else { throw .empty("cid") }
            if let cid = CID(hex: text) {
                if known.insert(cid).inserted { found.append(cid) }
            } else if seen.insert(text).inserted {
                invalid.append(text)
            }
        }
        return .detail(found, invalid: invalid)
    }

    // MARK: - Aliases

    /// Letters of the Latin alphabet, digits, `_`, and Chinese characters; fewer than 40.
    static func alias(_ text: String, _ name: String) throws(APIError) -> String {
        guard !text.isEmpty else { throw .empty(name) }
        // Bytes first, so that a long one is not counted through.
        guard text.utf8.count < 4 * UserLimits.aliasCharacters, text.unicodeScalars.count < UserLimits.aliasCharacters
        else {
            throw .overLimit(
                name, "\(Excerpt.quoted(text)) must have fewer than \(UserLimits.aliasCharacters) characters")
        }
        guard text.unicodeScalars.allSatisfy(isAllowed) else {
            throw .invalid(name, "\(Excerpt.quoted(text)) may hold letters, digits, _ and Chinese characters")
        }
        return text
    }

    private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x30...0x39, 0x41...0x5a, 0x5f, 0x61...0x7a: true
        // Unified ideographs. Those that only stand for compatibility would make two spellings of one name.
        case 0x3400...0x4dbf, 0x4e00...0x9fff, 0x2_0000...0x2_f7ff: true
        case 0x3_0000...0x3_23af, 0x3007: true
        default: false
        }
    }

    private static func bindings(_ fields: FieldReader) throws(APIError) -> [AliasDirectory.Binding] {
        guard let list = try fields.value("data_list") else { throw .null("data_list") }
        guard let elements = list.elements else { throw .type("data_list", mustBe: "an array of objects") }
        var bindings: [AliasDirectory.Binding] = []
        for element in elements {
            guard bindings.count < UserLimits.entriesPerCall else {
                throw .overLimit("data_list", "at most \(UserLimits.entriesPerCall) in one call")
            }
            do throws(APIError) {
                guard element.kind == .object else { throw .type("data_list", mustBe: "an array of objects") }
                let entry = FieldReader(element)
                guard let cid = try entry.string("cid") else { throw .null("cid") }
                guard let alias = try entry.string("alias") else { throw .null("alias") }
                bindings.append(
                    AliasDirectory.Binding(cid: try device(cid), alias: try Self.alias(alias, "alias")))
            } catch {
                throw error.inEntry("data_list[\(bindings.count)]")
            }
        }
        guard !bindings.isEmpty else { throw .empty("data_list") }
        return bindings
    }

    // MARK: - Tags and badges

    /// Not empty, no white space, no control characters.
    static func checked(tag: String, _ name: String, _ limits: UserLimits) throws(APIError) -> String {
        guard !tag.isEmpty else { throw .empty(name) }
        guard tag.utf8.count <= 4 * limits.tagCharacters, tag.unicodeScalars.count <= limits.tagCharacters else {
            throw .overLimit(name, "\(Excerpt.quoted(tag)) must have at most \(limits.tagCharacters) characters")
        }
        guard tag.unicodeScalars.allSatisfy({ !$0.properties.isWhitespace && $0.value >= 0x20 && $0.value != 0x7f })
        else { throw .invalid(name, "\(Excerpt.quoted(tag)) must not hold spaces or control characters") }
        return tag
    }

    private static func tags(_ fields: FieldReader, _ limits: UserLimits) throws(APIError) -> [String] {
        guard let texts = try fields.strings("custom_tag") else { throw .null("custom_tag") }
        var tags: [String] = []
        var seen: Set<String> = []
        for (place, text) in texts.enumerated() {
            let tag = try checked(tag: text, "custom_tag[\(place)]", limits)
            if seen.insert(tag).inserted { tags.append(tag) }
        }
        try check(tags, limits)
        return tags
    }

    /// As many as one device may have.
    static func check(_ tags: [String], _ limits: UserLimits) throws(APIError) {
        guard tags.count <= limits.tags else {
            throw .overLimit("custom_tag", "\(tags.count) tags, at most \(limits.tags)")
        }
        let characters = tags.reduce(0) { $0 + $1.unicodeScalars.count }
        guard characters <= limits.tagsCharacters else {
            throw .overLimit("custom_tag", "\(characters) characters together, at most \(limits.tagsCharacters)")
        }
    }

    private static func badge(_ fields: FieldReader) throws(APIError) -> BadgeChange {
        guard let value = try fields.value("badge") else { throw .null("badge") }
        guard let text = value.string ?? value.int64.map({ String($0) }) else {
            throw .type("badge", mustBe: "a string such as \"+1\", \"-1\" or \"5\"")
        }
        guard let change = BadgeChange(text) else {
            throw .invalid("badge", "\(Excerpt.quoted(text)), must be +N, -N or N")
        }
        return change
    }
}

extension UserLimits {
    /// Whether a device may have all these tags.
    package func allows(_ tags: [String]) -> Bool { (try? UserReading.check(tags, self)) != nil }
}

extension ProfileChange {
    init(_ fields: FieldReader) throws(APIError) {
        self.init()
        if let text = try fields.string("phone_type") {
            guard text.isEmpty || PhoneType(name: text) != nil else {
                throw .invalid("phone_type", "\(Excerpt.quoted(text)), must be android, ios or empty")
            }
            phoneType = .some(PhoneType(name: text))
        }
        region = try Self.text(fields, "region")
        model = try Self.text(fields, "phone_model")
        notifications = try fields.truth("notifications")
        guard self != ProfileChange() else {
            throw .badParameter("phone_type, region, phone_model and notifications cannot be null at sametime")
        }
    }

    private static func text(_ fields: FieldReader, _ name: StaticString) throws(APIError) -> String? {
        guard let text = try fields.string(name) else { return nil }
        guard text.utf8.count <= UserLimits.textBytes else {
            throw .overLimit(fields.path(name), "\(text.utf8.count) bytes, at most \(UserLimits.textBytes)")
        }
        return text
    }
}

extension AliasPushes {
    private static let nobody = CID(Identifier128(high: 0, low: 0))

    init(single fields: FieldReader, _ limits: APILimits) throws(APIError) {
        pushes = [try Self.push(fields, limits)]
        isAsync = false
        isBatch = false
    }

    init(batch fields: FieldReader, _ limits: APILimits) throws(APIError) {
        isAsync = try fields.truth("is_async") ?? false
        isBatch = true
        guard let list = try fields.value("msg_list") else { throw .null("msg_list") }
        guard let elements = list.elements else { throw .type("msg_list", mustBe: "an array of objects") }
        var pushes: [Push] = []
        for element in elements {
            guard pushes.count < APILimits.pushesPerCall else {
                throw .overLimit("msg_list", "at most \(APILimits.pushesPerCall) in one call")
            }
            do throws(APIError) {
                guard element.kind == .object else { throw .type("msg_list", mustBe: "an array of objects") }
                pushes.append(try Self.push(FieldReader(element), limits))
            } catch {
                throw error.inEntry("msg_list[\(pushes.count)]")
            }
        }
        guard !pushes.isEmpty else { throw .empty("msg_list") }
        self.pushes = pushes
    }

    private static func push(_ fields: FieldReader, _ limits: APILimits) throws(APIError) -> Push {
        let name = "audience.alias"
        guard let audience = try fields.object("audience", at: "audience") else { throw .null("audience") }
        let hasCID = try audience.value("cid") != nil
        guard let aliases = try audience.strings("alias") else {
            guard !hasCID else { throw .invalid("audience.cid", "this call takes audience.alias") }
            throw .null(name)
        }
        guard !hasCID else { throw .badParameter("choose one of audience.cid and audience.alias") }
        guard let first = aliases.first else { throw .empty(name) }
        guard aliases.count == 1 else { throw .overLimit(name, "this call takes exactly 1") }
        let alias = try UserReading.alias(first, name)
        return Push(alias: alias, push: try SinglePush(fields, limits: limits, target: nobody))
    }
}

extension APIError {
    /// The same refusal, with the place in a list that it is about.
    package func inEntry(_ place: String) -> APIError {
        var error = APIError(
            code: code, message: "\(message) (in \(place))", retryAfterSeconds: retryAfterSeconds, allow: allow)
        error.ownStatus = ownStatus
        return error
    }
}
