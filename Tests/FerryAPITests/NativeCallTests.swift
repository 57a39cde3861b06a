internal import FerryAPI
private import FerryAudience
private import FerryCore
internal import Testing

struct NativeCallTests {
    private static let cid = "00112233445566778899aabbccddeeff"
    private static let other = "ffeeddccbbaa99887766554433221100"

    private func parse(
        _ body: String, query: String = "", type: String = "application/json", key: String? = nil
    ) -> Result<APIRequest, APIError> {
        let keyLine = key.map { "Idempotency-Key: \($0)\r\n" } ?? ""
        let text = "POST /v1/demo/push?\(query) HTTP/1.1\r\nHost: a\r\nContent-Type: \(type)\r\n\(keyLine)"
        guard let request = decode(text + "Content-Length: \(body.utf8.count)\r\n\r\n" + body).first?.request,
            case .success(let route) = APIRouter.match(request)
        else { return .failure(.notFound("")) }
        return APIRequestParser(limits: APILimits()).parse(route, request)
    }

    private func bytes(_ body: String, _ query: String, key: String? = nil) -> Result<APIRequest, APIError> {
        parse(body, query: query, type: "application/octet-stream", key: key)
    }

    private func pushes(_ result: Result<APIRequest, APIError>) -> [SinglePush]? {
        guard case .success(.pushBatch(let batch)) = result else { return nil }
        #expect(batch.isNative)
        #expect(!batch.isAsync)
        return batch.pushes
    }

    @Test(
        arguments: [
            ("POST", "/v1/demo/push?a=b", .native(.push(query: "a=b"))),
            ("GET", "/v1/demo/messages/m?cid=c", .native(.message(id: "m", query: "cid=c"))),
            ("GET", "/v1/demo/devices/c", .native(.device(cid: "c"))),
        ] as [(String, String, APIRoute.Call)])
    func `each call has its path and wants a token`(method: String, target: String, call: APIRoute.Call) throws {
        let request = try #require(decode("\(method) \(target) HTTP/1.1\r\nHost: a\r\n\r\n").first?.request)
        let route = try APIRouter.match(request).get()
        #expect(route == APIRoute(call: call, appID: "demo"))
        #expect(route.requiresToken)
        #expect(route.takesBytes == (method == "POST"))
    }

    @Test func `what this call would not do is refused and not left out`() throws {
        let device = #""audience":{"cid":["\#(Self.cid)"]}"#
        let tag = #""audience":{"tag":[{"key":"custom_tag","values":["vip"]}]}"#
        func push(_ audience: String, _ settings: String) -> Result<APIRequest, APIError> {
            parse(#"{"request_id":"0123456789","payload":"x",\#(audience),"settings":{\#(settings)}}"#)
        }
        for audience in [device, tag, #""audience":"all""#] {
            #expect(
                push(audience, #""schedule_time":"soon""#).error?.message
                    == "settings.schedule_time is invalid: this call pushes at once")
            #expect(push(audience, #""schedule_time":null"#).error == nil)
        }
        #expect(push(device, #""speed":10"#).error?.message.hasPrefix("settings.speed is invalid") == true)
        guard case .success(.list(.audience(_, let audience))) = push(tag, #""speed":"10""#) else {
            Issue.record("a push to an audience")
            return
        }
        #expect(audience.speed == 10)
    }

    @Test func `too many of anything is 413, in a list too`() throws {
        let values = (0...200).map { "\"\($0)\"" }.joined(separator: ",")
        let error = parse(
            #"{"request_id":"0123456789","payload":"x","audience":{"tag":[{"key":"custom_tag","values":[\#(values)]}]}}"#
        ).error
        #expect(error?.message.contains("(in audience.tag[0])") == true)
        #expect(error?.nativeStatus == 413)
    }

    @Test func `both forms of a push say the same`() throws {
        let json = pushes(
            parse(
                #"{"request_id":"0123456789","audience":{"cid":["\#(Self.cid)"]},"payload_base64":"AP8Q","settings":{"ttl":5}}"#
            ))
        let text = pushes(
            parse(#"{"audience":{"cid":["\#(Self.cid)"]},"payload":"abc","settings":{"ttl":"5"}}"#, key: "0123456789"))
        let raw = pushes(bytes("abc", "cid=\(Self.cid)&ttl=5&request_id=0123456789"))
        #expect(json?.first?.payload == [0, 255, 16])
        #expect(json?.first?.ttl == .milliseconds(5))
        #expect(json?.first?.requestID == "0123456789")
        #expect(text == raw)
        #expect(raw?.count == 1)
    }

    @Test func `a push for several devices is one push each, and each device counts once`() {
        let list = "\(Self.cid),\(Self.other),\(Self.cid.uppercased())"
        let found = pushes(bytes("x", "cid=\(list)&request_id=0123456789"))
        #expect(found?.map(\.cid.description) == [Self.cid, Self.other])
        #expect(Set(found?.map(\.requestID) ?? []) == ["0123456789"])
    }

    @Test func `the query's percent signs are undone`() {
        let found = pushes(bytes("x", "cid=\(Self.cid)%2c\(Self.other)&request_id=a%20b%2Bc+%E4%BD%A0-----&x=%zz"))
        #expect(found?.first?.requestID == "a b+c+你-----")
        #expect(found?.count == 2)
    }

    @Test func `a push for all is a broadcast of bytes`() {
        guard case .success(.pushAll(let push)) = bytes("\u{0}", "audience=all", key: "0123456789") else {
            Issue.record("no broadcast")
            return
        }
        #expect(push.payload == [0])
        #expect(push.requestID == "0123456789")
    }

    @Test func `a dry run needs neither id nor payload`() {
        #expect(
            parse(#"{"dry_run":true,"audience":{"cid":["\#(Self.cid)"]}}"#)
                == .success(.native(.dryRun(.devices([CID(hex: Self.cid)].compactMap { $0 })))))
        #expect(
            bytes("", "dry_run=true&audience=all") == .success(.native(.dryRun(.audience(AudienceExpression())))))
        let tags = #"{"dry_run":"true","audience":{"tag":[{"key":"custom_tag","values":["vip"]}]}}"#
        #expect(parse(tags) == .success(.native(.dryRun(.audience(AudienceExpression(tag: "vip"))))))
    }

    @Test func `a push for those that meet conditions is one content for an audience`() {
        let body =
            #"{"request_id":"0123456789","payload_base64":"AP8Q","audience":{"tag":[{"key":"custom_tag","values":["vip"]}]}}"#
        guard case .success(.list(.audience(let message, let audience))) = parse(body) else {
            Issue.record("no push to an audience")
            return
        }
        #expect(message.payload == [0, 255, 16])
        #expect(audience == ListAudience(AudienceExpression(tag: "vip"), speed: 0))
    }

    @Test(
        arguments: [
            (#"{"audience":{"cid":["CID"]},"payload":"x"}"#, 400, "request_id can not be empty"),
            (#"{"request_id":"short","audience":{"cid":["CID"]},"payload":"x"}"#, 400, "request_id is invalid"),
            (#"{"request_id":"0123456789","payload":"x"}"#, 400, "audience cannot be null"),
            (#"{"request_id":"0123456789","audience":{},"payload":"x"}"#, 400, "audience.cid cannot be null"),
            (#"{"request_id":"0123456789","audience":{"cid":[]},"payload":"x"}"#, 400, "cid can not be empty"),
            (
                #"{"request_id":"0123456789","audience":{"cid":["CID"],"tag":[]},"payload":"x"}"#, 400,
                "choose one of audience.cid and audience.tag"
            ),
            (#"{"request_id":"0123456789","audience":{"tag":[]},"payload":"x"}"#, 400, "audience.tag can not be empty"),
            (#"{"request_id":"0123456789","audience":"some","payload":"x"}"#, 400, "audience is invalid"),
            (#"{"request_id":"0123456789","audience":7,"payload":"x"}"#, 400, "audience type error"),
            (#"{"request_id":"0123456789","audience":{"cid":["no"]},"payload":"x"}"#, 404, "target user is invalid"),
            (#"{"request_id":"0123456789","audience":{"cid":["CID"]}}"#, 400, "payload can not be empty"),
            (#"{"request_id":"0123456789","audience":{"cid":["CID"]},"payload":""}"#, 400, "payload can not be empty"),
            (#"{"request_id":"0123456789","audience":{"cid":["CID"]},"payload":7}"#, 400, "payload type error"),
            (
                #"{"request_id":"0123456789","audience":{"cid":["CID"]},"payload":"x","payload_base64":"YQ=="}"#, 400,
                "choose one of payload and payload_base64"
            ),
            (
                #"{"request_id":"0123456789","audience":{"cid":["CID"]},"payload_base64":"YR=="}"#, 400,
                "payload_base64 is invalid"
            ),
            (
                #"{"request_id":"0123456789","audience":{"cid":["CID"]},"payload":"x","settings":{"ttl":-2}}"#, 400,
                "settings.ttl is invalid"
            ),
            (
                #"{"request_id":"0123456789","audience":"all","payload":"x","settings":{"ttl":-1},"push_channel":{"ios":{"aps":{"alert":{"body":"b"}}}}}"#,
                400, "push_channel.ios is invalid"
            ),
        ] as [(String, Int, String)])
    func `what is wrong is said by its field`(body: String, status: Int, message: String) {
        let error = parse(body.replacing("CID", with: Self.cid)).error
        #expect(error?.nativeStatus == status)
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "taken")")
    }

    @Test(
        arguments: [
            ("request_id=0123456789", "cid cannot be null"),
            ("cid=CID&audience=all&request_id=0123456789", "choose one of cid and audience"),
            ("cid=CID&cid=CID&request_id=0123456789", "contains duplicate cid"),
            ("cid=CID&request_id=%zz", "request_id is invalid"), ("cid=CID&request_id=%ff", "request_id is invalid"),
            ("cid=&request_id=0123456789", "cid can not be empty"), ("cid=CID&request_id=", "request_id is invalid"),
            ("cid=CID&ttl=x&request_id=0123456789", "ttl type error"),
            ("cid=CID&ttl=259200001&request_id=0123456789", "ttl is invalid"),
            ("cid=CID&dry_run=perhaps", "dry_run type error"), ("audience=some", "audience is invalid"),
        ] as [(String, String)])
    func `what is wrong in the query is said by its name`(query: String, message: String) {
        let error = bytes("x", query.replacing("CID", with: Self.cid)).error
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "taken")")
    }

    @Test func `a call does not become many times its own size`() {
        let cids = (0..<1000).map { "\"" + String($0 + 1_000).padded + "\"" }.joined(separator: ",")
        let start = #"{"request_id":"0123456789","audience":{"cid":[\#(cids)]},"payload":""#
        #expect(pushes(parse(start + String(repeating: "x", count: 4_194) + "\"}"))?.count == 1_000)
        let error = parse(start + String(repeating: "x", count: 4_195) + "\"}").error
        #expect(error?.nativeStatus == 413)
        #expect(error?.message == "payload size over limit: 4195 bytes for 1000 devices, at most 4194304 in one call")
        let tooMany = parse(
            #"{"request_id":"0123456789","audience":{"cid":[\#(cids),"\#(Self.cid)"]},"payload":"x"}"#)
        #expect(tooMany.error?.message == "audience.cid size over limit: at most 1000 in one call")
    }

    @Test func `each refusal has the status that says most under v1, and GeTui's elsewhere`() {
        for (error, own, theirs) in [
            (.tokenInvalid, 401, 401), (.signInvalid, 400, 400), (.targetInvalid("x"), 404, 400),
            (.appInvalid("x"), 404, 400), (.requestIDReused("x"), 409, 400), (.overLimit("x", "y"), 413, 400),
            (.busy(retryAfterSeconds: 1), 503, 403), (.starting, 503, 200), (.notJSON(.empty), 400, 200),
            (.notFound("/"), 404, 404), (.methodNotAllowed(allow: "GET"), 405, 405),
            (APIError(code: 30019, message: "the device is full"), 429, 403),
            (APIError(code: 10003, message: "too often"), 429, 401),
        ] as [(APIError, Int, Int)] {
            #expect(error.nativeResponse.status == own)
            #expect(error.response.status == theirs)
            #expect(error.nativeResponse.body == error.response.body)
        }
    }

    @Test func `answers are one JSON object each`() throws {
        let cid = try #require(CID(hex: Self.cid))
        let task = TaskID(Identifier128(high: 0, low: 255), monthDay: 1130, kind: .single)
        func text(_ answer: NativeAnswer) -> String {
            String(decoding: APIAnswer.native(answer).response.body, as: UTF8.self)
        }
        #expect(
            text(
                .pushed(
                    [.init(task: task, cid: cid, status: .offline)],
                    refused: [.init(target: cid.description, reason: "\"")]))
                == #"{"code":0,"msg":"success","data":{"messages":[{"cid":"\#(Self.cid)","taskid":"#
                + #""RASS_1130_000000000000000000000000000000ff","status":"offline"}],"#
                + #""not_accepted":[{"cid":"\#(Self.cid)","reason":"\""}]}}"#)
        var census = DeviceCensus()
        census.online = 1
        census.offline = 2
        census.withoutToken = 1
        census.muted = 2
        var other = census
        other.unknown = [cid]
        census.add(other)
        #expect(
            text(.census(census))
                == #"{"code":0,"msg":"success","data":{"devices":6,"online":2,"offline":4,"without_token":2,"#
                + #""muted":4,"blocked":0,"unknown":["\#(Self.cid)"]}}"#)
    }
}

extension String {
    /// 32 digits.
    fileprivate var padded: String { String(repeating: "0", count: 32 - utf8.count) + self }
}
