internal import FerryAPI
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
                refused: [APIAnswer.RefusedPush(cid: second, reason: "no")]))
        #expect(
            String(decoding: answer.response.body, as: UTF8.self)
                == #"{"code":0,"msg":"success","data":{"RASL_1231_\#(Self.cid)":{"\#(Self.cid)":"successed_online","#
                + #""\#(Self.other)":"successed_offline"},"not_accepted":{"\#(Self.other)":"no"}}}"#)
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
