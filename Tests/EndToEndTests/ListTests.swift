private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// One content for many devices, over a real gateway.
@Suite struct ListTests {
    private static func content(
        _ backend: Backend, _ text: String, requestID: String? = nil, ttl: Int? = nil, ios: [String: Any]? = nil
    ) async throws -> HTTPAnswer {
        var body: [String: Any] = [
            "request_id": requestID ?? Backend.freshRequestID(), "audience": "all",
            "push_message": ["transmission": text],
        ]
        if let ttl { body["settings"] = ["ttl": ttl] }
        if let ios { body["push_channel"] = ["ios": ios] }
        return try await post(backend, "message", body)
    }

    private static func task(
        _ backend: Backend, _ text: String, requestID: String? = nil, ttl: Int? = nil, ios: [String: Any]? = nil
    ) async throws -> String {
        let answer = try await content(backend, text, requestID: requestID, ttl: ttl, ios: ios)
        let data = try #require(try answer.object()["data"] as? [String: String], "\(answer.text)")
        return try #require(data["taskid"])
    }

    private static func post(_ backend: Backend, _ name: String, _ body: [String: Any]) async throws -> HTTPAnswer {
        try await backend.call(
            "POST", "/v2/\(backend.app.id)/push/list/\(name)", headers: ["token: \(backend.token)"],
            body: try Backend.json(body))
    }

    private static func add(
        _ backend: Backend, _ task: String, _ cids: [String], isAsync: Bool = false
    ) async throws -> HTTPAnswer {
        try await post(backend, "cid", ["taskid": task, "audience": ["cid": cids], "is_async": isAsync])
    }

    private static func statuses(_ answer: HTTPAnswer, _ task: String) throws -> [String: String] {
        let data = try #require(try answer.object()["data"] as? [String: [String: String]], "\(answer.text)")
        return try #require(data[task])
    }

    @Test(arguments: shardCounts)
    func `a content reaches who is there at once and who is away when it comes back, across a kill`(
        shards: Int
    ) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        var online: [RawDevice] = []
        var away: [TestIdentity] = []
        for _ in 0..<4 {
            let device = try await RawDevice(world)
            try await device.register()
            online.append(device)
            let other = try await RawDevice(world)
            let identity = try await other.register()
            try await other.sayBye()
            try await backend.waitUntil(identity.cid, isOnline: false)
            away.append(identity)
        }
        let task = try await Self.task(backend, "to many")
        #expect(task.hasPrefix("RASL_"))
        var there: [String] = []
        for device in online { there.append(try #require(device.identity).cid.description) }
        let gone = away.map(\.cid.description)
        let statuses = try Self.statuses(try await Self.add(backend, task, there + gone), task)
        #expect(statuses.count == 8)
        #expect(there.allSatisfy { statuses[$0] == "successed_online" })
        #expect(gone.allSatisfy { statuses[$0] == "successed_offline" })
        for device in online {
            let push = try await device.push()
            #expect(push.text == "to many")
            #expect(push.taskID == task)
            #expect(!push.isOffLine)
            try await device.ack(push.seq)
        }
        try await backend.push(away[0].cid, "behind")
        try await world.restartAfterKill()
        let again = try await Backend(world)
        for identity in away {
            let device = try await RawDevice(world)
            let welcome = try await device.login(identity)
            #expect(welcome.keptMessages == (identity == away[0] ? 2 : 1))
            let push = try await device.push()
            #expect(push.text == "to many")
            #expect(push.taskID == task)
            #expect(push.isOffLine)
            try await device.ack(push.seq)
            if identity == away[0] { #expect(try await device.take(1).map(\.text) == ["behind"]) }
        }
        // The task outlives the kill, and each device has it once.
        #expect(try Self.statuses(try await Self.add(again, task, there + gone), task) == statuses)
        let last = try await RawDevice(world)
        let lastCID = try await last.register().cid
        _ = try await Self.add(again, task, [lastCID.description] + gone)
        #expect(try await last.take(1).map(\.text) == ["to many"])
        #expect(try await last.settled().isEmpty)
    }

    @Test func `a repeat of the content is answered with the first task, other content is refused`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        let task = try await Self.task(backend, "one", requestID: "request-for-list")
        #expect(try await Self.task(backend, "one", requestID: "request-for-list") == task)
        let other = try await Self.content(backend, "two", requestID: "request-for-list")
        #expect(other.code == 20_001)
        try await world.restartAfterKill()
        let again = try await Backend(world)
        #expect(try await Self.task(again, "one", requestID: "request-for-list") == task)
    }

    @Test func `what cannot be sent is said by name, and the rest is sent`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid.description
        let stranger = try await RawDevice(world, app: .second)
        let foreign = try await stranger.register().cid.description
        let nobody = String(repeating: "ab", count: 16)
        let task = try await Self.task(backend, "some")
        let answer = try await Self.add(backend, task, [cid, foreign, nobody])
        #expect(try Self.statuses(answer, task) == [cid: "successed_online"])
        let refused = try Self.statuses(answer, "not_accepted")
        #expect(Set(refused.keys) == [foreign, nobody])
        #expect(refused[nobody]?.contains(nobody) == true)
        #expect(try await device.take(1).map(\.text) == ["some"])
        let none = try await Self.add(backend, task, [nobody])
        #expect(none.code == 20_001)
        #expect(none.text.contains(nobody))
        let unknown = "RASL_1231_" + nobody
        let wrong = try await Self.add(backend, unknown, [cid])
        #expect(wrong.code == 20_001)
        #expect(wrong.text.contains(unknown))
        let other = try await Backend(world, app: .second)
        #expect(try await Self.add(other, task, [foreign]).code == 20_001)
        let quiet = try await Self.add(backend, try await Self.task(backend, "more"), [cid], isAsync: true)
        #expect(try quiet.object()["data"] == nil)
        #expect(try await device.take(1).map(\.text) == ["more"])
    }

    @Test func `a task is over when it is as old as its ttl`() async throws {
        let world = try await World(shards: 1)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid.description
        let task = try await Self.task(backend, "short", ttl: 1)
        let deadline = ContinuousClock.now + patience
        var answer = try await Self.add(backend, task, [cid])
        while answer.code == 0, ContinuousClock.now < deadline { answer = try await Self.add(backend, task, [cid]) }
        #expect(answer.code == 20_001)
        #expect(answer.text.contains("older than its ttl"))
    }

    @Test(arguments: shardCounts)
    func `references and contents outlive their segments, in order with other messages`(shards: Int) async throws {
        let world = try await World(
            shards: shards,
            [
                "segmentBytes": 65_536, "keptSegments": 1, "reattachGraceMs": 100, "stubCooldownMs": 0,
                "listContentBytes": 65_536,
            ])
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        try await backend.waitUntil(identity.cid, isOnline: false)
        let cid = identity.cid.description
        var texts: [String] = []
        for number in 0..<40 {
            let text = "list \(number) " + String(repeating: "x", count: 2_900)
            _ = try await Self.add(backend, try await Self.task(backend, text), [cid])
            try await backend.push(identity.cid, "single \(number)")
            texts += [text, "single \(number)"]
        }
        let churn = try await RawDevice(world)
        let churned = try await churn.register()
        let deadline = ContinuousClock.now + patience
        let files = try FileManager.default.contentsOfDirectory(atPath: world.data)
        let newest = try #require(files.filter { $0.hasPrefix("journal-") && $0.hasSuffix(".seg") }.max())
        while FileManager.default.fileExists(atPath: world.data + "/" + newest) {
            try #require(ContinuousClock.now < deadline, "the segments are still there")
            let texts = (0..<50).map { "\($0) " + String(repeating: "y", count: 700) }
            let address = world.backends
            async let receipts = Backend.push(churned.cid, all: texts, at: address)
            _ = try await churn.take(50)
            _ = try await receipts
        }
        try await world.restartAfterKill()
        let again = try await RawDevice(world)
        let welcome = try await again.login(identity)
        #expect(welcome.keptMessages == 80)
        #expect(try await again.take(80).map(\.text) == texts)
    }

    @Test func `names reach their devices, and the answer may tell which`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        var devices: [RawDevice] = []
        var cids: [String] = []
        for alias in ["anna", "anna", "ben"] {
            let device = try await RawDevice(world)
            let cid = try await device.register().cid.description
            let body = try Backend.json(["data_list": [["cid": cid, "alias": alias]]])
            let bound = try await backend.call(
                "POST", "/v2/\(backend.app.id)/user/alias", headers: ["token: \(backend.token)"], body: body)
            #expect(bound.code == 0, "\(bound.text)")
            devices.append(device)
            cids.append(cid)
        }
        let task = try await Self.task(backend, "by name")
        let audience = ["alias": ["ben", "nobody", "anna"]]
        let answer = try await Self.post(
            backend, "alias", ["taskid": task, "audience": audience, "need_alias_detail": true])
        let data = try #require(try answer.object()["data"] as? [String: Any], "\(answer.text)")
        let names = try #require(data[task] as? [String: [String: String]])
        #expect(Set(names.keys) == ["anna", "ben"])
        #expect(Set(try #require(names["anna"]).keys) == Set(cids.prefix(2)))
        #expect(names["ben"] == [cids[2]: "successed_online"])
        #expect(
            (data["not_accepted"] as? [String: [String: String]])?["nobody"]?["reason"]?.contains("has no device")
                == true)
        for device in devices { #expect(try await device.take(1).map(\.text) == ["by name"]) }
        let plain = try await Self.post(backend, "alias", ["taskid": task, "audience": audience])
        #expect(try Self.statuses(plain, task).count == 3)
        let none = try await Self.post(backend, "alias", ["taskid": task, "audience": ["alias": ["nobody"]]])
        #expect(none.code == 20_001)
        #expect(none.text.contains("nobody"))
        for device in devices { #expect(try await device.settled().isEmpty) }
    }

    @Test func `the alert of the task wakes each device that is away`() async throws {
        let world = try await World(shards: 2)
        let backend = try await Backend(world)
        var cids: [String] = []
        for number in 0..<3 {
            let device = try await RawDevice(world)
            let identity = try await device.register(token: String(repeating: "0\(number)", count: 32))
            try await device.sayBye()
            try await backend.waitUntil(identity.cid, isOnline: false)
            cids.append(identity.cid.description)
        }
        let task = try await Self.task(
            backend, "news", ios: ["type": "notify", "aps": ["alert": ["title": "Breaking"]]])
        _ = try await Self.add(backend, task, cids)
        let stubs = try await world.stubs(count: 3)
        #expect(stubs.allSatisfy { ($0.aps["alert"] as? [String: Any])?["title"] as? String == "Breaking" })
        #expect(!world.outboxText.contains("news"))
    }
}
