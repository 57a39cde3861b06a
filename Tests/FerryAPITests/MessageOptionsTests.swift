internal import FerryAPI
internal import FerryCore
internal import Testing

struct MessageOptionsTests {
    private static let alert = #"{"ios":{"aps":{"alert":{"title":"t"}}}}"#

    private static func notification(_ members: String) -> PushBody {
        PushBody(message: #"{"notification":{\#(members)}}"#)
    }

    private static func plain(_ members: String) -> PushBody {
        notification(#""title":"t","body":"b","click_type":"none"\#(members)"#)
    }

    private static func long(_ count: Int) -> String { String(repeating: "\u{4F60}", count: count) }

    static let refused: [(PushBody, String)] = {
        let path = "push_message.notification."
        var rows: [(PushBody, String)] = [
            (notification(#""body":"b","click_type":"none""#), path + "title can not be empty"),
            (notification(#""title":"t","click_type":"none""#), path + "body can not be empty"),
            (notification(#""title":"t","body":"b""#), path + "click_type can not be empty"),
            (notification(#""title":1,"body":"b""#), path + "title type error: must be a string"),
            (
                notification(#""title":"t","body":"b","click_type":"jump""#),
                path
                    + "click_type is invalid: \"jump\", must be one of intent, url, payload, payload_custom, startapp, none"
            ),
            (notification(#""title":"t","body":"b","click_type":"intent""#), path + "intent can not be empty"),
            (notification(#""title":"t","body":"b","click_type":"url""#), path + "url can not be empty"),
            (notification(#""title":"t","body":"b","click_type":"payload""#), path + "payload can not be empty"),
            (notification(#""title":"t","body":"b","click_type":"payload_custom""#), path + "payload can not be empty"),
            (
                plain(#","big_text":"x","big_image":"y""#),
                path + "big_text and " + path + "big_image cannot setting at same time"
            ),
            (PushBody(message: #"{"notification":[1]}"#), "push_message.notification type error: must be an object"),
            (PushBody(message: #"{"revoke":7}"#), "push_message.revoke type error: must be an object"),
            (
                PushBody(message: #"{"revoke":{"old_task_id":"t","force":1}}"#),
                "push_message.revoke.force type error: must be true or false"
            ),
            (
                PushBody(message: #"{"transmission":"a","duration":"soon"}"#),
                "push_message.duration is invalid: \"soon\", must be two times in milliseconds since 1970 with - between them"
            ),
            (
                PushBody(message: #"{"transmission":"a","duration":"5-4"}"#),
                "push_message.duration is invalid: \"5-4\", must be two times in milliseconds since 1970 with - between them"
            ),
            (
                PushBody(message: #"{"transmission":"a","duration":"1000-601000"}"#),
                "push_message.duration is invalid: \"1000-601000\", must be longer than 10 minutes"
            ),
            (
                PushBody(settings: #"{"lst":5,"ttl":5}"#),
                "settings.lst is invalid: 5, must be above 0 and below the ttl of 5 milliseconds"
            ),
            (
                PushBody(settings: #"{"lst":0}"#),
                "settings.lst is invalid: 0, must be above 0 and below the ttl of 7200000 milliseconds"
            ),
            (
                PushBody(settings: #"{"active_push_platform":2}"#),
                "settings.active_push_platform type error: must be an array of whole numbers"
            ),
            (
                PushBody(settings: #"{"active_push_platform":[4]}"#),
                "settings.active_push_platform is invalid: its members must be 1, 2 or 3"
            ),
            (
                PushBody(settings: #"{"activate_filter_type":0}"#),
                "settings.activate_filter_type is invalid: 0, must be 1 or -1"
            ),
            (
                PushBody(settings: #"{"schedule_time":1}"#),
                "settings.schedule_time is invalid: a push to single devices is sent at once, leave it out"
            ),
            (
                PushBody(settings: #"{"custom_callback":"\#(String(repeating: "c", count: 513))"}"#),
                "settings.custom_callback size over limit: 513 bytes, at most 512"
            ),
            (PushBody(settings: #"{"custom_callback":{}}"#), "settings.custom_callback type error: must be a string"),
            (PushBody(channel: #"{"android":1}"#), "push_channel.android type error: must be an object"),
            (PushBody(channel: #"{"android":{"ups":1}}"#), "push_channel.android.ups type error: must be an object"),
            (
                PushBody(channel: #"{"android":{"ups":{"transmission":"a","revoke":{}}}}"#),
                "push_channel.android.ups: please choose one of notification and transmission and revoke"
            ),
            (
                PushBody(channel: #"{"android":{"ups":{"options":[1]}}}"#),
                "push_channel.android.ups.options type error: must be an object"
            ),
            (
                PushBody(channel: #"{"harmony":{"transmission":"a","custom":{}}}"#),
                "push_channel.harmony: please choose one of notification and transmission and custom and revoke"
            ),
            (
                PushBody(channel: #"{"harmony":{"notification":"n"}}"#),
                "push_channel.harmony.notification type error: must be an object"
            ),
        ]
        for (name, most) in [
            ("big_text", 512), ("big_image", 1_024), ("logo", 64), ("logo_url", 256), ("channel_id", 64),
            ("channel_name", 64), ("intent", 4_096), ("url", 1_024), ("payload", 3_072), ("ring_name", 40),
            ("thread_id", 128), ("category", 64),
        ] {
            rows.append(
                (
                    plain(#","\#(name)":"\#(long(most + 1))""#),
                    path + "\(name) size over limit: \(most + 1) characters, at most \(most)"
                ))
        }
        for (name, value, rule) in [
            ("channel_level", "5", "0 to 4"), ("channel_level", "-1", "0 to 4"),
            ("notify_id", "2147483648", "0 to 2147483647"), ("badge_add_num", "0", "1 to 2147483647"),
            ("redisplay_freq", "4", "0 to 3"), ("redisplay_duration", "86400001", "0 to 86400000"),
        ] {
            rows.append((plain(#","\#(name)":\#(value)"#), path + "\(name) is invalid: \(value), must be \(rule)"))
        }
        for (name, value, rule) in [
            ("speed", "-1", "0 to 1000000000 a second"), ("active_days", "2", "3 to 15"),
            ("active_days", "16", "3 to 15"),
            ("activate_filter_day", "0", "1 to 365"), ("schedule_time", "-5", "0 to 253402300799999"),
        ] {
            rows.append(
                (
                    PushBody(settings: #"{"\#(name)":\#(value)}"#),
                    "settings.\(name) is invalid: \(value), must be \(rule)"
                ))
        }
        for name in ["need_backup", "active_push", "filter_notify_off"] {
            rows.append(
                (PushBody(settings: #"{"\#(name)":"maybe"}"#), "settings.\(name) type error: must be true or false"))
        }
        for key in ["default", "ios", "hw", "xm", "mz", "op", "vv", "st", "hx", "hwq", "ho", "hoshw"] {
            rows.append(
                (
                    PushBody(settings: #"{"strategy":{"\#(key)":5}}"#),
                    "settings.strategy.\(key) is invalid: 5, must be 1 to 4"
                ))
        }
        return rows
    }()

    @Test(arguments: refused.indices)
    func `an option out of its range is refused by name, value and rule`(index: Int) {
        let (body, message) = Self.refused[index]
        #expect(body.parsed().error?.message == message)
        #expect(body.parsed().error?.code == 20001)
    }

    @Test func `the longest texts are taken, whatever the bytes of a character`() {
        for (name, most) in [("big_text", 512), ("intent", 4_096), ("category", 64)] {
            #expect(Self.plain(#","\#(name)":"\#(Self.long(most))""#).parsed().push != nil)
        }
        let title = #""title":"\#(Self.long(50))","body":"\#(Self.long(256))","click_type":"none""#
        #expect(Self.notification(title).parsed().push != nil)
    }

    @Test func `a notification becomes a content of its kind, field by field`() throws {
        var body = Self.notification(
            #""title":"t","body":"b","big_text":"bt","logo":"l","logo_url":"lu","channel_id":"ci","channel_name":"cn","#
                + #""channel_level":"3","click_type":"url","url":"https://e.org","notify_id":7,"ring_name":"r","#
                + #""badge_add_num":2,"thread_id":"ti","redisplay_freq":1,"redisplay_duration":60000,"category":"IM""#)
        body.message.removeLast()
        body.message += #","network_type":1,"duration":"1000-9000000"}"#
        let push = try #require(body.parsed().push)
        #expect(push.traits.kind == .notification)
        var expected = NotificationContent()
        (expected.title, expected.body, expected.bigText) = ("t", "b", "bt")
        (expected.logo, expected.logoURL) = ("l", "lu")
        (expected.channelID, expected.channelName, expected.channelLevel) = ("ci", "cn", 3)
        (expected.click, expected.clickTarget, expected.notifyID) = (.url, "https://e.org", 7)
        (expected.ringName, expected.badgeAddition, expected.threadID) = ("r", 2, "ti")
        (expected.redisplayFrequency, expected.redisplayDuration, expected.category) = (1, 60_000, "IM")
        (expected.shownFrom, expected.shownUntil, expected.isWiFiOnly) = (1_000, 9_000_000, true)
        #expect(push.payload.withUnsafeBytes { NotificationContent(encoded: $0) } == expected)
        #expect(push.traits.window == Instant(milliseconds: 1_000)...Instant(milliseconds: 9_000_000))
    }

    @Test func `a revoke names the earlier task`() throws {
        let push = try #require(
            PushBody(message: #"{"revoke":{"old_task_id":"RASL_1130_x","force":true}}"#).parsed().push)
        #expect(push.traits.kind == .revoke)
        #expect(
            push.payload.withUnsafeBytes { RevokeContent(encoded: $0) }
                == RevokeContent(taskID: "RASL_1130_x", isForced: true))
    }

    @Test(
        arguments: [
            (#"{"default":1}"#, .ownFirst, nil), (#"{"ios":2}"#, .wakeOnly, .ownFirst),
            (#"{"default":2}"#, .wakeOnly, nil), (#"{"default":3,"ios":"4"}"#, .wakeFirst, .ownOnly),
            (#"{"default":4,"ios":4,"hw":2}"#, .wakeFirst, nil), (#"{"hw":2}"#, .ownFirst, nil),
        ] as [(String, DeliveryRoute, DeliveryRoute?)])
    func `a strategy for ios is for devices with a token, the default one for others`(
        strategy: String, route: DeliveryRoute, other: DeliveryRoute?
    ) throws {
        let push = try #require(
            PushBody(settings: #"{"strategy":\#(strategy)}"#, channel: Self.alert).parsed().push)
        #expect(push.traits.route == route && push.traits.otherRoute == other)
    }

    @Test func `a strategy that goes by APNs needs something for APNs, and one that does not has no alert`() throws {
        for number in [2, 4] {
            let error = PushBody(settings: #"{"strategy":{"ios":\#(number)}}"#).parsed().error
            #expect(error?.message.hasPrefix("push_channel.ios cannot be null: settings.strategy \(number)") == true)
        }
        let push = try #require(PushBody(settings: #"{"strategy":{"default":3}}"#, channel: Self.alert).parsed().push)
        #expect(push.alert == nil && push.traits.route == .ownOnly)
    }

    @Test func `what reports, receipts and filters need is kept`() throws {
        let settings =
            #"{"custom_callback":"cb-7","filter_notify_off":true,"activate_filter_day":30,"activate_filter_type":-1,"#
            + #""active_days":"15","need_backup":true,"active_push":false,"lst":1,"active_push_platform":[1,3]}"#
        let text = PushBody(settings: settings).text
        let named = #"{"group_name":"Spring-sale_2"\#(text.dropFirst().isEmpty ? "" : ",")\#(text.dropFirst())"#
        let push = try #require(parse(.pushSingle, named).push)
        #expect(push.traits.groupName == "Spring-sale_2" && push.traits.callback == "cb-7")
        #expect(push.traits.skipsNotifyOff)
        #expect(push.traits.activity == ActivityFilter(days: 30, wantsActive: false))
        for (name, message) in [
            ("a b", "group_name is invalid: \"a b\", must be of letters, digits, - and _"),
            (String(repeating: "g", count: 101), "group_name size over limit: 101 characters, at most 100"),
        ] {
            let bad = #"{"group_name":"\#(name)",\#(PushBody().text.dropFirst())"#
            #expect(parse(.pushSingle, bad).error?.message == message)
        }
    }

    @Test func `content is another when any option is`() throws {
        var bodies = [PushBody(), PushBody(settings: #"{"custom_callback":"a"}"#)]
        bodies += [2, 3, 4].map { PushBody(settings: #"{"strategy":{"default":\#($0)}}"#, channel: Self.alert) }
        bodies.append(PushBody(message: #"{"transmission":"hello","duration":"1000-9000000"}"#))
        bodies.append(Self.plain(""))
        let digests = Set(bodies.compactMap { $0.parsed().push?.contentDigestInput })
        #expect(digests.count == bodies.count)
    }
}
