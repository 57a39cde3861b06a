internal import FerryIO
internal import Foundation
private import Synchronization

/// An app as the gateway's apps file names it.
struct TestApp {
    let id: String
    let key: String
    let secret: String
    let masterSecret: String
    var topic: String?

    static let first = TestApp(
        id: "shop", key: "key-of-shop", secret: "secret-of-shop", masterSecret: "master-of-shop",
        topic: "com.example.shop")
    static let second = TestApp(
        id: "news", key: "key-of-news", secret: "secret-of-news", masterSecret: "master-of-news")

    var entry: [String: Any] {
        var entry: [String: Any] = ["appId": id, "appKey": key, "appSecret": secret, "masterSecret": masterSecret]
        if let topic { entry["apns"] = ["topic": topic, "environment": "sandbox"] }
        return entry
    }
}

/// One gateway with its folder, on a loopback address of its own, so that a port that it leaves is nobody else's when it
/// comes back.
final class World {
    let folder: String
    var shards: Int
    private let address: String
    private let slot: Slots.Ticket?
    private var child: Child?
    private(set) var devices = SocketAddress(address: 0, port: 0)
    private(set) var backends = SocketAddress(address: 0, port: 0)
    private(set) var links = SocketAddress(address: 0, port: 0)

    var data: String { folder + "/data" }
    var outboxPath: String { data + "/outbox.jsonl" }

    /// `configuration` becomes the configuration file; `disk` is where the folder is made.
    init(
        shards: Int, _ configuration: [String: Any] = [:], on disk: String? = nil, starts: Bool = true
    ) async throws {
        slot = starts ? await Slots.shared.enter() : nil
        self.shards = shards
        folder = (disk.map { $0 + "/" } ?? NSTemporaryDirectory()) + "ferry-" + UUID().uuidString
        address = Self.freshAddress()
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try configure(configuration)
        try configureApps()
        if starts { try await start() }
    }

    deinit {
        child?.send(SIGKILL)
        try? FileManager.default.removeItem(atPath: folder)
    }

    func configure(_ configuration: [String: Any]) throws {
        // A whole segment is read at each start, and a debug build takes its time.
        let all = configuration.merging(["segmentBytes": 4 << 20, "backendListen": "127.0.0.1:0"]) { given, _ in given }
        try JSONSerialization.data(withJSONObject: all)
            .write(to: URL(fileURLWithPath: folder + "/config.json"))
    }

    /// The apps file: where each app's receipts go.
    func configureApps(receipts: [String: Any]? = nil, second: [String: Any]? = nil) throws {
        var entries = [TestApp.first.entry, TestApp.second.entry]
        entries[0]["receipts"] = receipts
        entries[1]["receipts"] = second
        try JSONSerialization.data(withJSONObject: entries).write(to: URL(fileURLWithPath: folder + "/apps.json"))
    }

    private static let count = Mutex(UInt16.random(in: 0...UInt16.max))
    private static let network = UInt8.random(in: 1...254)

    private static func freshAddress() -> String {
        let number = count.withLock { count in
            count &+= 1
            return count
        }
        return "127.\(network).\(number >> 8).\(max(1, number & 0xff))"
    }

    // MARK: - Life

    var arguments: [String] {
        [
            "serve", "--config", folder + "/config.json", "--data", data, "--identity", folder + "/identity", "--apps",
            folder + "/apps.json", "--shards", String(shards),
        ]
    }

    /// Starts on the ports that it had, if it ever had any.
    func start(_ options: [String] = []) async throws {
        let child = try Child(
            arguments + options + [
                "--device-listen", "\(address):\(devices.port)", "--http-listen", "\(address):\(backends.port)",
                "--backend-listen", "\(address):\(links.port)",
            ], descriptors: descriptorLimit)
        guard let line = try await child.line(),
            let ready = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
            ready["event"] as? String == "ready",
            let devices = (ready["device"] as? String).flatMap({ SocketAddress($0) }),
            let backends = (ready["http"] as? String).flatMap({ SocketAddress($0) }),
            let links = (ready["backend"] as? String).flatMap({ SocketAddress($0) })
        else { throw Unexpected("the gateway did not get ready: \(child.errorText)") }
        self.child = child
        self.devices = devices
        self.backends = backends
        self.links = links
    }

    /// What the gateway has logged in this life, once that holds all of `words`.
    func log(with words: [String]) async throws -> String { try await child?.errorText(with: words) ?? "" }

    func kill() async throws {
        child?.send(SIGKILL)
        _ = try await child?.status()
        child = nil
    }

    /// TERM. Answers the exit status, whatever stdout held beside the ready line, and what was logged in this life.
    @discardableResult
    func stop() async throws -> (status: Int32, lines: [String], log: String) {
        guard let child else { throw Unexpected("there is no gateway to stop") }
        child.send(SIGTERM)
        var lines: [String] = []
        while let line = try await child.line() { lines.append(line) }
        let status = try await child.status()
        self.child = nil
        return (status, lines, child.errorText)
    }

    func restartAfterKill() async throws {
        try await kill()
        try await start()
    }

    /// From now on the gateway's writes fail where a file would have more bytes; nil takes that back.
    func limitFileSize(to bytes: Int?) async throws {
        try await limit("--fsize=\(bytes.map { "\($0):" } ?? "unlimited:")")
    }

    /// From now on it gets no descriptor above the highest that it has. Answers how many below are free: it may have
    /// inherited a high one from this process.
    func freezeDescriptors() async throws -> Int {
        let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(child?.processIdentifier ?? 0)/fd")
        let count = (names.compactMap { Int($0) }.max() ?? 0) + 1
        try await limit("--nofile=\(count):")
        return count - names.count
    }

    func unfreezeDescriptors() async throws { try await limit("--nofile=4096:") }

    /// Descriptors that it may have from its next start on.
    var descriptorLimit: Int?

    private func limit(_ what: String) async throws {
        let tool = Process()
        tool.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        tool.arguments = ["prlimit", "--pid", "\(child?.processIdentifier ?? 0)", what]
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            tool.terminationHandler = { tool in
                let failure = Unexpected("prlimit \(what) failed")
                continuation.resume(with: tool.terminationStatus == 0 ? .success(()) : .failure(failure))
            }
            do { try tool.run() } catch { continuation.resume(throwing: error) }
        }
    }

    /// The memory that the gateway has at this moment.
    func residentBytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(child?.processIdentifier ?? 0)/statm", encoding: .utf8)
        let pages = status.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        guard let pages else { throw Unexpected("not a statm: \(status)") }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    // MARK: - What it wrote

    /// How many segments its journal has.
    func segments() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: data).count { $0.hasSuffix(".seg") }
    }

    /// The stubs that were asked for, in order.
    func stubs() throws -> [Stub] {
        guard let data = FileManager.default.contents(atPath: outboxPath) else { return [] }
        return try data.split(separator: 0x0a).map { try Stub(Data($0)) }
    }

    /// Waits until there are `count` stubs.
    func stubs(count: Int) async throws -> [Stub] {
        let deadline = ContinuousClock.now + patience
        while ContinuousClock.now < deadline {
            let stubs = try stubs()
            if stubs.count >= count { return stubs }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw Unexpected("\(try stubs().count) stubs instead of \(count)")
    }

    var outboxText: String {
        String(decoding: FileManager.default.contents(atPath: outboxPath) ?? Data(), as: UTF8.self)
    }
}

/// A line of the outbox.
struct Stub {
    let line: String
    let host: String
    let path: String
    let token: String
    let headers: [String: String]
    let aps: [String: Any]

    init(_ data: Data) throws {
        guard let object = try JSONSerialization.jsonObject(with: data) as? [String: Any],
            let host = object["host"] as? String, let path = object["path"] as? String,
            let token = object["token"] as? String, let headers = object["headers"] as? [String: String],
            let payload = object["payload"] as? [String: Any], let aps = payload["aps"] as? [String: Any]
        else { throw Unexpected("not a stub: \(String(decoding: data, as: UTF8.self))") }
        line = String(decoding: data, as: UTF8.self)
        (self.host, self.path, self.token, self.headers, self.aps) = (host, path, token, headers, aps)
    }

    var text: String? { (aps["alert"] as? [String: Any])?["body"] as? String }
    var badge: Int? { aps["badge"] as? Int }
    var collapseID: String? { headers["apns-collapse-id"] }
}

/// How many gateways run at once, so that a small machine is not flooded with them.
final class Slots: Sendable {
    static let shared = Slots(4)

    /// A place, given back when this is let go.
    final class Ticket: Sendable {
        private let slots: Slots
        fileprivate init(_ slots: Slots) { self.slots = slots }
        deinit { slots.leave() }
    }

    private let state: Mutex<(free: Int, waiters: [CheckedContinuation<Void, Never>])>

    private init(_ count: Int) { state = Mutex((count, [])) }

    func enter() async -> Ticket {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.free > 0 else {
                    state.waiters.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
        return Ticket(self)
    }

    private func leave() {
        let waiter: CheckedContinuation<Void, Never>? = state.withLock { state in
            guard !state.waiters.isEmpty else {
                state.free += 1
                return nil
            }
            return state.waiters.removeFirst()
        }
        waiter?.resume()
    }
}
