internal import FerryCore

extension NotificationContent {
    /// Reads `push_message.notification`; the first thing wrong with it is thrown. Lengths are GeTui's, in characters.
    init(_ fields: FieldReader) throws(APIError) {
        self.init()
        title = try fields.requiredText("title", upTo: 50)
        body = try fields.requiredText("body", upTo: 256)
        try fields.chooseOne("big_text", "big_image")
        bigText = try fields.text("big_text", upTo: 512)
        bigImage = try fields.text("big_image", upTo: 1_024)
        logo = try fields.text("logo", upTo: 64)
        logoURL = try fields.text("logo_url", upTo: 256)
        channelID = try fields.text("channel_id", upTo: 64)
        channelName = try fields.text("channel_name", upTo: 64)
        channelLevel = try fields.integer("channel_level", in: 0...4).map { UInt64($0) }
        try readClick(fields)
        notifyID = try fields.integer("notify_id", in: 0...Int64(Int32.max)).map { UInt64($0) }
        ringName = try fields.text("ring_name", upTo: 40)
        badgeAddition = try fields.integer("badge_add_num", in: 1...Int64(Int32.max)).map { UInt64($0) }
        threadID = try fields.text("thread_id", upTo: 128)
        redisplayFrequency = try fields.integer("redisplay_freq", in: 0...3).map { UInt64($0) }
        redisplayDuration = try fields.integer("redisplay_duration", in: 0...86_400_000).map { UInt64($0) }
        category = try fields.text("category", upTo: 64)
    }

    private mutating func readClick(_ fields: FieldReader) throws(APIError) {
        guard let type = try fields.nonEmptyString("click_type") else { throw .empty(fields.path("click_type")) }
        guard let click = Click(rawValue: type) else {
            let known = Click.allCases.map(\.rawValue).joined(separator: ", ")
            throw .invalid(fields.path("click_type"), "\(Excerpt.quoted(type)), must be one of \(known)")
        }
        self.click = click
        // Each target has its length whether or not this click needs it.
        let intent = try fields.text("intent", upTo: 4_096)
        let url = try fields.text("url", upTo: 1_024)
        let payload = try fields.text("payload", upTo: 3_072)
        switch click {
        case .intent: clickTarget = try Self.needed(intent, fields, "intent")
        case .url: clickTarget = try Self.needed(url, fields, "url")
        case .payload, .payloadCustom: clickTarget = try Self.needed(payload, fields, "payload")
        // What stands there for the app to read when it is opened is not lost.
        case .startApp, .none: clickTarget = payload
        }
    }

    private static func needed(
        _ text: String?, _ fields: FieldReader, _ name: StaticString
    ) throws(APIError) -> String {
        guard let text else { throw .empty(fields.path(name)) }
        return text
    }
}

extension RevokeContent {
    /// Reads `push_message.revoke`.
    init(_ fields: FieldReader) throws(APIError) {
        let task = try fields.requiredText("old_task_id", upTo: 64)
        self.init(taskID: task, isForced: try fields.truth("force") ?? false)
    }
}
