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
        var traits = MessageTraits.none
        (traits.kind, traits.groupName, traits.callback) = (
            options.traits.kind, options.traits.groupName, options.traits.callback
        )
        traits.window = options.traits.window
        self.init(requestID: requestID, payload: options.payload, ttl: options.ttl, traits: traits)
    }

    /// What would change when or to whom it goes is refused by name: it must not be lost in silence.
    private static func refuseUnsupported(_ options: MessageOptions) throws(APIError) {
        guard options.speed == 0 else {
            throw .invalid("settings.speed", "not supported yet, leave it out or 0")
        }
        guard options.scheduleTime == nil else { throw .invalid("settings.schedule_time", "not supported yet") }
        guard options.alert == nil else {
            throw .invalid("push_channel.ios", "not supported yet: a push to all devices wakes nobody")
        }
        for route in [options.traits.route, options.traits.otherRoute ?? options.traits.route] where route.handsOver {
            throw .invalid(
                "settings.strategy", "\(route.strategy), a push to all devices goes over their own connections: 1 or 3")
        }
        guard options.traits.activity == nil, !options.traits.skipsNotifyOff else {
            throw .invalid("settings", "a push to all devices has no filter, use a push to a tag")
        }
    }
}
