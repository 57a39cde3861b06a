/// What a request's method and path ask for, before its body is looked at: enough to find the app and to check the
/// token.
package struct APIRoute: Hashable, Sendable {
    package enum Call: Hashable, Sendable {
        case authenticate
        case revoke(token: String)
        case pushSingle
        /// Comma-separated, as it stands in the path.
        case userStatus(cids: String)
        /// The device as it stands in the path, and the query of the URL.
        case timeline(cid: String, query: String)
        case health
        case ready
    }

    package let call: Call
    /// As it stands in the path; nil for calls outside any app.
    package let appID: String?

    package init(call: Call, appID: String?) {
        self.call = call
        self.appID = appID
    }

    /// Whether the header `token` must hold a live token of the app.
    package var requiresToken: Bool {
        switch call {
        case .pushSingle, .userStatus, .timeline: true
        // An authentication has none yet (PHP sends the old one, to be ignored); a revocation names it in its path.
        case .authenticate, .revoke, .health, .ready: false
        }
    }
}

/// Finds the call that a request is for.
package enum APIRouter {
    /// One slash at the path's end makes no difference. Fails with 404 or 405.
    package static func match(_ request: HTTPRequest) -> Result<APIRoute, APIError> {
        var path = request.segments[...]
        if path.count > 1, path.last == "" { path.removeLast() }
        guard let (route, methods) = find(Array(path), query: request.query) else {
            return .failure(.notFound("/" + request.segments.joined(separator: "/")))
        }
        guard methods.contains(request.method) else {
            return .failure(.methodNotAllowed(allow: methods.map(\.name).joined(separator: ", ")))
        }
        return .success(route)
    }

    private static func find(_ path: [String], query: String) -> (APIRoute, [HTTPMethod])? {
        if path == ["healthz"] { return (APIRoute(call: .health, appID: nil), [.get, .head]) }
        if path == ["readyz"] { return (APIRoute(call: .ready, appID: nil), [.get, .head]) }
        // Our own calls, beside those of GeTui's API.
        if path.count == 5, path[0] == "v1", !path[1].isEmpty, path[2] == "devices", path[4] == "timeline" {
            return (APIRoute(call: .timeline(cid: path[3], query: query), appID: path[1]), [.get])
        }
        guard path.count >= 3, path[0] == "v2", !path[1].isEmpty else { return nil }
        let call = path[2...]
        let found: (APIRoute.Call, HTTPMethod)? =
            switch call.count {
            case 1 where call.elementsEqual(["auth"]): (.authenticate, .post)
            case 2 where call.first == "auth" && call.last != "": (.revoke(token: call[3]), .delete)
            case 3 where call.elementsEqual(["push", "single", "cid"]): (.pushSingle, .post)
            case 3 where call.starts(with: ["user", "status"]) && call.last != "":
                (.userStatus(cids: call[4]), .get)
            default: nil
            }
        return found.map { (APIRoute(call: $0.0, appID: path[1]), [$0.1]) }
    }
}

extension HTTPMethod {
    fileprivate var name: String {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .other: "OTHER"
        }
    }
}
