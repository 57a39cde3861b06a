internal import FerryAPI
internal import FerryCore
internal import Testing

struct ReportCallTests {
    private func read(_ target: String) throws -> Result<ReportRequest, APIError> {
        let request = try #require(decode("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n").first?.request)
        let route = try APIRouter.match(request).get()
        #expect(route.requiresToken && route.appID == "demo")
        switch APIRequestParser(limits: APILimits()).parse(route, request) {
        case .success(.report(let report)): return .success(report)
        case .success: throw APIError.notFound(target)
        case .failure(let error): return .failure(error)
        }
    }

    private static let first = "RASL_1201_0000000000000001000000000000000a"
    private static let second = "RASS_1130_0000000000000001000000000000000b"

    @Test func `each report has its path`() throws {
        let first = try #require(ReportedTask(Self.first))
        let second = try #require(ReportedTask(Self.second))
        #expect(first.kind == .list && second.kind == .single)
        #expect(first.task == Identifier128(high: 1, low: 10))
        let day = try #require(CalendarDay("2026-12-01"))
        let cid = try #require(CID(hex: String(repeating: "ab", count: 16)))
        let cases: [(String, ReportRequest)] = [
            ("report/push/task/\(Self.first),\(Self.second)", .tasks([first, second], detail: false, actions: [])),
            ("report/push/task/\(Self.first)/detail", .tasks([first], detail: true, actions: [])),
            (
                "report/push/task/\(Self.first)?actionIdList=90001,90002%2C90001&needGetuiByBrand=1",
                .tasks([first], detail: false, actions: ["90001", "90002"])
            ),
            ("report/push/task_group/spring-1_a", .group("spring-1_a", from: nil, through: nil)),
            ("report/push/task_group/g?startDate=2026-12-01&endDate=", .group("g", from: day, through: nil)),
            ("report/push/task_group/g?endDate=2026-12-01", .group("g", from: nil, through: day)),
            ("report/push/date/2026-12-01", .pushDay(day)), ("report/push/count", .pushCount),
            ("report/user/date/2026-12-01", .userDay(day)), ("report/online_user", .online),
            ("task/detail/\(cid)/\(Self.first)", .path(cid, first)),
        ]
        for (path, wanted) in cases { #expect(try read("/v2/demo/\(path)") == .success(wanted)) }
    }

    /// A backend that has moved here may still ask for what it pushed elsewhere.
    @Test func `ids that are none of this gateway's are left out, and one that comes twice is one`() throws {
        let ids = ["OSS-1201_abc", Self.first, "x", Self.first, "RASX_1201_0000000000000001000000000000000a"]
        let first = try #require(ReportedTask(Self.first))
        #expect(
            try read("/v2/demo/report/push/task/\(ids.joined(separator: ","))")
                == .success(.tasks([first], detail: false, actions: [])))
    }

    @Test(arguments: [
        ("report/push/date/2026-02-30", "date"), ("report/push/date/yesterday", "date"),
        ("report/user/date/2026-1-1", "date"),
        ("report/push/task_group/g?startDate=x", "startDate"),
        ("report/push/task_group/g?endDate=2026-13-01", "endDate"),
        ("report/push/task_group/g?endDate=2026-12-01&endDate=2026-12-01", "endDate"),
        ("report/push/task_group/a%20b", "group_name"), ("report/push/task/a?actionIdList=x", "actionIdList"),
        ("report/push/task/a?actionIdList=%zz", "actionIdList"), ("task/detail/abc/RASS", "abc"),
        ("task/detail/abababababababababababababababab/RASS", "RASS"),
    ])
    func `what is wrong is named`(path: String, name: String) throws {
        guard case .failure(let error) = try read("/v2/demo/\(path)") else {
            Issue.record("\(path) was taken")
            return
        }
        #expect(error.code == 20_001)
        #expect(error.message.contains(name))
    }

    @Test func `no call has more than two hundred tasks`() throws {
        let ids = { (count: Int) in [String](repeating: "a", count: count).joined(separator: ",") }
        #expect(try read("/v2/demo/report/push/task/\(ids(200))") == .success(.tasks([], detail: false, actions: [])))
        guard case .failure(let error) = try read("/v2/demo/report/push/task/\(ids(201))") else {
            Issue.record("201 were taken")
            return
        }
        #expect(error.message.contains("taskid") && error.message.contains("200"))
    }

    @Test func `reports are asked for by GET, and other paths are nowhere`() {
        let request = decode("POST /v2/demo/report/online_user HTTP/1.1\r\nHost: a\r\n\r\n").first?.request
        #expect(request.map(APIRouter.match) == .failure(.methodNotAllowed(allow: "GET")))
        for path in [
            "report", "report/push", "report/push/task", "report/push/task/a/b", "report/a/date/b",
            "report/user/task/a",
        ] {
            let request = decode("GET /v2/demo/\(path) HTTP/1.1\r\nHost: a\r\n\r\n").first?.request
            guard case .failure(let error)? = request.map(APIRouter.match) else {
                Issue.record("\(path) is somewhere")
                continue
            }
            #expect(error.code == 404)
        }
    }
}
