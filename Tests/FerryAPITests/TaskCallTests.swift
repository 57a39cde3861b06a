internal import FerryAPI
internal import FerryCore
internal import Testing

struct TaskCallTests {
    private func read(_ method: String, _ target: String) throws -> Result<APIRequest, APIError>? {
        guard let request = decode("\(method) \(target) HTTP/1.1\r\nHost: a\r\n\r\n").first?.request else { return nil }
        return APIRouter.match(request).flatMap { APIRequestParser(limits: APILimits()).parse($0, request) }
    }

    @Test func `A stop names a task of an app`() throws {
        let task = TaskID(Identifier128(high: 1, low: 2), monthDay: 1_130, kind: .app)
        #expect(try read("DELETE", "/v2/demo/task/\(task)")?.get() == .task(.stop(task)))
        #expect(try read("DELETE", "/v2/demo/task/\(task)/")?.get() == .task(.stop(task)))
    }

    @Test(arguments: [
        "RASX_1130_00000000000000010000000000000002",
        "RASA_113_000000000000000100000000000000021", "RASA_1130_0000000000000001000000000000000g",
        "RASA-1130_00000000000000010000000000000002", "RASA_11a0_00000000000000010000000000000002", "a",
    ])
    func `What is none is refused with the field and the value`(text: String) throws {
        guard case .failure(let error)? = try read("DELETE", "/v2/demo/task/\(text)") else {
            Issue.record("taken")
            return
        }
        #expect(error.code == 20_001)
        #expect(error.message.contains("taskid is invalid") && error.message.contains(text.prefix(9)))
    }

    @Test func `Another method is told which to use`() throws {
        let task = TaskID(Identifier128(high: 1, low: 2), monthDay: 1_130, kind: .app)
        guard case .failure(let error)? = try read("GET", "/v2/demo/task/\(task)") else {
            Issue.record("taken")
            return
        }
        #expect(error.code == 405 && error.allow == "DELETE")
    }

    @Test(arguments: TaskID.Kind.allCases)
    func `A task's text is read as what it was written from`(kind: TaskID.Kind) {
        let task = TaskID(Identifier128(high: .max, low: 7), monthDay: 101, kind: kind)
        #expect(TaskID(task.description) == task)
    }
}

extension TaskCallTests {
    private func push(_ settings: String, padding: Int = 0) throws -> Result<APIRequest, APIError>? {
        let body =
            #"{"request_id":"request-00","audience":"all","settings":\#(settings),"#
            + #""push_message":{"transmission":"hello"},"unknown":"\#(String(repeating: "x", count: padding))"}"#
        let head = "POST /v2/demo/push/all HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        guard let request = decode(head + body).first?.request else { return nil }
        return APIRouter.match(request).flatMap { APIRequestParser(limits: APILimits()).parse($0, request) }
    }

    @Test(arguments: ["1700000000000", #""1700000000000""#])
    func `A push for a later time is kept with its body, and read from it again`(time: String) throws {
        guard case .schedule(let push)? = try push(#"{"schedule_time":\#(time),"ttl":5}"#)?.get() else {
            Issue.record("no schedule")
            return
        }
        let at = Instant(milliseconds: 1_700_000_000_000)
        #expect(push.releaseAt == at && push.kind == .all)
        guard case .all(let content) = push.content else {
            Issue.record("not to all")
            return
        }
        #expect(content.scheduledAt == at && content.ttl == .milliseconds(5))
        let again = try APIRequestParser(limits: APILimits()).stored(.all, push.body).get()
        #expect(again == push.content && again.transmission == Array("hello".utf8))
        #expect(APIRequestParser(limits: APILimits(payloadCharacters: 4)).stored(.all, push.body).isFailure)
        #expect(push.check(now: at + .milliseconds(-1)) == nil)
        #expect(push.check(now: at)?.message.contains("settings.schedule_time is invalid") == true)
        #expect(push.check(now: at + .seconds(-7 * 86_400)) == nil)
        #expect(push.check(now: at + .seconds(-7 * 86_400) + .milliseconds(-1))?.code == 20_001)
    }

    @Test func `Another time is another content`() throws {
        var digests: Set<[UInt8]> = []
        for settings in [#"{"ttl":5}"#, #"{"ttl":5,"schedule_time":1}"#, #"{"ttl":5,"schedule_time":2}"#] {
            switch try push(settings)?.get() {
            case .pushAll(let push): digests.insert(push.contentDigestInput)
            case .schedule(let later):
                if case .all(let push) = later.content { digests.insert(push.contentDigestInput) }
            default: Issue.record("no push")
            }
        }
        #expect(digests.count == 3)
    }

    @Test(arguments: [
        ("tag", #"{"tag":[{"key":"custom_tag","values":["a"],"opt_type":"or"}]}"#, ScheduledKind.tag),
        ("fast_custom_tag", #"{"fast_custom_tag":"a"}"#, .fastCustomTag),
    ])
    func `So is a push to an audience`(path: String, audience: String, kind: ScheduledKind) throws {
        let body =
            #"{"request_id":"request-00","audience":\#(audience),"settings":{"schedule_time":"1700000000000"},"#
            + #""push_message":{"transmission":"hello"}}"#
        let head = "POST /v2/demo/push/\(path) HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        let request = try #require(decode(head + body).first?.request)
        let parser = APIRequestParser(limits: APILimits())
        let read = try APIRouter.match(request).flatMap { parser.parse($0, request) }.get()
        guard case .schedule(let push) = read else {
            Issue.record("no schedule")
            return
        }
        #expect(push.kind == kind && push.releaseAt == Instant(milliseconds: 1_700_000_000_000))
        #expect(try parser.stored(kind, push.body).get() == push.content)
        #expect(push.content.requestID == "request-00" && push.content.transmission == Array("hello".utf8))
    }

    @Test func `A body that is too large to be kept is refused`() throws {
        guard case .failure(let error)? = try push(#"{"schedule_time":1}"#, padding: ScheduledPush.bodyBytes) else {
            Issue.record("taken")
            return
        }
        #expect(error.code == 20_001 && error.message.contains("body size over limit"))
    }

    @Test func `A schedule is asked for and cancelled by its path`() throws {
        let task = TaskID(Identifier128(high: 1, low: 2), monthDay: 1_130, kind: .app)
        #expect(try read("GET", "/v2/demo/task/schedule/\(task)")?.get() == .task(.schedule(task)))
        #expect(try read("DELETE", "/v2/demo/task/schedule/\(task)")?.get() == .task(.cancel(task)))
        for (method, target, code) in [
            ("GET", "/v2/demo/task/schedule/a", 22_002), ("DELETE", "/v2/demo/task/schedule/a", 22_002),
            ("POST", "/v2/demo/task/schedule/\(task)", 405), ("DELETE", "/v2/demo/task/schedule", 404),
        ] {
            guard case .failure(let error)? = try read(method, target) else {
                Issue.record("taken: \(target)")
                continue
            }
            #expect(error.code == code)
        }
    }

    @Test func `A schedule is told in the words of both kinds of clients`() throws {
        let task = TaskID(Identifier128(high: 1, low: 2), monthDay: 1_130, kind: .app)
        let view = ScheduleView(
            task: task, state: .waiting, createdAt: Instant(milliseconds: 5), releaseAt: Instant(milliseconds: 6),
            payload: Array("hello".utf8))
        let text = String(decoding: APIAnswer.task(.schedule(view)).response.body, as: UTF8.self)
        #expect(
            text == #"{"code":0,"msg":"success","data":{"\#(task)":{"create_time":"5","push_time":"6","#
                + #""status":"waiting","send_result":"do_not_send","transmission_content":"hello"}}}"#)
    }
}

extension Result {
    fileprivate var isFailure: Bool { if case .failure = self { true } else { false } }
}
