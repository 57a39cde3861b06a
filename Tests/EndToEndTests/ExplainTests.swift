internal import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// "Why did this device not get that message?" (P6): the timeline over HTTP, and `ferry explain`.
@Suite struct ExplainTests {
    @Test(arguments: shardCounts)
    func `a message that was delivered at once tells when and where`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let receipt = try await backend.push(identity.cid, "hello")
        let push = try await device.push()
        try await device.ack(push.seq)
        _ = try await device.settled()
        for query in ["taskid=\(receipt.taskID)", "msgid=\(push.messageID)"] {
            let story = try await backend.story(identity.cid, query)
            let message = try #require(story.messages.first)
            #expect(story.messages.count == 1)
            #expect(message.state == "delivered" && message.reason == "acknowledged")
            #expect(message.events == ["accepted", "sent", "acknowledged"])
            #expect(message.task == receipt.taskID && message.id == push.messageID.description)
            #expect(story.verdict.hasPrefix("Delivered: the device acknowledged it at "))
            #expect(story.isFound && !story.hasAgedOut && story.coversFrom > 0)
        }
        let all = try await backend.story(identity.cid)
        #expect(all.verdict.hasPrefix("1 message in the log: 1 delivered."))
        #expect(all.device["status"] as? String == "online")
        #expect(all.device["presence"] as? String == "attached")
        #expect(all.device["acknowledged"] as? String == push.seq.description)
        #expect(all.events.contains("attached"))

        let told = try await world.explain(identity.cid, ["--taskid", receipt.taskID])
        #expect(told.status == 0)
        #expect(told.lines.first?.hasPrefix("Delivered: ") == true)
        let acked = "everything up to seq \(push.seq)"
        #expect(told.lines.contains { $0.contains("  acknowledged ") && $0.contains(acked) })
        #expect(!told.lines.joined().contains("hello"))
    }

    @Test(arguments: shardCounts)
    func `a message for a device that is away tells of its stub, then of its flush`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        try await device.sayBye()
        let backend = try await Backend(world)
        let receipt = try await backend.push(identity.cid, "later")
        let query = "taskid=\(receipt.taskID)"
        let kept = try await backend.story(identity.cid, query) { $0.messages[0].events.contains("stub_accepted") }
        #expect(kept.messages[0].state == "kept" && kept.messages[0].reason == nil)
        #expect(kept.messages[0].events == ["accepted", "stub_requested", "stub_accepted"])
        #expect(kept.verdict.contains("offline since") && kept.verdict.contains("good-bye"))
        #expect(kept.verdict.contains("The stub was accepted at"))
        #expect(kept.device["kept"] as? Int == 1)

        let again = try await RawDevice(world)
        try await again.login(identity)
        _ = try await again.take(1)
        _ = try await again.settled()
        let flushed = try await backend.story(identity.cid, query)
        #expect(flushed.messages[0].state == "delivered")
        #expect(
            flushed.messages[0].events
                == ["accepted", "stub_requested", "stub_accepted", "flushed", "acknowledged"])
        #expect(flushed.verdict.contains("offLine=true"))
        #expect(flushed.verdict.contains("had been away since"))
    }

    @Test(arguments: shardCounts)
    func `a message that ended otherwise tells why`(shards: Int) async throws {
        let world = try await World(shards: shards, ["messageCap": 1, "byteCap": 100])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let backend = try await Backend(world)
        let cid = identity.cid
        func story(_ receipt: PushReceipt) async throws -> Story {
            try await backend.story(cid, "taskid=\(receipt.taskID)") { $0.messages[0].state != "kept" }
        }
        let first = try await backend.push(cid, "first")
        let second = try await backend.push(cid, "second", ttl: 50)
        let dropped = try await story(first)
        #expect(dropped.messages[0].state == "overflowed" && dropped.messages[0].reason == "message_cap")
        #expect(dropped.verdict.contains("messageCap"))
        let expired = try await story(second)
        #expect(expired.messages[0].state == "expired" && expired.messages[0].reason == "ttl")
        #expect(expired.verdict.contains("its ttl of 50 ms ran out"))
        #expect(expired.verdict.contains("away since"))
        let live = try await story(try await backend.push(cid, "live", ttl: 0))
        #expect(live.messages[0].state == "expired" && live.messages[0].reason == "no_live_session")
        let told = try await backend.story(cid)
        #expect(told.verdict.contains("2 expired") && told.verdict.contains("1 overflowed"))
    }

    @Test(arguments: shardCounts)
    func `it is told across a kill and across a stop`(shards: Int) async throws {
        let world = try await World(shards: shards, ["reattachGraceMs": 60_000])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        var backend = try await Backend(world)
        let receipt = try await backend.push(identity.cid, "through it all")
        _ = try await device.push()
        let query = "taskid=\(receipt.taskID)"
        let before = try await backend.story(identity.cid, query)
        #expect(before.messages[0].events == ["accepted", "sent"])
        #expect(before.verdict.contains("has not acknowledged it since"))
        try await world.restartAfterKill()
        backend = try await Backend(world)
        let kept = try await backend.story(identity.cid, query)
        #expect(kept.messages[0].state == "kept")
        #expect(kept.verdict.contains("has not come back since the gateway's start"))
        #expect(kept.verdict.contains("the gateway went down"))
        let again = try await RawDevice(world)
        try await again.login(identity)
        _ = try await again.take(1)
        _ = try await again.settled()
        try await world.stop()
        try await world.start()
        backend = try await Backend(world)
        let delivered = try await backend.story(identity.cid, query)
        #expect(delivered.messages[0].state == "delivered")
        #expect(delivered.messages[0].events == ["accepted", "sent", "flushed", "acknowledged"])
        #expect(delivered.verdict.contains("sent 2 times"))
        #expect(delivered.coversFrom == before.coversFrom)
    }

    @Test func `what has aged out is said to have`() async throws {
        let world = try await World(shards: 1)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        var backend = try await Backend(world)
        let old = try await backend.push(identity.cid, "old")
        let query = "taskid=\(old.taskID)"
        let before = try await backend.story(identity.cid, query)
        #expect(before.isFound)
        try await world.stop()
        // The first file is gone, and the next was begun when the gateway went down.
        let folder = world.data + "/timeline/facts-000000000"
        try FileManager.default.moveItem(atPath: folder + "1.log", toPath: folder + "2.log")
        try await world.start()
        backend = try await Backend(world)
        let aged = try await backend.story(identity.cid, query)
        #expect(!aged.isFound && aged.hasAgedOut)
        #expect(aged.verdict.contains("has aged out"))
        #expect(aged.verdict.contains("The log reaches back to"))
        #expect(aged.coversFrom > before.coversFrom)
        let told = try await world.explain(identity.cid, ["--taskid", old.taskID])
        #expect(told.status == 1)
        #expect(told.lines.first?.contains("has aged out") == true)
    }

    @Test(arguments: shardCounts)
    func `another app's device is like one that does not exist`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let stranger = try await Backend(world, app: .second)
        let unknown = CID(Identifier128(high: 1, low: 2))
        let answers = [
            try await stranger.timeline(identity.cid.description), try await stranger.timeline(unknown.description),
        ]
        #expect(answers.map(\.status) == [404, 404])
        #expect(
            answers.map(\.message) == [identity.cid, unknown].map { "target user is invalid: cid \"\($0)\"" })
        let told = try await world.explain(unknown, [])
        #expect(told.status == 1)
        #expect(told.errors.contains("target user is invalid"))
    }

    @Test func `only who may ask is answered, and only to what can be asked`() async throws {
        let world = try await World(shards: 2)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let path = "/v1/shop/devices/\(identity.cid)/timeline"
        #expect(try await backend.call("GET", path).code == 10001)
        #expect(try await backend.call("GET", path, headers: ["token: 00"]).status == 401)
        #expect(try await backend.call("POST", path, headers: ["token: \(backend.token)"]).status == 405)
        for bad in [
            "msgid=1", "taskid=1", "taskid=RASS_1130_xyz", "limit=0", "limit=5001", "limit=many", "limit=1&limit=2",
            "msgid=\(identity.cid)&taskid=RASS_1130_\(identity.cid)",
        ] {
            let answer = try await backend.timeline(identity.cid.description, bad)
            #expect(answer.status == 400 && answer.code == 20001, "\(bad): \(answer.text)")
        }
        #expect(try await backend.timeline("xyz").message == "target user is invalid: cid \"xyz\"")
        let unknown = try await backend.story(identity.cid, "msgid=\(identity.cid)&other=1")
        #expect(!unknown.isFound && !unknown.hasAgedOut)
        #expect(unknown.verdict.contains("never accepted"))
        #expect(try await world.explain(identity.cid, ["--msgid", "a b"]).status == 1)
    }

    @Test func `an answer takes as many events as were asked for`() async throws {
        let world = try await World(shards: 1)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, all: (0..<50).map { "\($0)" })
        let few = try await backend.story(identity.cid, "limit=10")
        #expect(few.messages.count <= 10 && few.hasMore)
        let all = try await backend.story(identity.cid, "limit=1000")
        #expect(all.messages.count == 50 && !all.hasMore)
    }

    @Test func `switched off, it says so and keeps nothing; in memory it works`() async throws {
        let world = try await World(shards: 1, ["timelineBytes": "off"])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let receipt = try await backend.push(identity.cid, "hello")
        let off = try await backend.story(identity.cid, "taskid=\(receipt.taskID)")
        #expect(off.verdict.contains("switched off") && !off.isFound)
        #expect(!FileManager.default.fileExists(atPath: world.data + "/timeline"))

        let memory = try await World(shards: 1, ["store": "memory"])
        let other = try await RawDevice(memory)
        let volatile = try await other.register()
        let sender = try await Backend(memory)
        let second = try await sender.push(volatile.cid, "hello")
        #expect(try await sender.story(volatile.cid, "taskid=\(second.taskID)").messages.map(\.state) == ["kept"])
        #expect(!FileManager.default.fileExists(atPath: memory.data + "/timeline"))
    }
}

/// What a timeline call answers.
struct Story {
    struct Message {
        let id: String
        let task: String
        let state: String
        let reason: String?
        let events: [String]
    }

    let verdict: String
    let isFound: Bool
    let hasAgedOut: Bool
    let hasMore: Bool
    let coversFrom: Int64
    let device: [String: Any]
    let messages: [Message]
    let events: [String]

    init(_ answer: HTTPAnswer) throws {
        guard answer.status == 200, let data = try answer.object()["data"] as? [String: Any],
            let verdict = data["verdict"] as? String, let isFound = data["found"] as? Bool,
            let messages = data["messages"] as? [[String: Any]], let events = data["events"] as? [[String: Any]],
            let device = data["device"] as? [String: Any]
        else { throw Unexpected("no story: \(answer.status) \(answer.text)") }
        func names(_ events: [[String: Any]]) -> [String] { events.compactMap { $0["event"] as? String } }
        self.verdict = verdict
        self.isFound = isFound
        self.device = device
        hasAgedOut = data["agedOut"] as? Bool ?? false
        hasMore = data["more"] as? Bool ?? false
        coversFrom = (data["coversFrom"] as? String).flatMap { Int64($0) } ?? 0
        self.events = names(events)
        self.messages = messages.map { message in
            Message(
                id: message["msgid"] as? String ?? "", task: message["taskid"] as? String ?? "",
                state: message["state"] as? String ?? "", reason: message["reason"] as? String,
                events: names(message["events"] as? [[String: Any]] ?? []))
        }
    }
}

extension Backend {
    func timeline(_ cid: String, _ query: String = "") async throws -> HTTPAnswer {
        let path = "/v1/\(app.id)/devices/\(cid)/timeline" + (query.isEmpty ? "" : "?" + query)
        return try await call("GET", path, headers: ["token: \(token)"])
    }

    func story(_ cid: CID, _ query: String = "") async throws -> Story {
        try Story(try await timeline(cid.description, query))
    }

    /// Waits until the story is as wanted.
    func story(_ cid: CID, _ query: String, until isWanted: (Story) -> Bool) async throws -> Story {
        let deadline = ContinuousClock.now + patience
        while ContinuousClock.now < deadline {
            let story = try await story(cid, query)
            if isWanted(story) { return story }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw Unexpected("the story did not come: \(try await timeline(cid.description, query).text)")
    }
}

extension World {
    /// Runs `ferry explain` as the first app.
    func explain(_ cid: CID, _ options: [String]) async throws -> (status: Int32, lines: [String], errors: String) {
        try await Child.run(
            [
                "explain", "--http", "http://\(backends)", "--app", TestApp.first.id, "--app-key", TestApp.first.key,
                "--cid", cid.description,
            ] + options, environment: ["FERRY_MASTER_SECRET": TestApp.first.masterSecret])
    }
}
