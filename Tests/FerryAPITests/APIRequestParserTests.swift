private import FerryAPI
private import FerryCore
internal import Testing

struct APIRequestParserTests {
    private static let sign = String(repeating: "0a", count: 32)

    @Test(arguments: ["1700000000000", "\"1700000000000\""])
    func `an authentication's timestamp is a number or a string`(timestamp: String) throws {
        let body = "{\"sign\":\"\(Self.sign)\",\"timestamp\":\(timestamp),\"appkey\":\"k\",\"extra\":[null]}"
        guard case .authenticate(let auth) = try parse(.authenticate, body).get() else {
            Issue.record("another call was read")
            return
        }
        #expect(auth.sign == Self.sign)
        #expect(auth.timestamp == 1_700_000_000_000)
        #expect(auth.appKey == "k")
    }

    @Test(
        arguments: [
            ("", 1, "the body is not JSON: it is empty"),
            ("{", 1, "the body is not JSON"),
            ("\u{feff}{}", 1, "the body is not JSON"),
            ("null", 20001, "sign can not be empty"),
            ("[]", 20001, "body type error: must be an object"),
            ("\"a\"", 20001, "body type error: must be an object"),
            ("{}", 20001, "sign can not be empty"),
            (#"{"sign":""}"#, 20001, "sign can not be empty"),
            (#"{"sign":null}"#, 20001, "sign can not be empty"),
            (#"{"sign":1}"#, 20001, "sign type error: must be a string"),
            (#"{"sign":"0a"}"#, 20001, "sign is invalid: 2 bytes, must be the 64 hex digits of a SHA-256"),
            (#"{"sign":"$"}"#, 20001, "timestamp can not be empty"),
            (#"{"sign":"$","timestamp":true}"#, 20001, "timestamp type error: must be a whole number"),
            (#"{"sign":"$","timestamp":"x"}"#, 20001, "timestamp type error: must be a whole number"),
            (#"{"sign":"$","timestamp":1.5}"#, 20001, "timestamp type error: must be a whole number"),
            (#"{"sign":"$","timestamp":-1}"#, 20001, "timestamp is invalid: -1, must be milliseconds since 1970"),
            (#"{"sign":"$","timestamp":9223372036854775808}"#, 20001, "timestamp type error: must be a whole number"),
            (#"{"sign":"$","timestamp":1}"#, 20001, "appkey can not be empty"),
            (#"{"sign":"$","timestamp":1,"appkey":["k"]}"#, 20001, "appkey type error: must be a string"),
            (#"{"sign":"$","timestamp":1,"appkey":"a","appkey":"b"}"#, 20001, "contains duplicate appkey"),
        ] as [(String, Int, String)])
    func `a wrong authentication is refused by name, and never with 10001`(body: String, code: Int, message: String) {
        let body = body.split(separator: "$", omittingEmptySubsequences: false).joined(separator: Self.sign)
        let error = parse(.authenticate, body).error
        #expect(error?.code == code)
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
        #expect(error?.httpStatus == (code == 1 ? 200 : 400))
    }

    @Test func `a body that is not UTF-8 is told so`() {
        let error = parse(.authenticate, Array(#"{"sign":""#.utf8) + [0xff] + Array(#""}"#.utf8)).error
        #expect(error == .notJSON(.notUTF8))
        #expect(error?.message == "the body is not JSON: it is not UTF-8")
    }

    @Test func `a body may be as long as its limit`() {
        let limits = APILimits(bodyBytes: 10)
        #expect(parse(.authenticate, #"{"a":    1"# + "}", limits: limits).error == .notJSON(.tooLarge))
        #expect(parse(.authenticate, #"{"a":   1"# + "}", limits: limits).error == .empty("sign"))
    }

    @Test(arguments: ["", "null", "{", "{\"cid\":1}"])
    func `the body of a call that needs none is not looked at`(body: String) throws {
        #expect(try parse(.revoke(token: "t"), body).get() == .revoke(token: "t"))
        #expect(try parse(.health, body).get() == .health)
        #expect(try parse(.ready, body).get() == .ready)
        let cid = try #require(CID(hex: PushBody.cid))
        #expect(try parse(.userStatus(cids: PushBody.cid), body).get() == .userStatus([cid]))
    }

    private func devices(_ count: Int) -> String {
        (0..<count).map { CID(Identifier128(high: 7, low: UInt64($0))).description }.joined(separator: ",")
    }

    @Test func `the status of up to a thousand devices can be asked, each once and in order`() throws {
        guard case .userStatus(let thousand) = try parse(.userStatus(cids: devices(1000)), "").get() else {
            Issue.record("another call was read")
            return
        }
        #expect(thousand.count == 1000)
        #expect(thousand[999].value.low == 999)
        #expect(
            parse(.userStatus(cids: devices(1001)), "").error == .overLimit("cid", "at most 1000 in one call"))
        let twice = try parse(.userStatus(cids: devices(2) + "," + devices(2)), "").get()
        #expect(twice == .userStatus(Array(thousand.prefix(2))))
    }

    @Test func `a device that cannot be one is shown`() {
        #expect(parse(.userStatus(cids: devices(1) + ",x"), "").error?.message == "target user is invalid: cid \"x\"")
        #expect(parse(.userStatus(cids: devices(1) + ","), "").error == .empty("cid"))
        #expect(parse(.userStatus(cids: PushBody.cid + "0"), "").error?.code == 20001)
    }

    @Test func `a question for the timeline names a message, a task or nothing`() throws {
        func query(_ text: String) throws -> TimelineQuery? {
            guard case .timeline(let query) = try parse(.timeline(cid: PushBody.cid, query: text), "").get() else {
                return nil
            }
            return query
        }
        let cid = try #require(CID(hex: PushBody.cid))
        let id = try #require(Identifier128(hex: "000102030405060708090a0b0c0d0e0f"))
        #expect(try query("") == TimelineQuery(cid: cid, target: nil, limit: 500))
        #expect(try query("msgid=\(id.hex)&x=y&x=z")?.target == .message(MessageID(id)))
        #expect(try query("taskid=RASS_1130_\(id.hex)&limit=5000")?.target == .task(id))
        #expect(try query("limit=1")?.limit == 1)
        for bad in [
            "msgid", "msgid=\(id.hex)0", "taskid=\(id.hex)", "limit=0", "limit=5001", "limit=", "limit=1&limit=1",
        ] {
            #expect(parse(.timeline(cid: PushBody.cid, query: bad), "").error?.code == 20001, "\(bad)")
        }
        #expect(parse(.timeline(cid: "1", query: ""), "").error == .targetInvalid("1"))
    }
}
