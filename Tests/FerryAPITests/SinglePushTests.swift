internal import FerryAPI
private import FerryCore
internal import Testing

struct SinglePushTests {
    @Test func `a plain push is read whole`() throws {
        let push = try #require(PushBody().parsed().push)
        #expect(push.requestID == "request-0001")
        #expect(push.cid == CID(hex: PushBody.cid))
        #expect(push.payload == Array("hello".utf8))
        #expect(push.ttl == .milliseconds(7_200_000))
        #expect(push.alert == nil)
    }

    @Test func `null equals absent and unknown members are not looked at`() throws {
        var body = PushBody(settings: "null", channel: "null")
        body.message = """
            {"transmission":"\\u4f60\\u0000","notification":null,"revoke":null,"network_type":0,"new":{"a":1,"a":2}}
            """
        body.audience = #"{"cid":["00112233445566778899AABBCCDDEEFF"],"alias":null}"#
        let push = try #require(body.parsed().push)
        #expect(push.payload == Array("你\u{0}".utf8))
        #expect(push.cid == CID(hex: PushBody.cid))
        let settings = #"{"ttl":null,"strategy":null,"speed":null,"haste":"great"}"#
        let channel = #"{"ios":null,"android":{"ups":{}},"windows":1}"#
        #expect(PushBody(settings: settings, channel: channel).parsed().push?.alert == nil)
    }

    static let refused: [(PushBody, String)] = [
        (PushBody(requestID: ""), "request_id can not be empty"),
        (PushBody(requestID: "null"), "request_id can not be empty"),
        (PushBody(requestID: #""""#), "request_id can not be empty"),
        (PushBody(requestID: "1234567890"), "request_id type error: must be a string"),
        (PushBody(requestID: #""123456789""#), "request_id is invalid: \"123456789\", must have 10 to 32 characters"),
        (PushBody(requestID: #""1234567890","request_id":"b""#), "contains duplicate request_id"),
        (PushBody(audience: ""), "audience cannot be null"),
        (PushBody(audience: #""all""#), "audience type error: must be an object"),
        (PushBody(audience: "{}"), "audience.cid cannot be null"),
        (PushBody(audience: #"{"alias":["a"]}"#), "audience.alias is invalid: this call takes audience.cid"),
        (
            PushBody(audience: #"{"cid":["x"],"alias":["a"]}"#),
            "choose one of audience.cid and audience.alias"
        ),
        (PushBody(audience: #"{"cid":"x"}"#), "audience.cid type error: must be an array of exactly 1 string"),
        (PushBody(audience: #"{"cid":[7]}"#), "audience.cid type error: must be an array of exactly 1 string"),
        (PushBody(audience: #"{"cid":[null]}"#), "audience.cid type error: must be an array of exactly 1 string"),
        (PushBody(audience: #"{"cid":[]}"#), "audience.cid can not be empty"),
        (PushBody(audience: #"{"cid":["x","y"]}"#), "audience.cid size over limit: this call takes exactly 1"),
        (PushBody(audience: #"{"cid":["x"]}"#), "target user is invalid: cid \"x\""),
        (PushBody(audience: #"{"cid":["x\ny"]}"#), "target user is invalid: cid \"x?y\""),
        (PushBody(message: ""), "push_message cannot be null"),
        (PushBody(message: "null"), "push_message cannot be null"),
        (PushBody(message: #""a""#), "push_message type error: must be an object"),
        (PushBody(message: "{}"), "please choose one of notification and transmission and revoke"),
        (
            PushBody(message: #"{"transmission":"a","notification":{}}"#),
            "please choose one of notification and transmission and revoke"
        ),
        (PushBody(message: #"{"notification":{}}"#), "push_message.notification.title can not be empty"),
        (PushBody(message: #"{"revoke":{}}"#), "push_message.revoke.old_task_id can not be empty"),
        (PushBody(message: #"{"transmission":""}"#), "push_message.transmission can not be empty"),
        (PushBody(message: #"{"transmission":{}}"#), "push_message.transmission type error: must be a string"),
        (
            PushBody(message: #"{"transmission":"a","transmission":"b"}"#),
            "contains duplicate push_message.transmission"
        ),
        (PushBody(settings: "[1]"), "settings type error: must be an object"),
        (PushBody(settings: #"{"ttl":-2}"#), "settings.ttl is invalid: -2, must be -1 to 259200000 milliseconds"),
        (
            PushBody(settings: #"{"ttl":259200001}"#),
            "settings.ttl is invalid: 259200001, must be -1 to 259200000 milliseconds"
        ),
        (PushBody(settings: #"{"ttl":"soon"}"#), "settings.ttl type error: must be a whole number"),
        (PushBody(settings: #"{"ttl":1.0}"#), "settings.ttl type error: must be a whole number"),
        (PushBody(settings: #"{"strategy":1}"#), "settings.strategy type error: must be an object"),
        (
            PushBody(settings: #"{"strategy":{"default":0}}"#),
            "settings.strategy.default is invalid: 0, must be 1 to 4"
        ),
        (
            PushBody(settings: #"{"strategy":{"ios":5}}"#), "settings.strategy.ios is invalid: 5, must be 1 to 4"
        ),
        (PushBody(channel: "7"), "push_channel type error: must be an object"),
        (PushBody(channel: #"{"ios":[{}]}"#), "push_channel.ios type error: must be an object"),
    ]

    @Test(arguments: refused.indices)
    func `a wrong push is refused by the name of the field and its value`(index: Int) {
        let (body, message) = Self.refused[index]
        let error = body.parsed().error
        #expect(error?.message == message, "\(body.text)")
        #expect(error?.code == 20001)
        #expect(error?.httpStatus == 400)
    }

    @Test(
        arguments: [
            ("-1", .liveOnly), ("0", .liveOnly), ("\"0\"", .liveOnly), ("1", .milliseconds(1)),
            ("259200000", .milliseconds(259_200_000)), ("\"259200000\"", .milliseconds(259_200_000)),
        ] as [(String, TimeToLive)])
    func `a ttl is a number or its digits, up to three days`(text: String, ttl: TimeToLive) {
        let settings = "{\"ttl\":\(text),\"strategy\":{\"default\":1,\"ios\":\"1\",\"hw\":4}}"
        #expect(PushBody(settings: settings).parsed().push?.ttl == ttl)
    }

    @Test(arguments: [(9, false), (10, true), (32, true), (33, false)] as [(Int, Bool)])
    func `a request id has 10 to 32 characters, of any script`(count: Int, isAccepted: Bool) {
        for character in ["a", "你", "😀"] {
            let text = String(repeating: character, count: count)
            #expect((PushBody(requestID: "\"\(text)\"").parsed().push != nil) == isAccepted)
        }
    }

    private func transmission(_ text: String, limits: APILimits = APILimits()) -> Result<APIRequest, APIError> {
        PushBody(message: "{\"transmission\":\"\(text)\"}").parsed(limits: limits)
    }

    @Test func `a payload has so many characters, however many bytes each takes`() {
        for character in ["a", "é", "你", "😀"] {
            let most = String(repeating: character, count: 3072)
            #expect(transmission(most).push?.payload == Array(most.utf8))
            #expect(
                transmission(most + "b").error
                    == .overLimit("push_message.transmission", "3073 characters, at most 3072"))
        }
    }

    @Test func `a configured payload limit ends at the protocol's bytes`() {
        let limits = APILimits(payloadCharacters: 1_000_000)
        #expect(limits.payloadCharacters == 65_536)
        #expect(transmission(String(repeating: "a", count: 65_536), limits: limits).push != nil)
        #expect(
            transmission(String(repeating: "a", count: 65_537), limits: limits).error
                == .overLimit("push_message.transmission", "65537 bytes, at most 65536"))
        let wide = String(repeating: "你", count: 21_845)
        #expect(transmission(wide + "a", limits: limits).push != nil)
        #expect(transmission(wide + "ab", limits: limits).error?.code == 20001)
        #expect(transmission("ab", limits: APILimits(payloadCharacters: 0)).error?.code == 20001)
        #expect(transmission("a", limits: APILimits(payloadCharacters: 0)).push != nil)
    }

    @Test func `a payload that would be no text is no JSON either`() {
        #expect(transmission("a\\udc00").error == .notJSON(.string))
        #expect(transmission("a\\ud800\\u0041").error == .notJSON(.string))
        #expect(transmission("\\ud83d\\ude00").push?.payload == Array("😀".utf8))
    }

    @Test func `a message shows at most so much of what the sender wrote`() throws {
        let long = String(repeating: "\\u0001你", count: 5000)
        for body in [
            PushBody(requestID: "\"\(long)\""), PushBody(audience: "{\"cid\":[\"\(long)\"]}"),
            .ios("\"type\":\"\(long)\""), .ios("\"auto_badge\":\"\(long)\""),
            .ios("\"apns-collapse-id\":\"你\""),
        ] {
            let message = try #require(body.parsed().error?.message)
            #expect(message.utf8.count <= 160, "\(message)")
            #expect(!message.contains("\u{1}"))
        }
    }

    @Test func `no prefix and no changed byte of a push traps, and what is wrong is said shortly`() {
        var body = PushBody.ios(#""auto_badge":"+1","aps":{"alert":{"title":"t","loc-args":["a"]},"sound":"s"}"#)
        body.settings = #"{"ttl":"60000","strategy":{"default":1}}"#
        let bytes = Array(body.text.utf8)
        let parser = APIRequestParser(limits: APILimits())
        let route = APIRoute(call: .pushSingle, appID: "demo")
        guard var request = decode("POST / HTTP/1.1\r\nHost: a\r\n\r\n").first?.request else { return }
        var accepted = 0
        for position in bytes.indices {
            request.body = Array(bytes[..<position])
            #expect(parser.parse(route, request).error?.code == 1)
            for value in [0, 0x22, 0x2c, 0x30, 0x5c, 0x5d, 0x7d, 0xff] as [UInt8] {
                request.body = bytes
                request.body[position] = value
                let parsed = parser.parse(route, request)
                if parsed.push != nil { accepted += 1 }
                #expect((parsed.error?.message.utf8.count ?? 0) <= 160)
            }
        }
        #expect(accepted > 100)
        request.body = bytes
        #expect(parser.parse(route, request).push?.alert != nil)
    }

    @Test func `content is the same exactly when payload, ttl and alert are`() throws {
        let bodies = [
            PushBody(), PushBody(message: #"{"transmission":"hell"}"#), PushBody(settings: #"{"ttl":1}"#),
            PushBody(settings: #"{"ttl":0}"#), .aps(#""alert":{"title":"a"}"#), .aps(#""content-available":1"#),
            .ios(#""aps":{"alert":{"title":"a"}},"apns-collapse-id":"c""#),
        ]
        let inputs = try bodies.map { try #require($0.parsed().push).contentDigestInput }
        #expect(Set(inputs).count == bodies.count)
        let other = PushBody(
            requestID: #""another-request""#, audience: #"{"cid":["\#(String(repeating: "0", count: 32))"]}"#,
            settings: #"{"ttl":"7200000"}"#)
        #expect(other.parsed().push?.contentDigestInput == inputs[0])
    }
}
