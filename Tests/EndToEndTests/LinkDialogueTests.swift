private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Plays the backend's part of `protocol-spec/dialogues/link` against a real gateway.
@Suite struct LinkDialogueTests {
    private static let folder: URL? = {
        var place = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        while place.path != "/" {
            let candidate = place.appendingPathComponent("protocol-spec/dialogues/link")
            if FileManager.default.fileExists(atPath: candidate.path) { return candidate }
            place.deleteLastPathComponent()
        }
        return nil
    }()

    @Test(.enabled(if: folder != nil)) func `a gateway keeps its part of every dialogue`() async throws {
        let folder = try #require(Self.folder)
        let world = try await World(shards: 2)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        var played = 0
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            let data = try Data(contentsOf: folder.appendingPathComponent(file))
            let dialogue = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
            guard (dialogue["runs"] as? [String])?.contains("gateway") == true else { continue }
            let steps = try #require(dialogue["steps"] as? [[String: Any]])
            do {
                try await play(steps, world, identity.cid)
            } catch {
                Issue.record("\(file): \(error)")
            }
            played += 1
        }
        #expect(played >= 8)
    }

    private func play(_ steps: [[String: Any]], _ world: World, _ cid: CID) async throws {
        let link = try await RawLink(world, opens: false)
        var ids: [String: Identifier128] = [:]
        var steps = steps[...]
        while let step = steps.popFirst() {
            if let code = step["closeExpected"] as? Int {
                let close = try await link.close()
                guard Int(close.code.rawValue) == code else { throw Unexpected("\(close.code) instead of \(code)") }
            } else if let hex = step["bytes"] as? String {
                try await link.socket.send(Hexadecimal.decode(hex) ?? [])
            } else if let frame = step["frame"] as? [String: Any], let type = frame["type"] as? String {
                if step["from"] as? String == "backend" {
                    try await say(type, frame, link, &ids, cid)
                } else if type != "challenge" {
                    try await expect(type, frame, link)
                }
            }
        }
        link.socket.close()
    }

    private func say(
        _ type: String, _ frame: [String: Any], _ link: RawLink, _ ids: inout [String: Identifier128], _ cid: CID
    ) async throws {
        switch type {
        // Takes the challenge too.
        case "hello": try await link.sayHello()
        case "ping": try await link.send(.ping)
        case "link-login":
            var login = try link.login(appID: frame["appId"] as? String)
            if let proof = frame["proof"] as? String { login.proof = Bytes32(hex: proof) ?? .zero }
            try await link.send(.login(login))
        case "link-push":
            var id = RawLink.freshID()
            if let name = frame["id"] as? String {
                id = ids[name] ?? id
                ids[name] = id
            }
            let device = (frame["cid"] as? String).flatMap { CID(hex: $0) } ?? cid
            let payload = (frame["payload"] as? String).flatMap { Hexadecimal.decode($0) } ?? []
            try await link.push(LinkPushFrame(id: id, cid: device, payload: payload))
        default: throw Unexpected("no way to say \(type)")
        }
    }

    private func expect(_ type: String, _ frame: [String: Any], _ link: RawLink) async throws {
        switch type {
        case "link-welcome":
            guard case .welcome? = try await link.next() else { throw Unexpected("no welcome") }
        case "pong":
            guard case .pong? = try await link.next() else { throw Unexpected("no pong") }
        case "link-answer":
            let refusals = try await link.answers(upTo: UInt64(frame["upTo"] as? Int ?? 0))
            let expected = (frame["refusals"] as? [[String: Any]] ?? []).map {
                [$0["number"] as? Int, $0["code"] as? Int]
            }
            let actual = refusals.map { [Int($0.number), Int($0.code)] as [Int?] }
            guard actual == expected else { throw Unexpected("refused \(actual) instead of \(expected)") }
        default: throw Unexpected("no way to expect \(type)")
        }
    }
}
