internal import FerryAudience
internal import FerryCore

extension APIRequest {
    /// What a push to all devices comes to. Where it goes another way than over their own connections, or not to all of them,
    /// each device has a message of its own: then it is a push to an audience without conditions.
    static func pushAll(_ fields: FieldReader, limits: APILimits) throws(APIError) -> APIRequest {
        let requestID = try SinglePush.readRequestID(fields)
        guard let audience = try fields.value("audience") else { throw .null("audience") }
        guard audience.string == "all" else {
            throw .type("audience", mustBe: "the string \"all\"")
        }
        let options = try MessageOptions(fields, limits: limits)
        guard options.traits.isForEachDevice else {
            return .pushAll(try BroadcastPush(options, requestID: requestID))
        }
        var message = ListMessage(
            requestID: requestID, payload: options.payload, ttl: options.ttl, traits: options.traits,
            alert: options.alert)
        message.scheduledAt = options.scheduleTime.map { Instant(milliseconds: $0) }
        return .list(.audience(message, ListAudience(AudienceExpression(), speed: options.speed)))
    }
}

extension BroadcastPush {
    /// `options.traits` are not for each device.
    init(_ options: MessageOptions, requestID: String) throws(APIError) {
        try Self.check(options.alert, options.ttl)
        self.init(
            requestID: requestID, payload: options.payload, ttl: options.ttl, sender: options.traits,
            alert: options.alert, speed: options.speed)
        scheduledAt = options.scheduleTime.map { Instant(milliseconds: $0) }
    }

    /// `sender` is all that its sender said.
    init(
        requestID: String, payload: [UInt8], ttl: TimeToLive, sender: MessageTraits, alert: APNsAlert?, speed: Int64
    ) {
        self.init(
            requestID: requestID, payload: payload, ttl: ttl, traits: sender.ofBroadcast(hasAlert: alert != nil))
        wakes = sender.route == .ownFirst && ttl != .liveOnly
        self.alert = alert
        self.speed = speed
    }

    /// An alert would be lost in silence where nobody is woken.
    static func check(_ alert: APNsAlert?, _ ttl: TimeToLive) throws(APIError) {
        guard alert == nil || ttl != .liveOnly else {
            throw .invalid("push_channel.ios", "a push to all devices that is live only, by its ttl, wakes nobody")
        }
    }
}

extension MessageTraits {
    /// It is handed over device by device, or passes over some.
    var isForEachDevice: Bool {
        route.handsOver || (otherRoute ?? route).handsOver || activity != nil || skipsNotifyOff
    }

    /// Of what its sender said, what means something for a push to all.
    fileprivate func ofBroadcast(hasAlert: Bool) -> MessageTraits {
        var traits = MessageTraits.none
        (traits.kind, traits.window, traits.groupName, traits.callback) = (kind, window, groupName, callback)
        if hasAlert { (traits.alertKind, traits.badge) = (alertKind, badge) }
        return traits
    }
}
