internal import FerryCore

extension BroadcastPush {
    /// Reads the body of a push to all devices; the first thing wrong with it is thrown.
    init(_ fields: FieldReader, limits: APILimits) throws(APIError) {
        let requestID = try SinglePush.readRequestID(fields)
        guard let audience = try fields.value("audience") else { throw .null("audience") }
        guard audience.string == "all" else {
            throw .type("audience", mustBe: "the string \"all\"")
        }
        let payload = try SinglePush.readPayload(fields, limits: limits)
        let ttl = try SinglePush.readSettings(fields)
        try Self.refuseUnsupported(fields)
        self.init(requestID: requestID, payload: payload, ttl: ttl)
        let settings = try fields.object("settings", at: "settings")
        scheduledAt = try settings?.integer("schedule_time").map { Instant(milliseconds: $0) }
    }

    /// What would change when or to whom it goes is refused by name: it must not be lost in silence.
    private static func refuseUnsupported(_ fields: FieldReader) throws(APIError) {
        let settings = try fields.object("settings", at: "settings")
        if let speed = try settings?.integer("speed"), speed != 0 {
            throw .invalid("settings.speed", "not supported yet, leave it out or 0")
        }
        if try fields.object("push_channel", at: "push_channel")?.value("ios") != nil {
            throw .invalid("push_channel.ios", "not supported yet: a push to all devices wakes nobody")
        }
    }
}
