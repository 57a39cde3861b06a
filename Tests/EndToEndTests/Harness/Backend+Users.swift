internal import FerryCore
internal import Foundation

/// Calls about users.
extension Backend {
    func user(
        _ method: String, _ path: String, _ body: [String: Any]? = nil, version: String = "v2"
    ) async throws -> HTTPAnswer {
        try await call(
            method, "/\(version)/\(app.id)/\(path)", headers: ["token: \(token)"],
            body: try body.map { try Self.json($0) })
    }

    /// The answer's data; a call that is refused is none.
    func data(_ method: String, _ path: String, _ body: [String: Any]? = nil) async throws -> [String: Any] {
        let answer = try await user(method, path, body)
        guard answer.code == 0 else { throw Unexpected("\(method) \(path): \(answer.status) \(answer.text)") }
        return try answer.object()["data"] as? [String: Any] ?? [:]
    }

    func bind(_ pairs: [(CID, String)]) async throws -> HTTPAnswer {
        let list = pairs.map { ["cid": $0.0.description, "alias": $0.1] }
        return try await user("POST", "user/alias", ["data_list": list])
    }

    func alias(of cid: CID) async throws -> String? {
        try await data("GET", "user/alias/cid/\(cid)")["alias"] as? String
    }

    func devices(of alias: String) async throws -> Set<String> {
        Set(try await data("GET", "user/cid/alias/\(alias)")["cid"] as? [String] ?? [])
    }

    func tags(of cid: CID) async throws -> [String] {
        try await data("GET", "user/custom_tag/cid/\(cid)")[cid.description] as? [String] ?? ["none"]
    }

    func count(_ conditions: [[String: Any]]) async throws -> Int? {
        try await data("POST", "user/count/", ["tag": conditions])["user_count"] as? Int
    }
}
