internal import FerryCore
internal import FerryIO
internal import Foundation

/// A backend's connection: HTTP/1.1 as a test wants it, byte for byte where it must be.
final class Backend {
    let socket: ByteSocket
    let app: TestApp
    private(set) var token = ""
    private var buffer: [UInt8] = []

    /// Connects, and authenticates unless told not to.
    convenience init(_ world: World, app: TestApp = .first, authenticates: Bool = true) async throws {
        try await self.init(at: world.backends, app: app, authenticates: authenticates)
    }

    init(at address: SocketAddress, app: TestApp = .first, authenticates: Bool = true) async throws {
        socket = try await ByteSocket(to: address)
        self.app = app
        if authenticates { token = try await authenticate().token() }
    }

    // MARK: - HTTP

    static func request(
        _ method: String, _ path: String, headers: [String] = [], body: [UInt8]? = nil
    ) -> [UInt8] {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: gateway\r\n"
        for header in headers { head += header + "\r\n" }
        if let body { head += "Content-Length: \(body.count)\r\n" }
        return Array((head + "\r\n").utf8) + (body ?? [])
    }

    /// The next answer. `hasBody` false for one to HEAD.
    func answer(hasBody: Bool = true) async throws -> HTTPAnswer {
        while true {
            if let (answer, consumed) = HTTPAnswer.read(buffer, hasBody: hasBody) {
                buffer.removeFirst(consumed)
                return answer
            }
            guard let bytes = try await socket.receive() else {
                throw Unexpected(
                    "the gateway hung up in the middle of an answer: \(String(decoding: buffer, as: UTF8.self))")
            }
            buffer += bytes
        }
    }

    /// Whether the gateway hangs up without another byte.
    func isHungUp() async throws -> Bool {
        guard buffer.isEmpty else { return false }
        return try await socket.receive() == nil
    }

    func call(
        _ method: String, _ path: String, headers: [String] = [], body: [UInt8]? = nil
    ) async throws -> HTTPAnswer {
        try await socket.send(Self.request(method, path, headers: headers, body: body))
        return try await answer(hasBody: method != "HEAD")
    }

    // MARK: - The API

    func authenticate(masterSecret: String? = nil, key: String? = nil, timestamp: Int64? = nil) async throws
        -> HTTPAnswer
    {
        let key = key ?? app.key
        let time = String(timestamp ?? WallClock().now.milliseconds)
        let signed = key + time + (masterSecret ?? app.masterSecret)
        let sign = Hexadecimal.encode(Cryptography.sha256(Array(signed.utf8)))
        let body = try Self.json(["sign": sign, "timestamp": time, "appkey": key])
        return try await call("POST", "/v2/\(app.id)/auth", body: body)
    }

    static func json(_ object: [String: Any]) throws -> [UInt8] {
        Array(try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys]))
    }

    static func freshRequestID() -> String { Hexadecimal.encode(Cryptography.random(16)) }

    static func pushBody(
        _ cid: CID, _ payload: String, requestID: String? = nil, ttl: Int? = nil, ios: [String: Any]? = nil
    ) throws -> [UInt8] {
        var body: [String: Any] = [
            "request_id": requestID ?? freshRequestID(), "audience": ["cid": [cid.description]],
            "push_message": ["transmission": payload],
        ]
        if let ttl { body["settings"] = ["ttl": ttl] }
        if let ios { body["push_channel"] = ["ios": ios] }
        return try json(body)
    }

    func pushRequest(_ body: [UInt8]) -> [UInt8] {
        Self.request("POST", "/v2/\(app.id)/push/single/cid", headers: ["token: \(token)"], body: body)
    }

    func send(
        _ cid: CID, _ payload: String, requestID: String? = nil, ttl: Int? = nil, ios: [String: Any]? = nil
    ) async throws -> HTTPAnswer {
        let body = try Self.pushBody(cid, payload, requestID: requestID, ttl: ttl, ios: ios)
        try await socket.send(pushRequest(body))
        return try await answer()
    }

    /// Pushes, and demands that the gateway takes it.
    @discardableResult
    func push(
        _ cid: CID, _ payload: String, requestID: String? = nil, ttl: Int? = nil, ios: [String: Any]? = nil
    ) async throws -> PushReceipt {
        try await send(cid, payload, requestID: requestID, ttl: ttl, ios: ios).receipt()
    }

    /// Pushes all, pipelined in slices, and demands that the gateway takes each.
    @discardableResult
    func push(_ cid: CID, all payloads: [String], ttl: Int? = nil) async throws -> [PushReceipt] {
        var receipts: [PushReceipt] = []
        for start in stride(from: 0, to: payloads.count, by: 32) {
            let slice = payloads[start..<min(start + 32, payloads.count)]
            try await socket.send(try slice.flatMap { pushRequest(try Self.pushBody(cid, $0, ttl: ttl)) })
            for _ in slice { receipts.append(try await answer().receipt()) }
        }
        return receipts
    }

    /// The same over a connection of its own, for tests that do something else meanwhile.
    static func push(
        _ cid: CID, all payloads: [String], ttl: Int? = nil, at address: SocketAddress
    ) async throws -> [PushReceipt] {
        try await Backend(at: address).push(cid, all: payloads, ttl: ttl)
    }

    func isOnline(_ cid: CID) async throws -> Bool {
        let answer = try await call("GET", "/v2/\(app.id)/user/status/\(cid)", headers: ["token: \(token)"])
        guard let data = try answer.object()["data"] as? [String: Any],
            let status = (data[cid.description] as? [String: Any])?["status"] as? String
        else { throw Unexpected("no status: \(answer.text)") }
        return status == "online"
    }

    /// Waits until the gateway says so.
    func waitUntil(_ cid: CID, isOnline wanted: Bool) async throws {
        let deadline = ContinuousClock.now + patience
        while try await isOnline(cid) != wanted {
            guard ContinuousClock.now < deadline else { throw Unexpected("\(cid) is not online=\(wanted) in time") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}

/// What a push was answered with.
struct PushReceipt: Hashable {
    let taskID: String
    let cid: String
    let status: String

    var wasOnline: Bool { status == "successed_online" }
}

struct HTTPAnswer {
    let status: Int
    /// Names in lower case.
    let headers: [String: String]
    let body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }

    func object() throws -> [String: Any] {
        guard let object = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] else {
            throw Unexpected("not an object: \(text)")
        }
        return object
    }

    /// The API's code; nil when there is none.
    var code: Int? { (try? object())?["code"] as? Int }
    var message: String { (try? object())?["msg"] as? String ?? "" }

    func token() throws -> String {
        guard status == 200, let token = (try object()["data"] as? [String: Any])?["token"] as? String else {
            throw Unexpected("no token: \(status) \(text)")
        }
        return token
    }

    func receipt() throws -> PushReceipt {
        guard status == 200, let (task, devices) = (try object()["data"] as? [String: Any])?.first,
            let (cid, status) = (devices as? [String: String])?.first
        else { throw Unexpected("not taken: \(status) \(text)") }
        return PushReceipt(taskID: task, cid: cid, status: status)
    }

    /// One answer at the front of `bytes`, and how many bytes it is; nil while it is not whole.
    static func read(_ bytes: [UInt8], hasBody: Bool) -> (HTTPAnswer, Int)? {
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ")
        guard words.count >= 2, let status = Int(words[1]) else { return nil }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        let length = hasBody && status >= 200 ? headers["content-length"].flatMap { Int($0) } ?? 0 : 0
        guard bytes.count >= end.upperBound + length else { return nil }
        let body = Array(bytes[end.upperBound..<(end.upperBound + length)])
        return (HTTPAnswer(status: status, headers: headers, body: body), end.upperBound + length)
    }
}
