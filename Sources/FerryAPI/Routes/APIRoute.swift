/// What a request's method and path ask for, before its body is looked at: enough to find the app and to check the
/// token.
package struct APIRoute: Hashable, Sendable {
    package enum Call: Hashable, Sendable {
        case authenticate
        case revoke(token: String)
        case pushSingle
        case pushBatch
        case pushAll
        case list(ListRoute)
        /// Comma-separated, as it stands in the path.
        case userStatus(cids: String)
        /// The device as it stands in the path, and the query of the URL.
        case timeline(cid: String, query: String)
        case report(ReportCall)
        /// About a task: the call and the task as it stands in the path.
        case task(TaskVerb, task: String)
        /// The query of the URL.
        case presence(query: String)
        case user(UserRoute)
        case native(NativeCall)
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
        case .pushSingle, .pushBatch, .pushAll, .list, .userStatus, .timeline, .report, .presence, .user, .native,
            .task:
            true
        // An authentication has none yet (PHP sends the old one, to be ignored); a revocation names it in its path.
        case .authenticate, .revoke, .health, .ready: false
        }
    }
}

extension APIRoute {
    /// Whether the body may be bytes that are no JSON.
    package var takesBytes: Bool {
        guard case .native(.push) = call else { return false }
        return true
    }
}

/// Finds the call that a request is for.
package enum APIRouter {
    /// One slash at the path's end makes no difference. Fails with 404 or 405.
    package static func match(_ request: HTTPRequest) -> Result<APIRoute, APIError> {
        let path = request.segments
        let count = path.count > 1 && path.last == "" ? path.count - 1 : path.count
        if let found = UserRoute.find(request.method, path, count) {
            return found.map { APIRoute(call: .user($0), appID: path[1]) }
        }
        guard let (route, methods) = find(path, count, query: request.query, method: request.method) else {
            return .failure(.notFound("/" + request.segments.joined(separator: "/")))
        }
        guard methods.contains(request.method) else {
            return .failure(.methodNotAllowed(allow: methods.names))
        }
        return .success(route)
    }

    enum Methods {
        case one(HTTPMethod)
        case getOrHead
        case getOrDelete

        func contains(_ method: HTTPMethod) -> Bool {
            switch self {
            case .one(let only): method == only
            case .getOrHead: method == .get || method == .head
            case .getOrDelete: method == .get || method == .delete
            }
        }

        var names: String {
            switch self {
            case .one(let only): only.name
            case .getOrHead: "GET, HEAD"
            case .getOrDelete: "GET, DELETE"
            }
        }
    }

    /// Compared in place, since this is done for every message: the first `count` segments are the path.
    private static func find(
        _ path: [String], _ count: Int, query: String, method: HTTPMethod
    ) -> (APIRoute, Methods)? {
        if count == 1 {
            if path[0] == "healthz" { return (APIRoute(call: .health, appID: nil), .getOrHead) }
            if path[0] == "readyz" { return (APIRoute(call: .ready, appID: nil), .getOrHead) }
        }
        // Our own calls, beside those of GeTui's API.
        if count == 5, path[0] == "v1", !path[1].isEmpty, path[2] == "devices", path[4] == "timeline" {
            return (APIRoute(call: .timeline(cid: path[3], query: query), appID: path[1]), .one(.get))
        }
        if count == 3, path[0] == "v1", !path[1].isEmpty, path[2] == "presence" {
            return (APIRoute(call: .presence(query: query), appID: path[1]), .one(.get))
        }
        if count >= 3, path[0] == "v1", !path[1].isEmpty,
            let (call, method) = NativeCall.find(path, count, query: query)
        {
            return (APIRoute(call: .native(call), appID: path[1]), .one(method))
        }
        guard count >= 3, path[0] == "v2", !path[1].isEmpty else { return nil }
        if count > 3, path[2] == "report" || path[2] == "task", let call = ReportCall.find(path, count, query: query) {
            return (APIRoute(call: .report(call), appID: path[1]), .one(.get))
        }
        if path[2] == "task", let found = TaskVerb.find(path, count, method) {
            return (APIRoute(call: found.call, appID: path[1]), found.methods)
        }
        let found: (APIRoute.Call, HTTPMethod)? =
            switch count {
            case 3 where path[2] == "auth": (.authenticate, .post)
            case 4 where path[2] == "auth" && path[3] != "": (.revoke(token: path[3]), .delete)
            case 4 where path[2] == "push" && path[3] == "all": (.pushAll, .post)
            case 5 where path[2] == "push" && path[3] == "single" && path[4] == "cid": (.pushSingle, .post)
            case 6 where path[2] == "push" && path[3] == "single" && path[4] == "batch" && path[5] == "cid":
                (.pushBatch, .post)
            case 4 where path[2] == "push": ListRoute(path[3], "").map { (.list($0), .post) }
            case 5 where path[2] == "push": ListRoute(path[3], path[4]).map { (.list($0), .post) }
            case 5 where path[2] == "user" && path[3] == "status" && path[4] != "":
                (.userStatus(cids: path[4]), .get)
            default: nil
            }
        return found.map { (APIRoute(call: $0.0, appID: path[1]), .one($0.1)) }
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

extension HTTPRequest {
    /// What is wrong with the form of the body, by the head alone. Bodies of GET and HEAD are not looked at: PHP leaves some.
    package func contentFault(takesBytes: Bool) -> APIError? {
        guard method != .get, method != .head else { return nil }
        switch fields.contentType {
        case .json: return nil
        case .bytes where takesBytes: return nil
        case .bytes, .other:
            if let coding = fields.first("content-encoding"), coding.lowercased() != "identity" {
                return .contentEncodingInvalid(coding)
            }
            let forms = "application/json" + (takesBytes ? " or application/octet-stream" : "")
            return .contentTypeInvalid(fields.first("content-type") ?? "", forms: forms)
        }
    }
}
