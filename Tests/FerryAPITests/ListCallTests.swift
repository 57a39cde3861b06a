internal import FerryAPI
private import FerryAudience
private import FerryCore
internal import Testing

struct ListCallTests {
    private static let cid = "0123456789abcdef0123456789abcdef"
    private static let other = "fedcba9876543210fedcba9876543210"

    private func message(_ body: String) -> Result<ListMessage, APIError> {
        parse(.list(.message), body).flatMap { call in
            guard case .list(.message(let message)) = call else { return .failure(.notFound("")) }
            return .success(message)
        }
    }

    private func targets(_ body: String) -> Result<ListTargets, APIError> {
        parse(.list(.cid), body).flatMap { call in
            guard case .list(.targets(let targets)) = call else { return .failure(.notFound("")) }
            return .success(targets)
        }
    }

    @Test(arguments: ["", #""audience":"all","#, #""audience":{"cid":[1]},"#, #""audience":null,"#])
    func `A content is read whole, whatever stands in audience`(audience: String) throws {
        let body =
            #"{"request_id":"request-0001",\#(audience)"settings":{"ttl":5000},"push_message":{"transmission":"hello"},"#
            + #""push_channel":{"ios":{"type":"notify","aps":{"alert":{"title":"T"}}}}}"#
        let message = try message(body).get()
        #expect(message.requestID == "request-0001")
        #expect(message.payload == Array("hello".utf8))
        #expect(message.ttl == .milliseconds(5_000))
        #expect(message.alert != nil)
    }

    @Test func `A content cannot wait`() {
        let body =
            #"{"request_id":"request-0001","settings":{"schedule_time":1790000000000},"push_message":{"transmission":"x"}}"#
        #expect(message(body).failure?.message.contains("settings.schedule_time is invalid") == true)
    }

    @Test func `Devices are read in their order, each once`() throws {
        let list = #"["\#(Self.cid)","\#(Self.other)","\#(Self.cid.uppercased())"]"#
        let targets = try targets(#"{"taskid":"RASL_1231_\#(Self.cid)","audience":{"cid":\#(list)}}"#).get()
        #expect(targets.cids.map(\.description) == [Self.cid, Self.other])
        #expect(!targets.isAsync)
        #expect(targets.taskValue == Identifier128(hex: Self.cid))
        let async = try self.targets(#"{"taskid":"x","is_async":"true","audience":{"cid":["\#(Self.cid)"]}}"#).get()
        #expect(async.isAsync)
    }

    @Test(arguments: ["x", "", "RASL_1231_", "RASL_1231_0123", "RASL_1231_zz23456789abcdef0123456789abcdef", "é"])
    func `What can be no task's id names no task`(text: String) {
        #expect(ListTargets(task: text, cids: [], isAsync: false).taskValue == nil)
    }

    static let refused: [(String, String)] = [
        (#"{"audience":{"cid":["\#(cid)"]}}"#, "taskid can not be empty"),
        (#"{"taskid":"x"}"#, "audience cannot be null"),
        (#"{"taskid":"x","audience":"all"}"#, "audience type error"),
        (#"{"taskid":"x","audience":{}}"#, "audience.cid cannot be null"),
        (#"{"taskid":"x","audience":{"alias":["a"]}}"#, "audience.alias is invalid"),
        (#"{"taskid":"x","audience":{"cid":[]}}"#, "audience.cid can not be empty"),
        (#"{"taskid":"x","audience":{"cid":"\#(cid)"}}"#, "audience.cid type error"),
        (#"{"taskid":"x","audience":{"cid":[1]}}"#, "audience.cid type error"),
        (#"{"taskid":"x","audience":{"cid":["nobody"]}}"#, #"target user is invalid: cid "nobody""#),
        (#"{"taskid":"x","audience":{"cid":["\#(cid)"]},"is_async":2}"#, "is_async type error"),
    ]

    @Test(arguments: refused)
    func `A call with a fault is refused by the name of the fault`(body: String, fault: String) {
        let error = targets(body).failure
        #expect(error?.code == 20_001)
        #expect(error?.message.contains(fault) == true, "\(error?.message ?? "taken")")
    }

    @Test func `Names are read in their order, each once, and the detail only where there is an answer`() throws {
        func read(_ more: String) throws -> ListTargets {
            let call = try parse(
                .list(.alias), #"{"taskid":"x","audience":{"alias":["b","a","b"]}\#(more)}"#
            ).get()
            guard case .list(.targets(let targets)) = call else { throw APIError.notFound("") }
            return targets
        }
        #expect(try read("").aliases == ["b", "a"])
        #expect(try read("").cids.isEmpty)
        #expect(try !read("").needsAliasDetail)
        #expect(try read(#","need_alias_detail":true"#).needsAliasDetail)
        #expect(try !read(#","need_alias_detail":true,"is_async":true"#).needsAliasDetail)
    }

    static let refusedNames: [(String, String)] = [
        (#"{"taskid":"x","audience":{}}"#, "audience.alias cannot be null"),
        (#"{"taskid":"x","audience":{"cid":["\#(cid)"]}}"#, "audience.cid is invalid"),
        (#"{"taskid":"x","audience":{"alias":[]}}"#, "audience.alias can not be empty"),
        (#"{"taskid":"x","audience":{"alias":[1]}}"#, "audience.alias type error"),
        (#"{"taskid":"x","audience":{"alias":["a b"]}}"#, #"audience.alias is invalid: "a b""#),
        (#"{"audience":{"alias":["a"]}}"#, "taskid can not be empty"),
    ]

    @Test(arguments: refusedNames)
    func `A call by names with a fault is refused by the name of the fault`(body: String, fault: String) {
        let error = parse(.list(.alias), body).failure
        #expect(error?.code == 20_001)
        #expect(error?.message.contains(fault) == true, "\(error?.message ?? "taken")")
    }

    private func audience(_ route: ListRoute, _ audience: String, _ settings: String = "{}") -> Result<
        ListAudience, APIError
    > {
        let body =
            #"{"request_id":"request-0001","audience":\#(audience),"settings":\#(settings),"push_message":{"transmission":"x"}}"#
        return parse(.list(route), body).flatMap { call in
            guard case .list(.audience(_, let audience)) = call else { return .failure(.notFound("")) }
            return .success(audience)
        }
    }

    @Test func `An audience is read with its conditions and its speed`() throws {
        let tags =
            #"{"tag":[{"key":"phone_type","values":["ios"],"opt_type":"or"},{"key":"custom_tag","values":["a","b"],"opt_type":"not"}]}"#
        let read = try audience(.tag, tags, #"{"speed":"50"}"#).get()
        #expect(read.speed == 50)
        #expect(
            read.expression.conditions == [
                AudienceExpression.Condition(.phoneType, .or, ["ios"]),
                AudienceExpression.Condition(.customTag, .not, ["a", "b"]),
            ])
        let tag = try audience(.fastCustomTag, #"{"fast_custom_tag":"vip"}"#).get()
        #expect(tag.expression == AudienceExpression(tag: "vip"))
        #expect(tag.speed == 0)
        #expect(read.digestInput != tag.digestInput)
        #expect(audience(.tag, #""all""#).failure?.code == 20_001)
        #expect(audience(.tag, "{}").failure?.message == "audience.tag cannot be null")
        #expect(audience(.fastCustomTag, "{}").failure?.message == "audience.fast_custom_tag can not be empty")
        #expect(audience(.tag, tags, #"{"speed":-1}"#).failure?.message.contains("settings.speed is invalid") == true)
    }

    @Test func `The answer by names tells each name's devices`() throws {
        let task = TaskID(try #require(Identifier128(hex: Self.cid)), monthDay: 1231, kind: .list)
        let first = try #require(CID(hex: Self.cid))
        let answer = APIAnswer.list(
            .sentByName(
                task: task, [.init(alias: "a\"b", devices: [.init(cid: first, status: .ignored)])],
                refused: [APIAnswer.RefusedPush(target: "c", reason: "no")]))
        #expect(
            String(decoding: answer.response.body, as: UTF8.self)
                == #"{"code":0,"msg":"success","data":{"RASL_1231_\#(Self.cid)":{"a\"b":{"\#(Self.cid)":"successed_ignore"}},"#
                + #""not_accepted":{"c":{"reason":"no"}}}}"#)
    }

    @Test func `A value that stands twice is looked at once, and phone types are taken in any case`() throws {
        let tags =
            #"{"tag":[{"key":"phone_type","values":["IOS","ios","Android"]},{"key":"custom_tag","values":["a","b","a"],"opt_type":"and"}]}"#
        #expect(
            try audience(.tag, tags).get().expression.conditions == [
                AudienceExpression.Condition(.phoneType, .or, ["ios", "android"]),
                AudienceExpression.Condition(.customTag, .and, ["a", "b"]),
            ])
    }

    @Test func `A thousand devices are taken and one more is not`() throws {
        func list(_ count: Int) -> String {
            (0..<count).map { "\"\(Identifier128(high: 1, low: UInt64($0)).hex)\"" }.joined(separator: ",")
        }
        #expect(try targets(#"{"taskid":"x","audience":{"cid":[\#(list(1_000))]}}"#).get().cids.count == 1_000)
        let error = targets(#"{"taskid":"x","audience":{"cid":[\#(list(1_001))]}}"#).failure
        #expect(error?.message == "audience.cid size over limit: at most 1000 in one call")
    }

    @Test func `The answer names the task, its devices and those that were not accepted`() throws {
        let task = TaskID(try #require(Identifier128(hex: Self.cid)), monthDay: 1231, kind: .list)
        let first = try #require(CID(hex: Self.cid))
        let second = try #require(CID(hex: Self.other))
        let answer = APIAnswer.list(
            .sent(
                task: task, [.init(cid: first, status: .online), .init(cid: second, status: .offline)],
                refused: [APIAnswer.RefusedPush(target: second.description, reason: "no")]))
        #expect(
            String(decoding: answer.response.body, as: UTF8.self)
                == #"{"code":0,"msg":"success","data":{"RASL_1231_\#(Self.cid)":{"\#(Self.cid)":"successed_online","#
                + #""\#(Self.other)":"successed_offline"},"not_accepted":{"\#(Self.other)":"no"}}}"#)
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
