/// Calls about users: what stands in their paths.
package enum UserRoute: Hashable, Sendable {
    case bindAliases
    case unbindAliases
    case aliasOfDevice(String)
    case devicesOfAlias(String)
    case dropAlias(String)
    case setTags(cid: String)
    case tags(cid: String)
    case tagDevices(tag: String)
    case untagDevices(tag: String)
    /// Devices are comma-separated.
    case block(cids: String)
    case unblock(cids: String)
    case deviceStatus(cids: String)
    case detail(cids: String)
    case badge(cids: String)
    case count
    case setProfile(cid: String)
    case erase(cid: String)
    case pushAlias
    case pushAliasBatch

    /// What the first `count` segments of `path` and the method ask for: nil when the path is none of these, a failure when it
    /// takes other methods.
    static func find(_ method: HTTPMethod, _ path: [String], _ count: Int) -> Result<UserRoute, APIError>? {
        guard let (call, allowed) = calls(path[..<count], method) else { return nil }
        guard let found = call(method) else { return .failure(.methodNotAllowed(allow: allowed)) }
        return .success(found)
    }

    private typealias Calls = (call: (HTTPMethod) -> UserRoute?, allowed: String)

    private static func calls(_ path: ArraySlice<String>, _ method: HTTPMethod) -> Calls? {
        guard path.count >= 4, !path[1].isEmpty else { return nil }
        switch (path[0], path[2]) {
        case ("v2", "user"): return userCalls(path)
        case ("v2", "push"): return pushCalls(path)
        case ("v1", "devices"): return nativeCalls(path, method)
        default: return nil
        }
    }

    private static func pushCalls(_ path: ArraySlice<String>) -> Calls? {
        guard path[3] == "single" else { return nil }
        if path.count == 5, path[4] == "alias" { return one(.post, "POST", .pushAlias) }
        if path.count == 6, path[4] == "batch", path[5] == "alias" { return one(.post, "POST", .pushAliasBatch) }
        return nil
    }

    private static func nativeCalls(_ path: ArraySlice<String>, _ method: HTTPMethod) -> Calls? {
        let cid = path[3]
        // What is told of a device is no call about users: `NativeCall` has it.
        if path.count == 4 { return method == .get ? nil : one(.delete, "GET, DELETE", .erase(cid: cid)) }
        if path.count == 5, path[4] == "profile" { return one(.put, "PUT", .setProfile(cid: cid)) }
        return nil
    }

    private static func userCalls(_ path: ArraySlice<String>) -> Calls? {
        let rest = Array(path[4...])
        switch (path[3], rest.count) {
        case ("alias", 0): return two(.post, .bindAliases, .delete, .unbindAliases, "POST, DELETE")
        case ("alias", 1): return one(.delete, "DELETE", .dropAlias(rest[0]))
        case ("alias", 2) where rest[0] == "cid": return one(.get, "GET", .aliasOfDevice(rest[1]))
        case ("cid", 2) where rest[0] == "alias": return one(.get, "GET", .devicesOfAlias(rest[1]))
        case ("custom_tag", 2) where rest[0] == "cid":
            return two(.post, .setTags(cid: rest[1]), .get, .tags(cid: rest[1]), "GET, POST")
        case ("custom_tag", 2) where rest[0] == "batch":
            return two(.put, .tagDevices(tag: rest[1]), .delete, .untagDevices(tag: rest[1]), "PUT, DELETE")
        case ("black", 2) where rest[0] == "cid":
            return two(.post, .block(cids: rest[1]), .delete, .unblock(cids: rest[1]), "POST, DELETE")
        case ("deviceStatus", 1): return one(.get, "GET", .deviceStatus(cids: rest[0]))
        case ("detail", 1): return one(.get, "GET", .detail(cids: rest[0]))
        case ("badge", 2) where rest[0] == "cid": return one(.post, "POST", .badge(cids: rest[1]))
        case ("count", 0): return one(.post, "POST", .count)
        default: return nil
        }
    }

    private static func one(_ method: HTTPMethod, _ name: String, _ route: UserRoute) -> Calls {
        ({ $0 == method ? route : nil }, name)
    }

    private static func two(
        _ first: HTTPMethod, _ firstRoute: UserRoute, _ second: HTTPMethod, _ secondRoute: UserRoute, _ names: String
    ) -> Calls {
        ({ $0 == first ? firstRoute : $0 == second ? secondRoute : nil }, names)
    }
}
