private import FerryCore
private import FerryWire
private import Foundation
internal import Testing

/// The gateway's own API.
@Suite struct NativeTests {
    private static func push(
        _ backend: Backend, _ query: String, _ payload: [UInt8], id: String = Backend.freshRequestID()
    ) async throws -> HTTPAnswer {
        try await backend.call(
            "POST", "/v1/\(backend.app.id)/push?\(query)",
            headers: [
                "token: \(backend.token)", "Content-Type: application/octet-stream", "Idempotency-Key: \(id)",
            ], body: payload)
    }

    private static func data(_ answer: HTTPAnswer) throws -> [String: Any] {
        try #require(try answer.object()["data"] as? [String: Any], "\(answer.text)")
    }

    @Test(arguments: shardCounts)
    func `bytes come to several devices as they were given, each once, also after a crash`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let every = (0...255).map { UInt8($0) } + [0, 0]
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        let away = try await RawDevice(world)
        let identity = try await away.register()
        try await away.sayBye()
        try await backend.waitUntil(identity.cid, isOnline: false)
        let id = Backend.freshRequestID()
        let answer = try await Self.push(backend, "cid=\(cid),\(identity.cid)", every, id: id)
        let messages = try #require(try Self.data(answer)["messages"] as? [[String: String]], "\(answer.text)")
        #expect(messages.map { $0["status"] } == ["online", "offline"])
        #expect(messages.map { $0["cid"] } == [cid.description, identity.cid.description])
        #expect(try await device.take(1).map(\.payload) == [every])
        try await world.restartAfterKill()
        let again = try await Backend(world)
        let repeated = try await Self.push(again, "cid=\(cid),\(identity.cid)", every, id: id)
        #expect(repeated.body == answer.body)
        let back = try await RawDevice(world)
        try await back.login(identity)
        #expect(try await back.take(1).map(\.payload) == [every])
        #expect(try await back.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `a dry run tells whom a push would be for, and nothing comes of it`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        var online: [RawDevice] = []
        var cids: [String] = []
        for number in 0..<6 {
            let device = try await RawDevice(world)
            cids.append(
                try await device.register(token: number == 0 ? String(repeating: "ab", count: 32) : nil).cid.description
            )
            if number < 3 { try await device.sayBye() } else { online.append(device) }
        }
        for cid in cids.prefix(3) {
            try await backend.waitUntil(try #require(CID(hex: cid)), isOnline: false)
        }
        let stranger = try await RawDevice(world, app: .second).register().cid.description
        let named = try Self.data(
            try await Self.push(backend, "dry_run=true&cid=" + (cids + [stranger]).joined(separator: ","), []))
        #expect(named["devices"] as? Int == 6)
        #expect(named["online"] as? Int == 3)
        #expect(named["offline"] as? Int == 3)
        #expect(named["without_token"] as? Int == 2)
        #expect(named["unknown"] as? [String] == [stranger])
        let all = try Self.data(try await Self.push(backend, "dry_run=true&audience=all", Array("hello".utf8)))
        #expect(all["devices"] as? Int == 6)
        #expect(all["online"] as? Int == 3)
        #expect(all["without_token"] as? Int == 2)
        // Also of those that a restart has not seen yet.
        try await world.restartAfterKill()
        let again = try await Backend(world)
        let after = try Self.data(try await Self.push(again, "dry_run=true&audience=all", []))
        #expect(after["devices"] as? Int == 6)
        #expect(after["online"] as? Int == 0)
        #expect(after["without_token"] as? Int == 5)
        for cid in cids {
            let device = try await again.call(
                "GET", "/v1/shop/devices/\(cid)", headers: ["token: \(again.token)"])
            #expect(try Self.data(device)["kept"] as? Int == 0)
        }
    }

    @Test(arguments: shardCounts)
    func `refusals have the statuses of HTTP, and the connection goes on`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let nobody = String(repeating: "0", count: 32)
        for (query, body, status) in [
            ("cid=\(nobody)", "x", 404), ("cid=no", "x", 404), ("cid=\(nobody)&ttl=-5", "x", 400),
            ("cid=\(nobody)", "", 400),
            ("cid=\(nobody)", String(repeating: "x", count: 65_537), 413),
        ] {
            let answer = try await Self.push(backend, query, Array(body.utf8))
            #expect(answer.status == status, "\(query): \(answer.text)")
            #expect(answer.headers["connection"] == "keep-alive")
        }
        // A head that was good once is not taken for one with a body in a wrong form.
        let path = "/v2/shop/push/single/cid"
        let headers = ["token: \(backend.token)", "Content-Type: text/plain"]
        #expect(try await backend.call("POST", path, headers: headers, body: []).code == 1)
        let wrong = try await backend.call("POST", path, headers: headers, body: Array("{}".utf8))
        #expect(wrong.message.hasPrefix("content-type is invalid"))
    }
}
