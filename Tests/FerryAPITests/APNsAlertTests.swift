internal import FerryAPI
internal import FerryCore
internal import Testing

struct APNsAlertTests {
    private func alert(_ body: PushBody) -> APNsAlert? { body.parsed().push?.alert }

    private func payload(_ body: PushBody) -> String? {
        alert(body).map { String(decoding: $0.payload, as: UTF8.self) }
    }

    @Test func `all fields of an alert go to APNs`() {
        let body = PushBody.ios(
            """
            "type":"notify","payload":"{\\"k\\":1}","auto_badge":"+1","apns-collapse-id":"group 7","multimedia":[],"aps":{
            "alert":{"title":"t","body":"b\\n","subtitle":"s","action-loc-key":"k1","loc-key":"k2","loc-args":["x","y"],
            "launch-image":"i","title-loc-key":"k3","title-loc-args":["z"],"subtitle-loc-key":"k4",
            "subtitle-loc-args":[],"unknown":1},"content-available":"0","sound":"default","category":"c","thread-id":"th"}
            """)
        let texts = #""title":"t","subtitle":"s","body":"b\n","launch-image":"i","action-loc-key":"k1","#
        let keys = #""title-loc-key":"k3","subtitle-loc-key":"k4","loc-key":"k2","#
        let lists = #""title-loc-args":["z"],"loc-args":["x","y"]"#
        let rest = #""mutable-content":1,"sound":"default","category":"c","thread-id":"th""#
        #expect(
            payload(body) == "{\"aps\":{\"alert\":{\(texts)\(keys)\(lists)},\(rest)},\"payload\":\"{\\\"k\\\":1}\"}")
        #expect(alert(body)?.collapseID == "group 7")
        #expect(alert(body)?.pushType == .alert)
    }

    @Test func `a silent push is a background push`() {
        let body = PushBody.ios(#""payload":"p","aps":{"content-available":1,"sound":"com.gexin.ios.silence"}"#)
        #expect(payload(body) == #"{"aps":{"content-available":1},"payload":"p"}"#)
        #expect(alert(body)?.pushType == .background)
        #expect(alert(body)?.collapseID == nil)
    }

    @Test func `an alert may also wake the app`() {
        let body = PushBody.aps(#""alert":{"body":"b"},"content-available":1"#)
        #expect(payload(body) == #"{"aps":{"alert":{"body":"b"},"mutable-content":1,"content-available":1}}"#)
        #expect(alert(body)?.pushType == .alert)
    }

    @Test(arguments: [
        "", #""type":"notify""#, #""aps":{}"#, #""aps":{"content-available":0,"sound":""}"#, #""auto_badge":"5""#,
        #""payload":"","apns-collapse-id":"","type":"""#, #""aps":{"sound":"com.gexin.ios.silence"}"#,
    ])
    func `what says nothing leaves the default alert`(members: String) throws {
        let push = try #require(PushBody.ios(members).parsed().push)
        #expect(push.alert == nil)
    }

    @Test func `a voip push needs a payload only`() {
        let body = PushBody.ios(#""type":"voip","payload":"call""#)
        #expect(payload(body) == #"{"aps":{},"payload":"call"}"#)
        #expect(body.parsed().push?.traits.alertKind == .voip)
        #expect(alert(body)?.pushType == .alert)
    }

    @Test func `a live activity has its own members`() {
        let body = PushBody.ios(
            #""type":"liveactivity","laId":"a1","aps":{"timestamp":"17","event":"end","content-state":{ "n" : [1] },"#
                + #""dismissal-date":18,"alert":{"title":"t"}}"#)
        #expect(
            payload(body)
                == #"{"aps":{"timestamp":17,"event":"end","content-state":{"n":[1]},"dismissal-date":18,"#
                + #""alert":{"title":"t"},"mutable-content":1},"laId":"a1"}"#)
        #expect(body.parsed().push?.traits.alertKind == .liveActivity)
    }

    @Test func `multimedia goes to the service extension`() {
        let body = PushBody.ios(
            #""multimedia":[{"url":"https://e.org/1","type":"1","only_wifi":true},{"url":"v","type":3}],"#
                + #""aps":{"alert":{"title":"t"}}"#)
        #expect(
            payload(body)
                == #"{"aps":{"alert":{"title":"t"},"mutable-content":1},"_grinfo_":["#
                + #"{"url":"https://e.org/1","type":1,"only_wifi":true},{"url":"v","type":3,"only_wifi":false}]}"#)
    }

    @Test(arguments: [("+1", .add(1)), ("-12", .add(-12)), ("5", .set(5)), ("0", .set(0))] as [(String, AutoBadge)])
    func `an automatic badge adds, takes away or sets`(text: String, change: AutoBadge) {
        let with = PushBody.ios(#""auto_badge":"\#(text)","aps":{"alert":{"title":"t"}}"#)
        #expect(with.parsed().push?.traits.badge == change)
        #expect(PushBody.ios(#""auto_badge":"\#(text)""#).parsed().push?.traits == MessageTraits.none)
    }

    static let refused: [(String, String)] = [
        (#""type":"voip""#, "push_channel.ios.payload cannot be null"),
        (
            #""type":"voip","payload":"p","aps":{"content-available":1}"#,
            "push_channel.ios.type is invalid: a voip push cannot be content-available"
        ),
        (#""type":"liveactivity""#, "push_channel.ios.aps cannot be null"),
        (#""type":"liveactivity","aps":{}"#, "push_channel.ios.aps.event can not be empty"),
        (
            #""type":"liveactivity","aps":{"event":"start"}"#,
            "push_channel.ios.aps.event is invalid: \"start\", must be update or end"
        ),
        (
            #""type":"liveactivity","aps":{"event":"end"}"#, "push_channel.ios.aps.content-state cannot be null"
        ),
        (
            #""type":"liveactivity","aps":{"event":"end","content-state":[]}"#,
            "push_channel.ios.aps.content-state type error: must be an object"
        ),
        (
            #""type":"liveactivity","aps":{"event":"end","content-state":{}}"#,
            "push_channel.ios.aps.timestamp can not be empty"
        ),
        (#""type":"x""#, "push_channel.ios.type is invalid: \"x\", must be notify, voip or liveactivity"),
        (#""multimedia":{}"#, "push_channel.ios.multimedia type error: must be an array of objects"),
        (#""multimedia":[1]"#, "push_channel.ios.multimedia type error: must be an array of objects"),
        (#""multimedia":[{"type":1}]"#, "push_channel.ios.multimedia.url can not be empty"),
        (#""multimedia":[{"url":"u"}]"#, "push_channel.ios.multimedia.type can not be empty"),
        (
            #""multimedia":[{"url":"u","type":4}]"#, "push_channel.ios.multimedia.type is invalid: 4, must be 1 to 3"
        ),
        (
            #""multimedia":[{"url":"u","type":1},{"url":"u","type":1},{"url":"u","type":1},{"url":"u","type":1}]"#,
            "push_channel.ios.multimedia size over limit: at most 3"
        ),
        (#""multimedia":[{"url":"u","type":1}]"#, "push_channel.ios.aps.alert cannot be null"),
        (#""type":1"#, "push_channel.ios.type type error: must be a string"),
        (#""payload":{}"#, "push_channel.ios.payload type error: must be a string"),
        (#""payload":"p""#, "push_channel.ios.aps.alert cannot be null"),
        (#""apns-collapse-id":"c""#, "push_channel.ios.aps.alert cannot be null"),
        (#""aps":{"sound":"s"}"#, "push_channel.ios.aps.alert cannot be null"),
        (#""aps":[1]"#, "push_channel.ios.aps type error: must be an object"),
        (#""aps":{"alert":"text"}"#, "push_channel.ios.aps.alert type error: must be an object"),
        (#""aps":{"alert":{}}"#, "push_channel.ios.aps.alert can not be empty"),
        (#""aps":{"alert":{"title":"","loc-args":["a"]}}"#, "push_channel.ios.aps.alert can not be empty"),
        (#""aps":{"alert":{"title":1}}"#, "push_channel.ios.aps.alert.title type error: must be a string"),
        (#""aps":{"alert":{"title":"a","title":"b"}}"#, "contains duplicate push_channel.ios.aps.alert.title"),
        (
            #""aps":{"alert":{"body":"b","loc-args":"a"}}"#,
            "push_channel.ios.aps.alert.loc-args type error: must be an array of strings"
        ),
        (
            #""aps":{"alert":{"body":"b","loc-args":["a",1]}}"#,
            "push_channel.ios.aps.alert.loc-args type error: must be an array of strings"
        ),
        (#""aps":{"content-available":2}"#, "push_channel.ios.aps.content-available is invalid: 2, must be 0 or 1"),
        (
            #""aps":{"content-available":true}"#,
            "push_channel.ios.aps.content-available type error: must be a whole number"
        ),
        (
            #""aps":{"content-available":1,"sound":"s"}"#,
            "push_channel.ios.aps.content-available and push_channel.ios.aps.sound cannot setting at same time"
        ),
        (
            #""aps":{"content-available":1,"category":"s"}"#,
            "push_channel.ios.aps.content-available and push_channel.ios.aps.category cannot setting at same time"
        ),
        (
            #""aps":{"content-available":1,"thread-id":"s"}"#,
            "push_channel.ios.aps.content-available and push_channel.ios.aps.thread-id cannot setting at same time"
        ),
        (
            #""auto_badge":"+""#,
            "push_channel.ios.auto_badge is invalid: \"+\", must be like \"+1\", \"-1\" or \"5\""
        ),
        (
            #""auto_badge":"1234567890""#,
            "push_channel.ios.auto_badge is invalid: \"1234567890\", must be like \"+1\", \"-1\" or \"5\""
        ),
        (#""auto_badge":1"#, "push_channel.ios.auto_badge type error: must be a string"),
        (
            #""apns-collapse-id":"a\nb""#,
            "push_channel.ios.apns-collapse-id is invalid: \"a?b\", must be printable ASCII without spaces at its ends"
        ),
        (
            #""apns-collapse-id":" a""#,
            "push_channel.ios.apns-collapse-id is invalid: \" a\", must be printable ASCII without spaces at its ends"
        ),
    ]

    @Test(arguments: refused.indices)
    func `a wrong alert is refused by the name of the field and its value`(index: Int) {
        let (members, message) = Self.refused[index]
        #expect(PushBody.ios(members).parsed().error?.message == message)
        #expect(PushBody.ios(members).parsed().error?.code == 20001)
    }

    @Test(arguments: [(64, true), (65, false)] as [(Int, Bool)])
    func `a collapse id has up to 64 bytes`(count: Int, isAccepted: Bool) {
        let name = String(repeating: "c", count: count)
        let body = PushBody.ios("\"apns-collapse-id\":\"\(name)\",\"aps\":{\"alert\":{\"body\":\"b\"}}")
        #expect(alert(body)?.collapseID == (isAccepted ? name : nil))
        let error = APIError.overLimit("push_channel.ios.apns-collapse-id", "65 bytes, at most 64")
        #expect(body.parsed().error == (isAccepted ? nil : error))
    }

    @Test func `an APNs payload has up to 4096 bytes, escapes counted`() throws {
        func body(_ count: Int) -> PushBody {
            .aps("\"alert\":{\"body\":\"\(String(repeating: "b", count: count))\\n\"}")
        }
        let frame = try #require(alert(body(0))?.payload.count)
        #expect(alert(body(4096 - frame))?.payload.count == 4096)
        let error = APIError.overLimit("push_channel.ios", "4097 bytes as an APNs payload, at most 4096")
        #expect(body(4097 - frame).parsed().error == error)
    }
}
