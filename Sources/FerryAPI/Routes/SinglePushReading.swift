internal import FerryCore

extension SinglePush {
    /// Reads the body of a single push; the first thing wrong with it is thrown.
    /// `target` is given where the audience is not a device's name.
    init(_ fields: FieldReader, limits: APILimits, target: CID? = nil) throws(APIError) {
        let requestID = try Self.readRequestID(fields)
        var cid = target
        if cid == nil { cid = try Self.readDevice(fields) }
        guard let cid else { throw .null("audience.cid") }
        let payload = try Self.readPayload(fields, limits: limits)
        let ttl = try Self.readSettings(fields)
        let alert = try Self.readAlert(fields)
        self.init(requestID: requestID, cid: cid, payload: payload, ttl: ttl, alert: alert)
    }

    static func readRequestID(_ fields: FieldReader) throws(APIError) -> String {
        guard let requestID = try fields.nonEmptyString("request_id") else { throw .empty("request_id") }
        return try checkRequestID(requestID)
    }

    static func checkRequestID(_ requestID: String) throws(APIError) -> String {
        // Bytes first, so that a long one is not counted through. Every character has one byte that continues no other.
        guard requestID.utf8.count <= 128, (10...32).contains(requestID.utf8.count { $0 & 0xc0 != 0x80 }) else {
            throw .invalid("request_id", "\(Excerpt.quoted(requestID)), must have 10 to 32 characters")
        }
        return requestID
    }

    static func readAlert(_ fields: FieldReader) throws(APIError) -> APNsAlert? {
        let channel = try fields.object("push_channel", at: "push_channel")
        return try APNsAlert.read(channel?.object("ios", at: "push_channel.ios"))
    }

    private static func readDevice(_ fields: FieldReader) throws(APIError) -> CID {
        guard let audience = try fields.object("audience", at: "audience") else { throw .null("audience") }
        let hasAlias = try audience.value("alias") != nil
        guard let list = try audience.value("cid") else {
            guard !hasAlias else {
                throw .invalid("audience.alias", "this call takes audience.cid")
            }
            throw .null("audience.cid")
        }
        guard !hasAlias else { throw .badParameter("choose one of audience.cid and audience.alias") }
        guard var cids = list.elements else { throw .type("audience.cid", mustBe: "an array of exactly 1 string") }
        guard let first = cids.next() else { throw .empty("audience.cid") }
        guard cids.next() == nil else { throw .overLimit("audience.cid", "this call takes exactly 1") }
        guard let found = first.withStringBytes({ Hexadecimal.identifier($0) }) else {
            throw .type("audience.cid", mustBe: "an array of exactly 1 string")
        }
        guard let found else { throw .targetInvalid(first.string ?? "") }
        return CID(found)
    }

    static func readPayload(_ fields: FieldReader, limits: APILimits) throws(APIError) -> [UInt8] {
        guard let message = try fields.object("push_message", at: "push_message") else {
            throw .null("push_message")
        }
        let transmission = try message.value("transmission")
        let notification = try message.value("notification")
        let revoke = try message.value("revoke")
        guard [transmission, notification, revoke].count(where: { $0 != nil }) == 1 else {
            throw .badParameter("please choose one of notification and transmission and revoke")
        }
        guard let transmission else {
            let name = notification != nil ? "push_message.notification" : "push_message.revoke"
            throw .invalid(name, "not supported yet, use push_message.transmission")
        }
        let name = "push_message.transmission"
        guard let payload = transmission.stringBytes else { throw .type(name, mustBe: "a string") }
        guard !payload.isEmpty else { throw .empty(name) }
        guard payload.count <= Limits.payloadBytes else {
            throw .overLimit(name, "\(payload.count) bytes, at most \(Limits.payloadBytes)")
        }
        if payload.count > limits.payloadCharacters {
            // Every character has one byte that continues no other.
            let characters = payload.count { $0 & 0xc0 != 0x80 }
            guard characters <= limits.payloadCharacters else {
                throw .overLimit(name, "\(characters) characters, at most \(limits.payloadCharacters)")
            }
        }
        return payload
    }

    static func readSettings(_ fields: FieldReader) throws(APIError) -> TimeToLive {
        guard let settings = try fields.object("settings", at: "settings") else {
            return .milliseconds(APILimits.defaultTimeToLive)
        }
        if let strategy = try settings.object("strategy", at: "settings.strategy") {
            try check(strategy, "default")
            try check(strategy, "ios")
        }
        return try timeToLive(try settings.integer("ttl"), "settings.ttl")
    }

    /// `ttl` as it was given, under this name.
    static func timeToLive(_ ttl: Int64?, _ name: StaticString) throws(APIError) -> TimeToLive {
        let ttl = ttl ?? APILimits.defaultTimeToLive
        guard (-1...APILimits.maximumTimeToLive).contains(ttl) else {
            throw .invalid("\(name)", "\(ttl), must be -1 to \(APILimits.maximumTimeToLive) milliseconds")
        }
        return ttl > 0 ? .milliseconds(ttl) : .liveOnly
    }

    /// The other keys name channels that no device of this gateway has.
    private static func check(_ strategy: FieldReader, _ channel: StaticString) throws(APIError) {
        guard let value = try strategy.integer(channel), value != 1 else { return }
        let why = (2...4).contains(value) ? "\(value) is not supported yet, only 1 is" : "\(value), must be 1 to 4"
        throw .invalid(strategy.path(channel), why)
    }
}
