package import FerryCore

/// What every call that brings a message says of it, whoever it is for: `settings`, `push_message`, `push_channel` and
/// `group_name`, read and checked.
package struct MessageOptions: Hashable, Sendable {
    /// Not empty; of the kind that `traits` names.
    package var payload: [UInt8]
    package var ttl: TimeToLive
    package var traits: MessageTraits
    /// The sender's own alert; nil for the gateway's default, and where the strategy wakes nobody.
    package var alert: APNsAlert?
    /// Devices a second, of a push to many; 0 has no limit.
    package var speed: Int64
    /// When a push to many begins, in milliseconds since 1970; nil for at once. Not compared with any clock.
    package var scheduleTime: Int64?

    package static let mostSpeed: Int64 = 1_000_000_000

    /// The first thing wrong is thrown.
    init(_ fields: FieldReader, limits: APILimits) throws(APIError) {
        traits = .none
        payload = []
        let message = try fields.object("push_message", at: "push_message")
        guard let message else { throw .null("push_message") }
        let settings = try fields.object("settings", at: "settings")
        ttl = try Self.timeToLive(try settings?.integer("ttl"), "settings.ttl")
        speed = try Self.speed(settings)
        scheduleTime = try settings?.integer("schedule_time", in: 0...Self.mostMilliseconds)
        try readPayload(message, limits: limits)
        try readRest(fields, settings)
    }

    /// Of a call whose payload stands elsewhere: all the rest.
    init(native fields: FieldReader) throws(APIError) {
        traits = .none
        payload = []
        let settings = try fields.object("settings", at: "settings")
        ttl = try Self.timeToLive(try settings?.integer("ttl"), "settings.ttl")
        speed = try Self.speed(settings)
        scheduleTime = nil
        if try settings?.value("schedule_time") != nil {
            throw .invalid("settings.schedule_time", "this call pushes at once")
        }
        try readRest(fields, settings)
    }

    private static func speed(_ settings: FieldReader?) throws(APIError) -> Int64 {
        let speed = try settings?.integer("speed") ?? 0
        guard (0...mostSpeed).contains(speed) else {
            throw .invalid("settings.speed", "\(speed), must be 0 to \(mostSpeed) a second")
        }
        return speed
    }

    private mutating func readRest(_ fields: FieldReader, _ settings: FieldReader?) throws(APIError) {
        traits.groupName = try Self.readGroup(fields)
        if let settings { try readSettings(settings) }
        let channel = try fields.object("push_channel", at: "push_channel")
        let ios = try channel?.object("ios", at: "push_channel.ios")
        alert = try APNsAlert.read(ios, traits: &traits)
        if let channel { try VendorChannels.check(channel) }
        try matchStrategy()
    }

    private static let mostMilliseconds: Int64 = 253_402_300_799_999

    // MARK: - settings

    /// `ttl` as it was given, under this name.
    static func timeToLive(_ ttl: Int64?, _ name: StaticString) throws(APIError) -> TimeToLive {
        let ttl = ttl ?? APILimits.defaultTimeToLive
        guard (-1...APILimits.maximumTimeToLive).contains(ttl) else {
            throw .invalid("\(name)", "\(ttl), must be -1 to \(APILimits.maximumTimeToLive) milliseconds")
        }
        return ttl > 0 ? .milliseconds(ttl) : .liveOnly
    }

    private mutating func readSettings(_ settings: FieldReader) throws(APIError) {
        try readStrategy(settings)
        traits.callback = try settings.nonEmptyString("custom_callback")
        if let callback = traits.callback, callback.utf8.count > MessageTraits.callbackBytes {
            throw .overLimit(
                "settings.custom_callback", "\(callback.utf8.count) bytes, at most \(MessageTraits.callbackBytes)")
        }
        traits.skipsNotifyOff = try settings.truth("filter_notify_off") ?? false
        try readActivity(settings)
        try checkUnused(settings)
    }

    /// The strategy for devices with an APNs token is `ios`, or else `default`; that for others is `default`.
    private mutating func readStrategy(_ settings: FieldReader) throws(APIError) {
        guard let strategy = try settings.object("strategy", at: "settings.strategy") else { return }
        let general = try Self.route(strategy, "default") ?? .ownFirst
        traits.route = try Self.route(strategy, "ios") ?? general
        traits.otherRoute = general == traits.route ? nil : general
        // These name channels that no device of this gateway has.
        for channel in Self.vendorChannels { _ = try Self.route(strategy, channel) }
    }

    private static let vendorChannels: [StaticString] = [
        "hw", "xm", "mz", "op", "vv", "st", "hx", "hwq", "ho", "hoshw",
    ]

    private static func route(_ strategy: FieldReader, _ channel: StaticString) throws(APIError) -> DeliveryRoute? {
        guard let value = try strategy.integer(channel, in: 1...4) else { return nil }
        return DeliveryRoute(strategy: value)
    }

    private mutating func readActivity(_ settings: FieldReader) throws(APIError) {
        let type = try settings.integer("activate_filter_type") ?? 1
        guard type == 1 || type == -1 else {
            throw .invalid("settings.activate_filter_type", "\(type), must be 1 or -1")
        }
        guard let days = try settings.integer("activate_filter_day", in: 1...365) else { return }
        traits.activity = ActivityFilter(days: UInt16(days), wantsActive: type == 1)
    }

    /// Settings of channels that this gateway does not have: their form is checked, and they change nothing.
    private func checkUnused(_ settings: FieldReader) throws(APIError) {
        _ = try settings.integer("active_days", in: 3...15)
        _ = try settings.truth("need_backup")
        _ = try settings.truth("active_push")
        if let last = try settings.integer("lst") {
            let ttl: Int64 = if case .milliseconds(let milliseconds) = ttl { milliseconds } else { 0 }
            guard last > 0, last < ttl else {
                throw .invalid("settings.lst", "\(last), must be above 0 and below the ttl of \(ttl) milliseconds")
            }
        }
        guard let platforms = try settings.value("active_push_platform") else { return }
        guard let list = platforms.elements else {
            throw .type("settings.active_push_platform", mustBe: "an array of whole numbers")
        }
        for platform in list {
            guard let number = platform.int64, (1...3).contains(number) else {
                throw .invalid("settings.active_push_platform", "its members must be 1, 2 or 3")
            }
        }
    }

    private static func readGroup(_ fields: FieldReader) throws(APIError) -> String? {
        guard let name = try fields.text("group_name", upTo: MessageTraits.groupNameCharacters) else { return nil }
        guard name.utf8.allSatisfy({ ASCII.isDigit($0) || ASCII.isLetter($0) || $0 == 0x2d || $0 == 0x5f }) else {
            throw .invalid("group_name", "\(Excerpt.quoted(name)), must be of letters, digits, - and _")
        }
        return name
    }

    // MARK: - push_message

    private mutating func readPayload(_ message: FieldReader, limits: APILimits) throws(APIError) {
        let transmission = try message.value("transmission")
        let notification = try message.object("notification", at: "push_message.notification")
        let revoke = try message.object("revoke", at: "push_message.revoke")
        let isWiFiOnly = try message.integer("network_type", in: 0...1) == 1
        traits.window = try Self.readWindow(message)
        switch (transmission, notification, revoke) {
        case (let transmission?, nil, nil):
            payload = try Self.readTransmission(transmission, limits: limits)
        case (nil, let notification?, nil):
            traits.kind = .notification
            var content = try NotificationContent(notification)
            content.isWiFiOnly = isWiFiOnly
            content.shownFrom = traits.window.map { UInt64(max(0, $0.lowerBound.milliseconds)) }
            content.shownUntil = traits.window.map { UInt64(max(0, $0.upperBound.milliseconds)) }
            payload = content.encoded
        case (nil, nil, let revoke?):
            traits.kind = .revoke
            payload = try RevokeContent(revoke).encoded
        default: throw .badParameter("please choose one of notification and transmission and revoke")
        }
    }

    private static func readTransmission(_ value: JSONValue, limits: APILimits) throws(APIError) -> [UInt8] {
        let name = "push_message.transmission"
        guard let payload = value.stringBytes else { throw .type(name, mustBe: "a string") }
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

    /// `"<start>-<end>"` in milliseconds since 1970.
    private static func readWindow(_ message: FieldReader) throws(APIError) -> ClosedRange<Instant>? {
        guard let text = try message.nonEmptyString("duration") else { return nil }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let start = Int64(parts[0]), let end = Int64(parts[1]), start >= 0,
            end <= mostMilliseconds, start <= end
        else {
            throw .invalid(
                "push_message.duration",
                "\(Excerpt.quoted(text)), must be two times in milliseconds since 1970 with - between them")
        }
        guard end - start > shortestWindow else {
            throw .invalid("push_message.duration", "\(Excerpt.quoted(text)), must be longer than 10 minutes")
        }
        return Instant(milliseconds: start)...Instant(milliseconds: end)
    }

    private static let shortestWindow: Int64 = 600_000

    // MARK: - The strategy

    /// A strategy that hands the message to APNs needs something to hand over; one that wakes nobody has no use for it.
    private mutating func matchStrategy() throws(APIError) {
        // The strategy for devices without a token needs none: what hands over can do nothing for them, whatever the alert.
        if traits.route.handsOver, alert == nil {
            throw .badParameter(
                "push_channel.ios cannot be null: settings.strategy \(traits.route.strategy) sends it to APNs, and it needs "
                    + "an aps.alert or content-available")
        }
        if traits.route == .ownOnly { alert = nil }
        if alert == nil { (traits.alertKind, traits.badge) = (.notify, nil) }
    }
}
