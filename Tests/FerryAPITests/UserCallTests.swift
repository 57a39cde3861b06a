internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import Testing

private let first = "00112233445566778899aabbccddeeff"
private let second = "ffeeddccbbaa99887766554433221100"

@Suite struct UserCallTests {
    private func device(_ text: String) throws -> CID { try #require(CID(hex: text)) }

    private func match(_ method: String, _ target: String) -> Result<APIRoute, APIError>? {
        decode("\(method) \(target) HTTP/1.1\r\nHost: a\r\n\r\n").first?.request.map(APIRouter.match)
    }

    private func call(_ route: UserRoute, _ body: String = "null", _ limits: APILimits = APILimits()) throws -> UserCall
    {
        guard case .user(let call) = try parse(.user(route), body, limits: limits).get() else {
            throw APIError.notFound("")
        }
        return call
    }

    private func message(_ route: UserRoute, _ body: String = "null") -> String? {
        let error = parse(.user(route), body).error
        #expect(error.map { $0.code == 20001 && $0.httpStatus == 400 } ?? true)
        return error?.message
    }

    @Test func `a device that is named twice in two spellings is one`() throws {
        #expect(
            try call(.detail(cids: "\(second),\(second.uppercased()),x,x")) == .detail([device(second)], invalid: ["x"])
        )
    }

    @Test func `an empty phone type takes it back`() throws {
        var profile = DeviceProfile()
        profile.phoneType = .ios
        guard case .setProfile(_, let change) = try call(.setProfile(cid: first), #"{"phone_type":""}"#),
            case .setProfile(_, let none) = try call(.setProfile(cid: first), #"{"region":"1"}"#)
        else { throw APIError.notFound("") }
        none.apply(to: &profile)
        #expect(profile.phoneType == .ios)
        change.apply(to: &profile)
        #expect(profile.phoneType == nil)
    }

    // MARK: - Paths

    @Test(
        arguments: [
            ("POST", "/v2/demo/user/alias", .bindAliases), ("DELETE", "/v2/demo/user/alias", .unbindAliases),
            ("DELETE", "/v2/demo/user/alias/%E5%BC%A0%E4%B8%89", .dropAlias("张三")),
            ("GET", "/v2/demo/user/alias/cid/a", .aliasOfDevice("a")),
            ("GET", "/v2/demo/user/cid/alias/ann", .devicesOfAlias("ann")),
            ("POST", "/v2/demo/user/custom_tag/cid/a", .setTags(cid: "a")),
            ("GET", "/v2/demo/user/custom_tag/cid/a", .tags(cid: "a")),
            ("PUT", "/v2/demo/user/custom_tag/batch/a%2Fb", .tagDevices(tag: "a/b")),
            ("DELETE", "/v2/demo/user/custom_tag/batch/vip", .untagDevices(tag: "vip")),
            ("POST", "/v2/demo/user/black/cid/a,b", .block(cids: "a,b")),
            ("DELETE", "/v2/demo/user/black/cid/a,b", .unblock(cids: "a,b")),
            ("GET", "/v2/demo/user/deviceStatus/a,b", .deviceStatus(cids: "a,b")),
            ("GET", "/v2/demo/user/detail/a,b", .detail(cids: "a,b")),
            ("POST", "/v2/demo/user/badge/cid/a,b", .badge(cids: "a,b")), ("POST", "/v2/demo/user/count", .count),
            ("PUT", "/v1/demo/devices/a/profile", .setProfile(cid: "a")),
            ("DELETE", "/v1/demo/devices/a", .erase(cid: "a")),
            ("POST", "/v2/demo/push/single/alias", .pushAlias),
            ("POST", "/v2/demo/push/single/batch/alias", .pushAliasBatch),
        ] as [(String, String, UserRoute)])
    func `each call has its path, with or without a slash at the end`(
        method: String, target: String, route: UserRoute
    ) throws {
        for target in [target, target + "/"] {
            let found = try #require(try match(method, target)?.get())
            #expect(found == APIRoute(call: .user(route), appID: "demo") && found.requiresToken)
        }
    }

    @Test(
        arguments: [
            ("GET", "/v2/demo/user/alias", "POST, DELETE"), ("POST", "/v2/demo/user/alias/ann", "DELETE"),
            ("PUT", "/v2/demo/user/custom_tag/cid/a", "GET, POST"),
            ("POST", "/v2/demo/user/custom_tag/batch/vip", "PUT, DELETE"),
            ("GET", "/v2/demo/user/black/cid/a", "POST, DELETE"),
            ("GET", "/v2/demo/user/count", "POST"), ("POST", "/v2/demo/user/detail/a", "GET"),
            ("POST", "/v1/demo/devices/a/profile", "PUT"), ("GET", "/v2/demo/push/single/alias", "POST"),
        ] as [(String, String, String)])
    func `another method is told which ones there are`(method: String, target: String, allow: String) throws {
        let error = try #require(match(method, target)?.error)
        #expect(error.code == 405 && error.allow == allow)
    }

    @Test(arguments: [
        "/v2/demo/user", "/v2/demo/user/alias/cid/a/b", "/v2/demo/user/cid/alias", "/v2/demo/user/custom_tag/cid",
        "/v2/demo/user/black/a", "/v2/demo/user/badge/a", "/v2/demo/user/count/a", "/v2//user/count",
        "/v1/demo/devices", "/v1/demo/user/count",
    ]) func `another path is nowhere`(target: String) throws {
        #expect(match("POST", target)?.error?.code == 404)
    }

    // MARK: - Aliases

    @Test func `aliases are read`() throws {
        let body =
            #"{"data_list":[{"cid":"\#(first)","alias":"Ann_1","alias_type":null},{"cid":"\#(second)","alias":"张三"}]}"#
        let bindings = [
            AliasDirectory.Binding(cid: try device(first), alias: "Ann_1"),
            AliasDirectory.Binding(cid: try device(second), alias: "张三"),
        ]
        #expect(try call(.bindAliases, body) == .bindAliases(bindings))
        #expect(try call(.unbindAliases, body) == .unbindAliases(bindings))
    }

    @Test(
        arguments: [
            ("null", "data_list cannot be null"), (#"{"data_list":null}"#, "data_list cannot be null"),
            (#"{"data_list":{}}"#, "data_list type error"), (#"{"data_list":[]}"#, "data_list can not be empty"),
            (#"{"data_list":[1]}"#, "(in data_list[0])"), (#"[]"#, "body type error"),
            (#"{"data_list":[{"alias":"ann"}]}"#, "cid cannot be null (in data_list[0])"),
            (#"{"data_list":[{"cid":"x","alias":"ann"}]}"#, #"target user is invalid: cid "x" (in data_list[0])"#),
            (#"{"data_list":[{"cid":"\#(first)"}]}"#, "alias cannot be null (in data_list[0])"),
            (#"{"data_list":[{"cid":"\#(first)","alias":""}]}"#, "alias can not be empty (in data_list[0])"),
            (
                #"{"data_list":[{"cid":"\#(first)","alias":"a"},{"cid":"\#(first)","alias":"a b"}]}"#,
                #"alias is invalid: "a b""#
            ),
            (#"{"data_list":[{"cid":"\#(first)","alias":"a-b"}]}"#, #"alias is invalid: "a-b""#),
            (#"{"data_list":[{"cid":"\#(first)","alias":"é"}]}"#, "alias is invalid"),
            // A character that only stands for another, which it equals.
            (#"{"data_list":[{"cid":"\#(first)","alias":"\#u{f900}"}]}"#, "alias is invalid"),
            (#"{"data_list":[{"cid":"\#(first)","alias":1}]}"#, "alias type error"),
        ] as [(String, String)])
    func `what is wrong with an alias is said with its place`(body: String, part: String) throws {
        let found = try #require(message(.bindAliases, body))
        #expect(found.contains(part), "\(found)")
    }

    @Test func `an alias has fewer than forty characters, whatever their bytes`() throws {
        for character in ["a", "张", "𠀀"] {
            let longest = String(repeating: character, count: 39)
            #expect(try call(.devicesOfAlias(longest)) == .devicesOfAlias(longest))
            #expect(message(.devicesOfAlias(longest + character))?.contains("size over limit") == true)
        }
    }

    @Test func `a call has at most a thousand entries`() throws {
        func body(_ count: Int) -> String {
            let entries = Array(repeating: #"{"cid":"\#(first)","alias":"a"}"#, count: count)
            return #"{"data_list":[\#(entries.joined(separator: ","))]}"#
        }
        #expect(message(.bindAliases, body(1_000)) == nil)
        #expect(message(.bindAliases, body(1_001)) == "data_list size over limit: at most 1000 in one call")
    }

    // MARK: - Tags

    @Test func `tags are read, each once`() throws {
        let body = #"{"custom_tag":["vip","会员","vip"]}"#
        #expect(try call(.setTags(cid: first), body) == .setTags(try device(first), ["vip", "会员"]))
        #expect(try call(.setTags(cid: first), #"{"custom_tag":[]}"#) == .setTags(try device(first), []))
        let devices = #"{"cid":["\#(first)","\#(second)","\#(first)"]}"#
        #expect(
            try call(.tagDevices(tag: "a/b"), devices)
                == .tagDevices("a/b", [try device(first), try device(second)], isSet: true))
        #expect(
            try call(.untagDevices(tag: "a/b"), devices)
                == .tagDevices("a/b", [try device(first), try device(second)], isSet: false))
    }

    @Test(
        arguments: [
            (.setTags(cid: first), "null", "custom_tag cannot be null"),
            (.setTags(cid: "x"), #"{"custom_tag":["a"]}"#, "target user is invalid"),
            (.setTags(cid: first), #"{"custom_tag":["a",""]}"#, "custom_tag[1] can not be empty"),
            (.setTags(cid: first), #"{"custom_tag":["a b"]}"#, "custom_tag[0] is invalid"),
            (.setTags(cid: first), #"{"custom_tag":["a\u3000b"]}"#, "custom_tag[0] is invalid"),
            (.setTags(cid: first), #"{"custom_tag":["a\u0001"]}"#, "custom_tag[0] is invalid"),
            (.setTags(cid: first), #"{"custom_tag":"a"}"#, "custom_tag type error"),
            (
                .setTags(cid: first), #"{"custom_tag":["\#(String(repeating: "x", count: 33))"]}"#,
                "custom_tag[0] size over limit"
            ),
            (.tagDevices(tag: "a b"), #"{"cid":["\#(first)"]}"#, "custom_tag is invalid"),
            (.tagDevices(tag: "a"), "null", "cid cannot be null"),
            (.tagDevices(tag: "a"), #"{"cid":[]}"#, "cid can not be empty"),
            (.untagDevices(tag: "a"), #"{"cid":["y"]}"#, #"target user is invalid: cid "y""#),
        ] as [(UserRoute, String, String)])
    func `what is wrong with tags is said`(route: UserRoute, body: String, part: String) throws {
        let found = try #require(message(route, body))
        #expect(found.contains(part), "\(found)")
    }

    @Test func `a device has at most so many tags, and so many characters of them`() throws {
        func body(_ count: Int, _ width: Int) -> String {
            let tags = (0..<count).map { number in
                let digits = String(number)
                return "\"" + String(repeating: "t", count: width - digits.count) + digits + "\""
            }
            return #"{"custom_tag":[\#(tags.joined(separator: ","))]}"#
        }
        let route = UserRoute.setTags(cid: first)
        #expect(message(route, body(100, 5)) == nil)
        #expect(message(route, body(101, 5))?.contains("101 tags, at most 100") == true)
        #expect(message(route, body(16, 32)) == nil)
        #expect(message(route, body(17, 32))?.contains("544 characters together, at most 512") == true)
        var limits = APILimits()
        limits.users.tags = 2
        #expect(parse(.user(route), body(3, 5), limits: limits).error?.message.contains("at most 2") == true)
    }

    // MARK: - Devices

    @Test func `devices in a path are read, each once`() throws {
        let both = [try device(first), try device(second)]
        let list = "\(first),\(second),\(first)"
        #expect(try call(.block(cids: list)) == .block(both, isBlocked: true))
        #expect(try call(.unblock(cids: list)) == .block(both, isBlocked: false))
        #expect(try call(.deviceStatus(cids: list)) == .deviceStatus(both))
        #expect(try call(.detail(cids: list + ",x,x")) == .detail(both, invalid: ["x"]))
        #expect(try call(.badge(cids: list), #"{"badge":"+2"}"#) == .badge(both, .add(2)))
        #expect(try call(.badge(cids: first), #"{"badge":5}"#) == .badge([both[0]], .set(5)))
        #expect(try call(.erase(cid: first)) == .erase(both[0]))
        #expect(message(.block(cids: "\(first),")) == "cid can not be empty")
        #expect(message(.block(cids: "x"))?.contains(#"target user is invalid: cid "x""#) == true)
        for (route, limit) in [
            ({ .block(cids: $0) }, 200), ({ .badge(cids: $0) }, 200), ({ .deviceStatus(cids: $0) }, 100),
            ({ .detail(cids: $0) }, 1_000),
        ] as [((String) -> UserRoute, Int)] {
            func list(_ count: Int) -> String { Array(repeating: first, count: count).joined(separator: ",") }
            #expect(message(route(list(limit)), #"{"badge":"1"}"#) == nil)
            #expect(
                message(route(list(limit + 1)), #"{"badge":"1"}"#)?.contains("at most \(limit) in one call") == true)
        }
    }

    @Test(arguments: [
        ("null", "badge cannot be null"), (#"{"badge":"x"}"#, #"badge is invalid: "x""#),
        (#"{"badge":true}"#, "badge type error"), (#"{"badge":"1234567890"}"#, "badge is invalid"),
    ]) func `what is wrong with a badge is said`(body: String, part: String) throws {
        let found = try #require(message(.badge(cids: first), body))
        #expect(found.contains(part), "\(found)")
    }

    @Test func `a profile's members are read, and one at least is there`() throws {
        var change = ProfileChange()
        change.phoneType = .android
        change.region = "11000000"
        change.model = ""
        change.notifications = false
        let body = #"{"phone_type":"android","region":"11000000","phone_model":"","notifications":"false"}"#
        #expect(try call(.setProfile(cid: first), body) == .setProfile(try device(first), change))
        #expect(message(.setProfile(cid: first), "{}")?.contains("cannot be null at sametime") == true)
        #expect(
            message(.setProfile(cid: first), #"{"phone_type":"symbian"}"#)?.contains("must be android, ios or empty")
                == true)
        let long = String(repeating: "r", count: 129)
        #expect(message(.setProfile(cid: first), #"{"region":"\#(long)"}"#)?.contains("region size over limit") == true)
    }

    // MARK: - Audiences

    @Test func `conditions are read`() throws {
        let body =
            #"{"tag":[{"key":"custom_tag","values":["vip"],"opt_type":"and"},{"key":"phone_type","values":["ios"]},{"key":"region","values":["11000000"],"opt_type":"not"}]}"#
        let audience = AudienceExpression([
            AudienceExpression.Condition(.customTag, .and, ["vip"]),
            AudienceExpression.Condition(.phoneType, .or, ["ios"]),
            AudienceExpression.Condition(.region, .not, ["11000000"]),
        ])
        #expect(try call(.count, body) == .count(audience))
    }

    @Test(arguments: [
        ("null", "tag cannot be null"), (#"{"tag":[]}"#, "tag can not be empty"), (#"{"tag":"a"}"#, "tag type error"),
        (#"{"tag":[1]}"#, "(in tag[0])"), (#"{"tag":[{"values":["a"]}]}"#, "key can not be empty (in tag[0])"),
        (#"{"tag":[{"key":"portrait","values":["a"]}]}"#, #"key is invalid: "portrait""#),
        (#"{"tag":[{"key":"region"}]}"#, "values cannot be null"),
        (#"{"tag":[{"key":"region","values":[]}]}"#, "values can not be empty"),
        (#"{"tag":[{"key":"phone_type","values":["symbian"]}]}"#, "must be android or ios"),
        (#"{"tag":[{"key":"custom_tag","values":["a b"]}]}"#, "values is invalid"),
        (#"{"tag":[{"key":"region","values":["a"],"opt_type":"xor"}]}"#, #"opt_type is invalid: "xor""#),
    ]) func `what is wrong with a condition is said with its place`(body: String, part: String) throws {
        let found = try #require(message(.count, body))
        #expect(found.contains(part), "\(found)")
    }

    // MARK: - Pushes to names

    @Test func `a push to a name is read as one to a device, but for its audience`() throws {
        let body = PushBody(audience: #"{"alias":["ann"]}"#).text
        guard case .pushAliases(let pushes) = try call(.pushAlias, body) else {
            Issue.record("no pushes")
            return
        }
        #expect(!pushes.isBatch && pushes.pushes.map(\.alias) == ["ann"])
        #expect(pushes.pushes[0].push.payload == Array("hello".utf8))
        guard
            case .pushAliases(let batch) = try call(
                .pushAliasBatch, #"{"is_async":true,"msg_list":[\#(body),\#(body)]}"#)
        else {
            Issue.record("no batch")
            return
        }
        #expect(batch.isBatch && batch.isAsync && batch.pushes.map(\.alias) == ["ann", "ann"])
    }

    @Test(arguments: [
        (#"{"cid":["\#(first)"]}"#, "audience.cid is invalid: this call takes audience.alias"),
        ("{}", "audience.alias cannot be null"), (#"{"alias":[]}"#, "audience.alias can not be empty"),
        (#"{"alias":["a","b"]}"#, "this call takes exactly 1"), (#"{"alias":"a"}"#, "audience.alias type error"),
        (#"{"alias":["a b"]}"#, "audience.alias is invalid"),
        (#"{"alias":["a"],"cid":["\#(first)"]}"#, "choose one of audience.cid and audience.alias"),
    ]) func `what is wrong with a name that is pushed to is said`(audience: String, part: String) throws {
        let body = PushBody(audience: audience).text
        let found = try #require(message(.pushAlias, body))
        #expect(found.contains(part), "\(found)")
        #expect(message(.pushAliasBatch, #"{"msg_list":[\#(body)]}"#)?.contains("(in msg_list[0])") == true)
    }

    // MARK: - Answers

    @Test func `answers have GeTui's shapes`() throws {
        let cid = try device(first)
        var profile = DeviceProfile()
        profile.model = "iPhone17,1"
        profile.notifications = true
        let detail = UserAnswer.Detail(
            cid: cid, app: try #require(AppID("demo")), package: "com.example.demo", token: "abcd", phoneType: .ios,
            profile: profile, registeredAt: Instant(milliseconds: 1_790_000_000_000))
        for (answer, data) in [
            (.done, ""), (.alias("ann"), #","data":{"alias":"ann"}"#),
            (.devices([cid]), #","data":{"cid":["\#(first)"]}"#), (.devices([]), #","data":{"cid":[]}"#),
            (.tags(cid, ["a", "b"]), #","data":{"\#(first)":["a b"]}"#), (.tags(cid, []), #","data":{"\#(first)":[]}"#),
            (
                .perDevice([UserAnswer.Outcome(cid: cid, isDone: true)]), #","data":{"\#(first)":"true"}"#
            ),
            (
                .deviceStatuses([UserAnswer.Status(cid: cid, isOnline: false, isReachable: true)]),
                #","data":{"\#(first)":{"cid_status":"offline","device_status":"online"}}"#
            ),
            (.count(7), #","data":{"user_count":7}"#),
            (
                .details(found: [detail], invalid: ["x"]),
                #","data":{"invalidCids":["x"],"validCids":{"\#(first)":{"client_app_id":"demo","package_name":"com.example.demo","device_token":"abcd","phone_type":2,"phoneModel":"iPhone17,1","notificationSwitch":true,"createTime":"1790000000000"}}}"#
            ),
        ] as [(UserAnswer, String)] {
            let text = String(decoding: APIAnswer.user(answer).response.body, as: UTF8.self)
            #expect(text == #"{"code":0,"msg":"success"\#(data)}"#)
        }
    }
}
