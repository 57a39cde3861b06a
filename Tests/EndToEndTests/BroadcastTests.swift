private import FerryCore
private import FerryWire
private import Foundation
internal import Testing

/// A push to all devices of an app, over a real gateway.
@Suite struct BroadcastTests {
    @Test(arguments: shardCounts)
    func `who is there gets it at once, who is away when it comes back, across a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        var online: [RawDevice] = []
        var away: [TestIdentity] = []
        for _ in 0..<4 {
            let device = try await RawDevice(world)
            try await device.register()
            online.append(device)
            let other = try await RawDevice(world)
            away.append(try await other.register())
            try await other.sayBye()
        }
        let stranger = try await RawDevice(world, app: .second)
        try await stranger.register()
        let backend = try await Backend(world)
        let task = try await backend.pushAll("to everybody", requestID: "request-to-all")
        for device in online {
            let push = try await device.push()
            #expect(push.text == "to everybody")
            #expect(push.taskID == task)
            #expect(!push.isOffLine)
            try await device.ack(push.seq)
            #expect(try await device.settled().isEmpty)
        }
        #expect(try await stranger.settled().isEmpty)
        try await backend.push(away[0].cid, "to one")
        try await world.restartAfterKill()
        let again = try await Backend(world)
        #expect(try await again.pushAll("to everybody", requestID: "request-to-all") == task)
        #expect(try await again.sendAll("to nobody", requestID: "request-to-all").code == 20_001)
        for identity in away {
            let device = try await RawDevice(world)
            let welcome = try await device.login(identity)
            #expect(welcome.keptMessages == (identity == away[0] ? 2 : 1))
            let push = try await device.push()
            #expect(push.text == "to everybody")
            #expect(push.taskID == task)
            #expect(push.isOffLine)
            if identity == away[0] { #expect(try await device.push().text == "to one") }
            try await device.ack(push.seq)
            #expect(try await device.settled().isEmpty)
        }
        for device in online {
            let after = try await RawDevice(world)
            // The ack may have been lost with the process: the client's place counts.
            let place = StreamPlace(epoch: try #require(device.welcome).epoch, lastSeq: device.lastAcked)
            try await after.login(try #require(device.identity), at: place)
            #expect(try await after.settled().isEmpty)
        }
    }

    @Test(arguments: shardCounts)
    func `who comes after its end is told of a gap, before and after a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let backend = try await Backend(world)
        try await backend.pushAll("gone", ttl: 1)
        try await backend.push(identity.cid, "stays")
        for isKilled in [false, true] {
            if isKilled { try await world.restartAfterKill() }
            let again = try await RawDevice(world)
            try await again.login(identity)
            let gap = try await again.gap()
            #expect(gap.count == 1 && gap.expired == 1)
            #expect(try await again.push().text == "stays")
            again.close()
        }
    }

    @Test func `its story is told at each device, also where it has not been yet`() async throws {
        let world = try await World(shards: 2)
        let here = try await RawDevice(world)
        let identity = try await here.register()
        let other = try await RawDevice(world)
        let away = try await other.register()
        try await other.sayBye()
        let backend = try await Backend(world)
        let task = try await backend.pushAll("to everybody")
        try await here.ack(try await here.push().seq)
        #expect(try await here.settled().isEmpty)
        let delivered = try await world.explain(identity.cid, ["--taskid", task])
        #expect(delivered.status == 0)
        #expect(delivered.lines.contains { $0.contains("Delivered: the device acknowledged it") }, "\(delivered.lines)")
        let kept = try await world.explain(away.cid, ["--taskid", task])
        #expect(kept.lines.contains { $0.contains("Kept: The device is offline") }, "\(kept.lines)")
    }

    @Test func `ferry push sends to all`() async throws {
        let world = try await World(shards: 1)
        let device = try await RawDevice(world)
        try await device.register()
        let told = try await Child.run(
            [
                "push", "--http", "http://\(world.backends)", "--app", TestApp.first.id, "--app-key", TestApp.first.key,
                "--all", "--payload", "from the command line",
            ], environment: ["FERRY_MASTER_SECRET": TestApp.first.masterSecret])
        #expect(told.status == 0, "\(told.errors)")
        #expect(told.lines.contains { $0.contains("RASA_") })
        #expect(try await device.push().text == "from the command line")
    }
}

extension Backend {
    func sendAll(_ payload: String, requestID: String? = nil, ttl: Int? = nil) async throws -> HTTPAnswer {
        var body: [String: Any] = [
            "request_id": requestID ?? Self.freshRequestID(), "audience": "all",
            "push_message": ["transmission": payload],
        ]
        if let ttl { body["settings"] = ["ttl": ttl] }
        return try await call("POST", "/v2/\(app.id)/push/all", headers: ["token: \(token)"], body: Self.json(body))
    }

    /// Pushes, demands that the gateway takes it, and answers the task.
    @discardableResult
    func pushAll(_ payload: String, requestID: String? = nil, ttl: Int? = nil) async throws -> String {
        let answer = try await sendAll(payload, requestID: requestID, ttl: ttl)
        guard answer.status == 200, let data = try answer.object()["data"] as? [String: Any],
            let task = data["taskid"] as? String
        else { throw Unexpected("not taken: \(answer.status) \(answer.text)") }
        return task
    }
}
