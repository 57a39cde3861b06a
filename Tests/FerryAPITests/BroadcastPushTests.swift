internal import FerryAPI
private import FerryCore
internal import Testing

struct BroadcastPushTests {
    private func body(
        audience: String = #""all""#, settings: String = "", more: String = "",
        message: String = #"{"transmission":"hello"}"#
    ) -> String {
        #"{"request_id":"request-0001","audience":\#(audience)\#(settings.isEmpty ? "" : #","settings":\#(settings)"#)"#
            + #"\#(more),"push_message":\#(message)}"#
    }

    private func read(_ body: String) -> Result<BroadcastPush, APIError> {
        parse(.pushAll, body).flatMap { call in
            guard case .pushAll(let push) = call else { return .failure(.notFound("")) }
            return .success(push)
        }
    }

    @Test func `a push to all is read whole`() throws {
        let push = try read(body()).get()
        #expect(push.requestID == "request-0001")
        #expect(push.payload == Array("hello".utf8))
        #expect(push.ttl == .milliseconds(7_200_000))
        #expect(try read(body(settings: #"{"ttl":-1,"speed":0,"schedule_time":null}"#)).get().ttl == .liveOnly)
        #expect(try read(body(more: #","push_channel":{"android":{"ups":{}},"ios":null}"#)).get() == push)
    }

    static let refused: [(String, String, String)] = [
        ("null", "", "audience cannot be null"),
        (#"{"cid":["a"]}"#, "", #"audience type error: must be the string "all""#),
        (#""some""#, "", #"audience type error: must be the string "all""#),
        (
            #""all""#, #","settings":{"ttl":259200001}"#,
            "settings.ttl is invalid: 259200001, must be -1 to 259200000 milliseconds"
        ),
        (#""all""#, #","settings":{"speed":10}"#, "settings.speed is invalid: not supported yet, leave it out or 0"),
        (
            #""all""#, #","settings":{"schedule_time":"soon"}"#,
            "settings.schedule_time type error: must be a whole number"
        ),
        (
            #""all""#, #","settings":{"strategy":{"ios":2}}"#,
            "push_channel.ios cannot be null: settings.strategy 2 sends it to APNs, and it needs an aps.alert or "
                + "content-available"
        ),
        (
            #""all""#,
            #","settings":{"strategy":{"ios":3}},"push_channel":{"ios":{"aps":{"alert":{"title":"t"}}}}"#,
            ""
        ),
        (
            #""all""#, #","push_channel":{"ios":{"aps":{"alert":{"title":"t"}}}}"#,
            "push_channel.ios is invalid: not supported yet: a push to all devices wakes nobody"
        ),
        (
            #""all""#, #","settings":{"filter_notify_off":true}"#,
            "settings is invalid: a push to all devices has no filter, use a push to a tag"
        ),
    ]

    @Test(arguments: refused)
    func `what cannot be done is refused by name`(_ audience: String, _ more: String, _ message: String) {
        #expect(read(body(audience: audience, more: more)).error?.message ?? "" == message)
    }

    @Test func `the content is the payload and the ttl, whatever the request id`() throws {
        let first = try read(body()).get()
        let other = try read(body(settings: #"{"ttl":7200001}"#)).get()
        let text = try read(body(message: #"{"transmission":"hellp"}"#)).get()
        #expect(first.contentDigestInput != other.contentDigestInput)
        #expect(first.contentDigestInput != text.contentDigestInput)
    }

    @Test func `the answer names the task`() {
        let answer = APIAnswer.pushedAll(
            task: TaskID(Identifier128(high: 1, low: 2), monthDay: 1_130, kind: .app))
        #expect(
            String(decoding: answer.response.body, as: UTF8.self)
                == #"{"code":0,"msg":"success","data":{"taskid":"RASA_1130_00000000000000010000000000000002"}}"#)
    }
}
