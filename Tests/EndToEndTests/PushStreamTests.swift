private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// `ferry push --stream` as a process.
@Suite struct PushStreamTests {
    private func arguments(_ world: World, secret: String = TestApp.first.masterSecret) -> [String] {
        [
            "push", "--stream", "--link", world.links.description, "--app", TestApp.first.id, "--master-secret", secret,
        ]
    }

    private func line(_ cid: CID, _ fields: [String: Any]) throws -> String {
        let object = fields.merging(["cid": cid.description]) { $1 }
        return String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
    }

    @Test func `it sends what it reads, names bad lines, and prints refusals`() async throws {
        let world = try await World(shards: 2)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let stranger = CID(RawLink.freshID())
        let id = RawLink.freshID()
        let lines = [
            try line(identity.cid, ["payload": "text"]), "", "nonsense", try line(identity.cid, ["payload": 7]),
            try line(stranger, ["payload": "x", "id": id.hex]), try line(identity.cid, ["payloadBase64": "AP8="]),
            try line(identity.cid, ["payload": "x", "tll": 5]), try line(identity.cid, ["payload": "last", "ttl": -1]),
        ]
        let child = try Child(arguments(world), input: Array(lines.joined(separator: "\n").utf8))
        let refused = try #require(try await child.line())
        let object = try #require(try JSONSerialization.jsonObject(with: Data(refused.utf8)) as? [String: Any])
        #expect(object["event"] as? String == "refused" && object["line"] as? Int == 5)
        #expect(object["code"] as? Int == 20_001 && object["id"] as? String == id.hex)
        #expect(try await child.line() == nil)
        #expect(try await child.status() == 1)
        let errors = try await child.errorText(with: ["3 accepted, 1 refused, 3 bad lines"])
        for words in ["line 3: this is no JSON object", "line 4: give payload", "line 7: there is no \"tll\""] {
            #expect(errors.contains(words), "\(errors)")
        }
        #expect(try await device.take(3).map(\.payload) == [Array("text".utf8), [0, 0xff], Array("last".utf8)])
    }

    @Test func `a wrong secret ends it with a sentence, and what is unanswered is named`() async throws {
        let world = try await World(shards: 1)
        let child = try Child(
            arguments(world, secret: "wrong"), input: Array(try line(CID(RawLink.freshID()), ["payload": "x"]).utf8))
        var lines: [String] = []
        while let line = try await child.line() { lines.append(line) }
        #expect(try await child.status() == 1)
        #expect(lines.allSatisfy { $0.contains("\"event\":\"unanswered\",\"line\":1") })
        #expect(try await child.errorText(with: ["5007", "master secret"]).contains("unanswered"))
    }

    @Test func `through kill after kill it loses nothing and repeats nothing`() async throws {
        let world = try await World(shards: 2)
        let device = try ListenProcess(world, state: "device")
        let cid = try await device.online()
        let texts = (0..<900).map { "message \($0)" }
        let input = try texts.map { try line(cid, ["payload": $0]) }.joined(separator: "\n")
        let child = try Child(arguments(world), input: [])
        // In pieces, so that each life of the gateway gets some.
        let pieces = 4
        let bytes = Array(input.utf8)
        var payloads: [String?] = []
        for piece in 0..<pieces {
            child.write(Array(bytes[bytes.count * piece / pieces..<bytes.count * (piece + 1) / pieces]))
            payloads += try await device.payloads(50).map(\.payload)
            if piece < pieces - 1 { try await world.restartAfterKill() }
        }
        child.endInput()
        payloads += try await device.payloads(900 - payloads.count).map(\.payload)
        #expect(payloads == texts)
        #expect(try await child.status() == 0)
        try await Backend(world).push(cid, "behind all")
        #expect(try await device.payloads(1).map(\.payload) == ["behind all"])
    }

    @Test func `what the gateway has no room for is sent again, in order`() async throws {
        let world = try await World(shards: 1, ["storeBytes": 100])
        let away = try await RawDevice(world)
        let identity = try await away.register()
        try await away.sayBye()
        let texts = (0..<3).map { "message \($0) " + String(repeating: "x", count: 50) }
        let input = try texts.map { try line(identity.cid, ["payload": $0]) }.joined(separator: "\n")
        let child = try Child(arguments(world), input: Array(input.utf8))
        _ = try await child.errorText(with: ["2 wait for room"])
        let device = try await RawDevice(world)
        try await device.login(identity)
        #expect(try await device.take(3).map(\.text) == texts)
        #expect(try await child.line() == nil)
        #expect(try await child.status() == 0)
        _ = try await child.errorText(with: ["3 accepted, 0 refused"])
    }

    @Test func `a signal ends it and it says what has no answer`() async throws {
        let world = try await World(shards: 1)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let address = world.links
        try await world.kill()
        let child = try Child(
            [
                "push", "--stream", "--link", address.description, "--app", TestApp.first.id, "--master-secret", "x",
            ], input: Array((try line(identity.cid, ["payload": "x"]) + "\n").utf8), endsInput: false)
        _ = try await child.errorText(with: ["under way"])
        child.send(SIGINT)
        #expect(try await child.line()?.contains("\"event\":\"unanswered\",\"line\":1") == true)
        #expect(try await child.status() == 1)
    }
}
