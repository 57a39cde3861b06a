internal import FerryClientCore
internal import FerryCore
internal import FerryWire
internal import Foundation
internal import Testing

/// Plays the gateway's part of `protocol-spec/dialogues/link` that a backend can be tested with.
struct LinkDialogueTests {
    private struct Off: Error { let text: String }

    private static let folder: URL? = {
        var place = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        while place.path != "/" {
            let candidate = place.appendingPathComponent("protocol-spec/dialogues/link")
            if FileManager.default.fileExists(atPath: candidate.path) { return candidate }
            place.deleteLastPathComponent()
        }
        return nil
    }()

    /// A backend's machine, and what it has said that no step has named yet.
    private struct Backend {
        var machine: LinkClientStateMachine
        var now = Instant(milliseconds: 0)
        var said: [LinkClientAction] = []
        var notices: [LinkClientNotice] = []

        mutating func tell(_ event: LinkClientEvent) {
            var random = SystemRandomNumberGenerator()
            for action in machine.handle(event, now: now, using: &random) {
                switch action {
                case .connect: tell(.connected)
                case .send, .prove, .push: said.append(action)
                case .close: break
                case .tell(let notice): notices.append(notice)
                }
            }
        }

        mutating func waitForDeadline() {
            if let deadline = machine.deadline { now = deadline }
            tell(.timerFired)
        }
    }

    @Test(.enabled(if: folder != nil)) func `a backend keeps its part of every dialogue`() throws {
        let folder = try #require(Self.folder)
        var played = 0
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            let data = try Data(contentsOf: folder.appendingPathComponent(file))
            let dialogue = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
            guard (dialogue["runs"] as? [String])?.contains("backend") == true else { continue }
            do {
                try play(try #require(dialogue["steps"] as? [[String: Any]]))
            } catch {
                Issue.record("\(file): \(error)")
            }
            played += 1
        }
        #expect(played >= 4)
    }

    private func play(_ steps: [[String: Any]]) throws {
        var backend = Backend(machine: LinkClientStateMachine(appID: try #require(AppID("app"))))
        var names: [String: LinkPushFrame] = [:]
        var queued: [LinkOutgoing] = []
        for (index, step) in steps.enumerated() {
            guard let frame = step["frame"] as? [String: Any], frame["type"] as? String == "link-push" else { continue }
            let name = frame["id"] as? String ?? "step \(index)"
            guard names[name] == nil else { continue }
            let push = LinkPushFrame(
                id: Identifier128(high: 1, low: UInt64(index)), cid: CID(Identifier128(high: 0, low: 0)),
                payload: try #require(Hexadecimal.decode(frame["payload"] as? String ?? "")))
            names[name] = push
            queued.append(LinkOutgoing(tag: UInt64(index), push))
        }
        backend.tell(.queued(queued))
        backend.tell(.started)
        for (index, step) in steps.enumerated() {
            if step["drop"] != nil {
                backend.tell(.connectionLost("dropped"))
                backend.said = []
                backend.waitForDeadline()
            } else if let frame = step["frame"] as? [String: Any], let type = frame["type"] as? String {
                if step["from"] as? String == "gateway" {
                    try hear(type, frame, &backend)
                } else {
                    let push = names[frame["id"] as? String ?? "step \(index)"]
                    try expect(type, push, &backend)
                }
            }
        }
        guard backend.said.isEmpty else { throw Off(text: "\(backend.said) was not asked for") }
    }

    private func hear(_ type: String, _ frame: [String: Any], _ backend: inout Backend) throws {
        switch type {
        case "challenge":
            backend.tell(.frameReceived(.challenge(ChallengeFrame(nonce: .zero)), isProven: false))
        case "link-welcome":
            let welcome = LinkWelcomeFrame(serverTime: 0, keepAlive: 30, window: 4_096, windowBytes: 4_194_304)
            backend.tell(.frameReceived(.welcome(welcome), isProven: true))
        case "pong": backend.tell(.frameReceived(.pong, isProven: false))
        case "link-answer":
            let refusals = (frame["refusals"] as? [[String: Any]] ?? []).map {
                LinkRefusal(
                    number: UInt64($0["number"] as? Int ?? 0), code: UInt64($0["code"] as? Int ?? 0), text: "")
            }
            let before = (backend.machine.unanswered, backend.notices.count)
            let upTo = UInt64(frame["upTo"] as? Int ?? 0)
            backend.tell(.frameReceived(.answer(LinkAnswerFrame(upTo: upTo, refusals: refusals)), isProven: false))
            let told = backend.notices[before.1...]
            let refused = told.count {
                guard case .refused = $0 else { return false }
                return true
            }
            guard refused == refusals.count, backend.machine.unanswered < before.0 else {
                throw Off(text: "the answer up to \(upTo) was not taken: \(told)")
            }
        default: throw Off(text: "no way to say \(type)")
        }
    }

    private func expect(_ type: String, _ push: LinkPushFrame?, _ backend: inout Backend) throws {
        if type == "ping" { backend.waitForDeadline() }
        guard !backend.said.isEmpty else { throw Off(text: "\(type) was not said") }
        switch (type, backend.said.removeFirst()) {
        case ("hello", .send(.hello)), ("link-login", .prove), ("ping", .send(.ping)): break
        case ("link-push", .push(let bytes)) where bytes == push?.encoded(): break
        case (_, let action): throw Off(text: "\(action) instead of \(type)")
        }
    }
}
