internal import FerryAPI
private import FerryCore
internal import Testing

struct APIAnswerTests {
    private func text(_ answer: APIAnswer) -> String { String(decoding: answer.response.body, as: UTF8.self) }

    private let cid = CID(Identifier128(high: 1, low: 2))
    private let cidText = "00000000000000010000000000000002"

    @Test func `each answer has the form that GeTui's clients read`() {
        #expect(
            text(.token("t", expires: Instant(milliseconds: 1_700_000_000_000)))
                == #"{"code":0,"msg":"success","data":{"expire_time":"1700000000000","token":"t"}}"#)
        #expect(text(.revoked) == #"{"code":0,"msg":"success"}"#)
        let task = TaskID(Identifier128(high: 0, low: 255), monthDay: 1130, kind: .single)
        #expect(
            text(.pushed(task: task, cid: cid, .online))
                == "{\"code\":0,\"msg\":\"success\",\"data\":{\"RASS_1130_000000000000000000000000000000ff\":"
                + "{\"\(cidText)\":\"successed_online\"}}}")
        #expect(text(.pushed(task: task, cid: cid, .offline)).contains("\"successed_offline\""))
        #expect(text(.pushed(task: task, cid: cid, .ignored)).contains("\"successed_ignore\""))
        #expect(APIAnswer.revoked.response.status == 200)
    }

    @Test func `the answer to one push is the same bytes in one go`() {
        for (monthDay, isOnline, keepAlive, hasBody) in [
            (UInt16(1130), true, true, true), (101, false, true, true), (1231, false, false, true),
            (65_535, true, false, false),
        ] {
            let task = TaskID(Identifier128(high: .max, low: 0x0123_4567_89ab_cdef), monthDay: monthDay, kind: .single)
            var (expected, bytes): ([UInt8], [UInt8]) = ([], [])
            APIAnswer.pushed(task: task, cid: cid, isOnline ? .online : .offline).response
                .encode(into: &expected, keepAlive: keepAlive, includesBody: hasBody)
            PushedResponse(task: task, cid: cid, isOnline: isOnline)
                .encode(into: &bytes, keepAlive: keepAlive, includesBody: hasBody)
            #expect(bytes == expected)
        }
    }

    @Test func `a status lists the devices that are known`() {
        let other = CID(Identifier128(high: 0, low: 0))
        let new = CID(Identifier128(high: 1, low: 3))
        let answer = APIAnswer.statuses([
            .init(cid: cid, status: UserStatus(isOnline: true, lastLogin: Instant(milliseconds: 5))),
            .init(cid: other, status: nil), .init(cid: new, status: UserStatus(isOnline: false, lastLogin: nil)),
        ])
        #expect(
            text(answer) == "{\"code\":0,\"msg\":\"success\",\"data\":{\"\(cidText)\":"
                + "{\"last_login_time\":\"5\",\"status\":\"online\"},"
                + "\"00000000000000010000000000000003\":{\"status\":\"offline\"}}}")
        #expect(text(.statuses([])) == #"{"code":0,"msg":"success","data":{}}"#)
    }

    @Test func `health and readiness are short and have their statuses`() {
        #expect(text(.healthy) == #"{"status":"ok"}"#)
        #expect(text(.ready) == #"{"status":"ready"}"#)
        #expect(text(.notReady("a \"b\"")) == #"{"status":"starting","reason":"a \"b\""}"#)
        #expect(APIAnswer.healthy.response.status == 200)
        #expect(APIAnswer.ready.response.status == 200)
        #expect(APIAnswer.notReady("").response.status == 503)
    }

    @Test(
        arguments: [
            (.notJSON(.syntax), 1, 200), (.starting, 2, 200), (.notFound("/"), 404, 404),
            (.methodNotAllowed(allow: "GET"), 405, 405), (.tokenInvalid, 10001, 401),
            (.signInvalid, 20001, 400),
            (.targetInvalid("x"), 20001, 400), (.requestIDReused("x"), 20001, 400),
            (.busy(retryAfterSeconds: 1), 30019, 403),
        ] as [(APIError, Int, Int)])
    func `an error's code decides its HTTP status`(error: APIError, code: Int, status: Int) {
        #expect(error.code == code)
        #expect(error.response.status == status)
        #expect(String(decoding: error.response.body, as: UTF8.self).hasPrefix("{\"code\":\(code),\"msg\":\""))
    }
}
