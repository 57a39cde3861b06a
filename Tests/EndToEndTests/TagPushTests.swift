private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// A push to those that have tags, over a real gateway.
@Suite struct TagPushTests {
    private static func push(
        _ backend: Backend, _ name: String, _ text: String, _ audience: [String: Any], requestID: String? = nil,
        speed: Int? = nil
    ) async throws -> HTTPAnswer {
        var settings: [String: Any] = ["ttl": 3_600_000]
        if let speed { settings["speed"] = speed }
        let body: [String: Any] = [
            "request_id": requestID ?? Backend.freshRequestID(), "audience": audience, "settings": settings,
            "push_message": ["transmission": text],
        ]
        return try await backend.call(
            "POST", "/v2/\(backend.app.id)/push/\(name)", headers: ["token: \(backend.token)"],
            body: try Backend.json(body))
    }

    private static func task(_ answer: HTTPAnswer) throws -> String {
        try #require((try answer.object()["data"] as? [String: String])?["taskid"], "\(answer.text)")
    }

    private static func set(_ backend: Backend, _ tags: [String], _ cid: CID) async throws {
        let answer = try await backend.call(
            "POST", "/v2/\(backend.app.id)/user/custom_tag/cid/\(cid)", headers: ["token: \(backend.token)"],
            body: try Backend.json(["custom_tag": tags]))
        #expect(answer.code == 0, "\(answer.text)")
    }

    private static func condition(_ values: [String], _ operation: String = "or") -> [String: Any] {
        ["key": "custom_tag", "values": values, "opt_type": operation]
    }

    @Test(arguments: shardCounts)
    func `it reaches those that meet all conditions, there or away, once, and nobody else`(
        shards: Int
    ) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let tags = [["red", "big"], ["red"], ["blue", "big"], [], ["red", "big", "old"]]
        var online: [RawDevice] = []
        var away: [TestIdentity] = []
        for tags in tags {
            let device = try await RawDevice(world)
            let identity = try await device.register()
            try await Self.set(backend, tags, identity.cid)
            online.append(device)
            let other = try await RawDevice(world)
            let otherIdentity = try await other.register()
            try await Self.set(backend, tags, otherIdentity.cid)
            try await other.sayBye()
            away.append(otherIdentity)
        }
        let audience: [String: Any] = [
            "tag": [Self.condition(["red", "big"], "and"), Self.condition(["old"], "not")]
        ]
        let task = try Self.task(
            try await Self.push(backend, "tag", "to red and big", audience, requestID: "request-to-tags"))
        #expect(task.hasPrefix("RASA_"))
        #expect(
            try Self.task(
                try await Self.push(backend, "tag", "to red and big", audience, requestID: "request-to-tags")) == task)
        let other = try await Self.push(
            backend, "tag", "to red and big", ["tag": [Self.condition(["red"])]], requestID: "request-to-tags")
        #expect(other.code == 20_001)
        let push = try await online[0].push()
        #expect(push.text == "to red and big")
        #expect(push.taskID == task)
        try await online[0].ack(push.seq)
        for device in online { #expect(try await device.settled().isEmpty) }
        try await world.restartAfterKill()
        for (place, identity) in away.enumerated() {
            let device = try await RawDevice(world)
            try await device.login(identity)
            if place == 0 { #expect(try await device.take(1).map(\.text) == ["to red and big"]) }
            #expect(try await device.settled().isEmpty)
        }
    }

    @Test func `one tag, said shortly, and who comes to have it later`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        let first = try await RawDevice(world)
        try await Self.set(backend, ["vip"], try await first.register().cid)
        let second = try await RawDevice(world)
        let late = try await second.register().cid
        _ = try Self.task(
            try await Self.push(backend, "fast_custom_tag", "to vip", ["fast_custom_tag": "vip"]))
        try await Self.set(backend, ["vip"], late)
        #expect(try await first.take(1).map(\.text) == ["to vip"])
        #expect(try await second.settled().isEmpty)
        // A task whose targets are fixed takes no others.
        let nobody = try await Self.push(backend, "fast_custom_tag", "to nobody", ["fast_custom_tag": "gone"])
        let more = try await backend.call(
            "POST", "/v2/\(backend.app.id)/push/list/cid", headers: ["token: \(backend.token)"],
            body: try Backend.json(["taskid": try Self.task(nobody), "audience": ["cid": [late.description]]]))
        #expect(more.code == 20_001)
    }

    /// How many devices have it, once that is as wanted.
    private static func reached(
        _ backend: Backend, _ task: String, isWanted: (Int) -> Bool
    ) async throws -> Int {
        let deadline = ContinuousClock.now + patience
        while true {
            let answer = try await backend.call(
                "GET", "/v2/\(backend.app.id)/report/push/task/\(task)/detail", headers: ["token: \(backend.token)"])
            let data = try answer.object()["data"] as? [String: Any]
            let total = (data?[task] as? [String: Any])?["total"] as? [String: Int]
            let count = total?["msg_num"] ?? 0
            if isWanted(count) { return count }
            guard ContinuousClock.now < deadline else { throw Unexpected("\(task) has reached \(count)") }
        }
    }

    @Test(arguments: shardCounts)
    func `who is full is passed over, which its timeline tells`(shards: Int) async throws {
        let world = try await World(shards: shards, ["messageCap": 1, "capPolicy": "refuse"])
        let backend = try await Backend(world)
        var cids: [CID] = []
        for _ in 0..<2 {
            let device = try await RawDevice(world)
            let identity = try await device.register()
            try await Self.set(backend, ["all"], identity.cid)
            try await device.sayBye()
            cids.append(identity.cid)
        }
        for cid in cids { try await backend.waitUntil(cid, isOnline: false) }
        try await backend.push(cids[0], "before")
        let task = try Self.task(
            try await Self.push(backend, "fast_custom_tag", "to all", ["fast_custom_tag": "all"]))
        _ = try await Self.reached(backend, task) { $0 == 2 }
        for (cid, word) in [(cids[0], "device_full"), (cids[1], "\"kept\"")] {
            let story = try await backend.call(
                "GET", "/v1/\(backend.app.id)/devices/\(cid)/timeline?taskid=\(task)",
                headers: ["token: \(backend.token)"])
            #expect(story.text.contains(word), "\(story.text)")
        }
    }

    @Test(arguments: shardCounts)
    func `a kill in the middle leaves nobody out and reaches nobody twice`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        var identities: [TestIdentity] = []
        for _ in 0..<24 {
            let device = try await RawDevice(world)
            let identity = try await device.register()
            try await Self.set(backend, ["all"], identity.cid)
            try await device.sayBye()
            identities.append(identity)
        }
        // So slowly that kills fall into it.
        let task = try Self.task(
            try await Self.push(backend, "fast_custom_tag", "slowly", ["fast_custom_tag": "all"], speed: 8))
        var reached = 0
        for _ in 0..<3 {
            let before = reached
            reached = try await Self.reached(try await Backend(world), task) { $0 > before }
            try await world.restartAfterKill()
        }
        #expect(reached < identities.count, "the kills fell behind its end")
        let again = try await Backend(world)
        for identity in identities {
            let device = try await RawDevice(world)
            try await device.login(identity)
            let push = try await device.push()
            #expect(push.text == "slowly")
            #expect(push.taskID == task)
            try await device.ack(push.seq)
            try await device.sayBye()
            try await again.waitUntil(identity.cid, isOnline: false)
        }
        for identity in identities {
            let device = try await RawDevice(world)
            try await device.login(identity)
            #expect(try await device.settled().isEmpty)
        }
    }
}
