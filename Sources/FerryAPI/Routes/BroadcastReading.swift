internal import FerryCore

extension BroadcastPush {
    /// Reads the body of a push to all devices; the first thing wrong with it is thrown.
    init(_ fields: FieldReader, limits: APILimits) throws(APIError) {
        let requestID = try SinglePush.readRequestID(fields)
        guard let audience = try fields.value("audience") else { throw .null("audience") }
        guard audience.string == "all" else {
            throw .type("audience", mustBe: "the string \"all\"")
        }
        let options = try MessageOptions(fields, limits: limits)
        try Self.refuseUnsupported(options)
        self.init(
            requestID: requestID, payload: options.payload, ttl: options.ttl, traits: options.traits.ofBroadcast)
        scheduledAt = options.scheduleTime.map { Instant(milliseconds: $0) }
    }

    /// What would change when or to whom it goes is refused by name: it must not be lost in silence.
    private static func refuseUnsupported(_ options: MessageOptions) throws(APIError) {
        guard options.speed == 0 else {
            throw .invalid("settings.speed", "not supported yet, leave it out or 0")
        }
        guard options.alert == nil else {
            throw .invalid("push_channel.ios", "not supported yet: a push to all devices wakes nobody")
        }
        try options.traits.checkForAll()
    }
}

extension MessageTraits {
    /// What would change for whom or how a push to all goes is refused by name.
    func checkForAll() throws(APIError) {
        for route in [route, otherRoute ?? route] where route.handsOver {
            throw .invalid(
                "settings.strategy", "\(route.strategy), a push to all devices goes over their own connections: 1 or 3")
        }
        guard activity == nil, !skipsNotifyOff else {
            throw .invalid("settings", "a push to all devices has no filter, use a push to a tag")
        }
    }

    /// Of what its sender said, what means something for a push to all.
    var ofBroadcast: MessageTraits {
        var traits = MessageTraits.none
        (traits.kind, traits.window, traits.groupName, traits.callback) = (kind, window, groupName, callback)
        return traits
    }
}
