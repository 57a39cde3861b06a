internal import FerryAPI
internal import Testing

struct APIRouterTests {
    private func match(_ method: String, _ target: String) -> Result<APIRoute, APIError>? {
        decode("\(method) \(target) HTTP/1.1\r\nHost: a\r\n\r\n").first?.request.map(APIRouter.match)
    }

    private func error(_ method: String, _ target: String) -> APIError? {
        guard case .failure(let error) = match(method, target) else { return nil }
        return error
    }

    @Test(
        arguments: [
            ("POST", "/v2/demo/auth", .authenticate, "demo", false),
            ("DELETE", "/v2/demo/auth/t%201", .revoke(token: "t 1"), "demo", false),
            ("POST", "/v2/demo/push/single/cid", .pushSingle, "demo", true),
            ("GET", "/v2/d%2Fo/user/status/a,b", .userStatus(cids: "a,b"), "d/o", true),
            ("GET", "/healthz", .health, nil, false), ("HEAD", "/healthz", .health, nil, false),
            ("GET", "/readyz", .ready, nil, false), ("HEAD", "/readyz", .ready, nil, false),
        ] as [(String, String, APIRoute.Call, String?, Bool)])
    func `each call has its path, with or without a slash at the end`(
        method: String, target: String, call: APIRoute.Call, app: String?, requiresToken: Bool
    ) throws {
        for target in [target, target + "/", target + "?x=y", "http://gateway" + target] {
            let route = try match(method, target)?.get()
            #expect(route?.call == call)
            #expect(route?.appID == app)
            #expect(route?.requiresToken == requiresToken)
        }
    }

    @Test func `the timeline's path has a query`() throws {
        for target in ["/v1/demo/devices/a/timeline?limit=5", "/v1/demo/devices/a/timeline/?limit=5"] {
            let route = try #require(try match("GET", target)?.get())
            #expect(route == APIRoute(call: .timeline(cid: "a", query: "limit=5"), appID: "demo"))
            #expect(route.requiresToken)
        }
    }

    @Test(arguments: [
        "/", "/v2", "/v2/demo", "/v2//auth", "/v1/demo/auth", "/v2/demo/auth//", "/v2/demo/auth/a/b", "//v2/demo/auth",
        "/v2/demo/push/single", "/v2/demo/push/single/cid/a", "/v2/demo/push/single/alias/a", "/v2/demo/user/status",
        "/v2/demo/user/status/a/b", "/v1/demo/devices", "/v1/demo/devices/a/b", "/v1/demo/messages", "/v1/demo/push/a",
        "/v1//push",
        "/v1/demo/devices/a/timeline/b", "/v1//devices/a/timeline",
        "/v2/demo/devices/a/timeline", "/healthz/a", "/Healthz", "/v2/demo/Auth", "/v2/demo/../auth",
    ])
    func `another path is nowhere`(target: String) {
        let found = error("POST", target)
        #expect(found?.code == 404)
        #expect(found?.httpStatus == 404)
    }

    @Test(
        arguments: [
            ("GET", "/v2/demo/auth", "POST"), ("POST", "/v2/demo/auth/t", "DELETE"),
            ("DELETE", "/v2/demo/push/single/cid", "POST"), ("HEAD", "/v2/demo/user/status/a", "GET"),
            ("DELETE", "/v1/demo/devices/a/timeline", "GET"), ("GET", "/v1/demo/push", "POST"),
            ("POST", "/healthz", "GET, HEAD"), ("PATCH", "/readyz", "GET, HEAD"),
        ] as [(String, String, String)])
    func `another method is told which to use`(method: String, target: String, allow: String) {
        let found = error(method, target)
        #expect(found?.code == 405)
        #expect(found?.httpStatus == 405)
        #expect(found?.allow == allow)
    }

    @Test func `a message shows little of a long path and no control characters`() {
        let message = error("GET", "/" + String(repeating: "%0a%e4%bd%a0", count: 900))?.message ?? ""
        #expect(message.utf8.count < 120)
        #expect(message.utf8.count > 60)
        #expect(message.utf8.allSatisfy { $0 >= 0x20 })
    }
}
