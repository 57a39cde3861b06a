internal import FerryCore
private import FerryIO
internal import Foundation

/// A running `ferry listen`.
final class ListenProcess {
    private let child: Child

    /// `state` is the name of its state file in the world's folder.
    init(_ world: World, state: String? = nil, app: TestApp = .first, _ options: [String] = []) throws {
        var arguments = [
            "listen", "--server", world.devices.description, "--app", app.id, "--app-secret", app.secret,
        ]
        if let state { arguments += ["--state", world.folder + "/" + state] }
        child = try Child(arguments + options)
    }

    struct Event {
        let name: String
        let fields: [String: Any]

        var payload: String? { fields["payload"] as? String }
        var isOffLine: Bool? { fields["offLine"] as? Bool }
        var cid: CID? { (fields["cid"] as? String).flatMap { CID(hex: $0) } }
    }

    /// The next event; nil when the process has ended its output.
    func event() async throws -> Event? {
        guard let line = try await child.line() else { return nil }
        guard let fields = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
            let name = fields["event"] as? String
        else { throw Unexpected("not an event: \(line)") }
        return Event(name: name, fields: fields)
    }

    /// Skips to the next event of this name.
    func event(_ name: String) async throws -> Event {
        while let event = try await event() { if event.name == name { return event } }
        throw Unexpected("listen ended before \(name): \(child.errorText)")
    }

    /// Skips to `online` and answers who it is.
    func online() async throws -> CID {
        guard let cid = try await event("online").cid else { throw Unexpected("online without a cid") }
        return cid
    }

    func payloads(_ count: Int) async throws -> [Event] {
        var events: [Event] = []
        while events.count < count { events.append(try await event("payload")) }
        return events
    }

    /// TERM: it says `bye`. Answers its exit status.
    @discardableResult
    func stop() async throws -> Int32 {
        child.send(SIGTERM)
        return try await child.status()
    }

    func status() async throws -> Int32 { try await child.status() }

    func kill() async throws {
        child.send(SIGKILL)
        _ = try await child.status()
    }
}
