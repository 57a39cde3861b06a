private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// The life of a task, over a real gateway.
@Suite struct TaskTests {
    @Test(arguments: shardCounts)
    func `a task that was stopped comes to nobody, across a kill, and its story says so`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let here = try await RawDevice(world)
        let identity = try await here.register()
        var away: [TestIdentity] = []
        for _ in 0..<4 {
            let other = try await RawDevice(world)
            away.append(try await other.register())
            try await other.sayBye()
        }
        let backend = try await Backend(world)
        let task = try await backend.pushAll("to everybody")
        try await here.ack(try await here.push().seq)
        #expect(try await here.settled().isEmpty)
        let delivered = try await world.explain(identity.cid, ["--taskid", task])
        #expect(delivered.lines.contains { $0.contains("Delivered: the device acknowledged it") })
        let answer = try await backend.stopTask(task)
        #expect(answer.status == 200)
        #expect(try answer.object()["code"] as? Int == 0)
        #expect(try answer.object()["data"] == nil)
        try await world.restartAfterKill()
        for identity in away {
            let device = try await RawDevice(world)
            let welcome = try await device.login(identity)
            #expect(welcome.keptMessages == 0)
            #expect(try await device.settled().isEmpty)
        }
        let again = try await Backend(world)
        #expect(try await again.stopTask(task).status == 200)
        let revoked = try await world.explain(away[0].cid, ["--taskid", task])
        #expect(revoked.lines.contains { $0.contains("Revoked: its sender stopped the task") }, "\(revoked.lines)")
    }

    @Test func `what cannot be stopped is named`() async throws {
        let world = try await World(shards: 2)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        _ = try await backend.push(identity.cid, "to one")
        let task = try await backend.pushAll("to everybody")
        let foreign = try await Backend(world, app: .second)
        let unknown = "RASA_1130_00000000000000000000000000000001"
        let calls: [(Backend, String, String)] = [
            (backend, unknown, "has no task"), (backend, unknown.replacing("RASA", with: "RASL"), "has no task"),
            (foreign, task, "has no task"), (backend, "RASA", "is not a task's id"),
        ]
        for (sender, task, words) in calls {
            let answer = try await sender.stopTask(task)
            #expect(answer.status == 400)
            #expect(try answer.object()["code"] as? Int == 20_001)
            #expect(answer.text.contains("taskid is invalid") && answer.text.contains(words), "\(answer.text)")
        }
        #expect(try await device.push().text == "to one")
        #expect(try await device.push().text == "to everybody")
    }
}

extension TaskTests {
    @Test(arguments: shardCounts)
    func `a scheduled push is told of, outlives a kill, comes at its time and once`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let first = try await RawDevice(world)
        let identity = try await first.register()
        let backend = try await Backend(world)
        let time = WallClock().now.milliseconds + 2_500
        let answer = try await backend.schedule("at its time", at: time)
        let task = try #require((try answer.object()["data"] as? [String: Any])?["taskid"] as? String)
        let far = try await backend.schedule("far away", at: time + 3_600_000)
        let other = try #require((try far.object()["data"] as? [String: Any])?["taskid"] as? String)
        try await world.restartAfterKill()
        let again = try await Backend(world)
        let view = try await again.scheduleView(task)
        #expect(view["push_time"] as? String == String(time))
        #expect(view["status"] as? String == "waiting" && view["send_result"] as? String == "do_not_send")
        #expect(view["transmission_content"] as? String == "at its time")
        #expect(try await again.cancelSchedule(other).status == 200)
        #expect(try await again.scheduleView(other)["send_result"] as? String == "has_delete")
        let device = try await RawDevice(world)
        try await device.login(identity)
        let push = try await device.push()
        #expect(push.text == "at its time")
        #expect(push.taskID == task)
        #expect(WallClock().now.milliseconds >= time)
        try await device.ack(push.seq)
        #expect(try await device.settled().isEmpty)
        let told = try await again.scheduleView(task)
        #expect(told["status"] as? String == "success" && told["send_result"] as? String == "send_success")
        let late = try await again.cancelSchedule(task)
        #expect(late.status == 400)
        #expect(try late.object()["code"] as? Int == 22_001)
        let unknown = try await again.cancelSchedule("RASA_1130_00000000000000000000000000000001")
        #expect(try unknown.object()["code"] as? Int == 22_002)
        try await world.restartAfterKill()
        let last = try await RawDevice(world)
        // The ack may have been lost with the process: the client's place counts.
        let place = StreamPlace(epoch: try #require(device.welcome).epoch, lastSeq: device.lastAcked)
        try await last.login(identity, at: place)
        #expect(try await last.settled().isEmpty)
    }
}

extension Backend {
    func schedule(_ payload: String, at milliseconds: Int64) async throws -> HTTPAnswer {
        let body = try Self.json([
            "request_id": Self.freshRequestID(), "audience": "all", "push_message": ["transmission": payload],
            "settings": ["schedule_time": String(milliseconds)],
        ])
        return try await call("POST", "/v2/\(app.id)/push/all", headers: ["token: \(token)"], body: body)
    }

    func scheduleView(_ task: String) async throws -> [String: Any] {
        let answer = try await call("GET", "/v2/\(app.id)/task/schedule/\(task)", headers: ["token: \(token)"])
        guard let data = try answer.object()["data"] as? [String: Any], let view = data[task] as? [String: Any] else {
            throw Unexpected("no schedule: \(answer.text)")
        }
        return view
    }

    func cancelSchedule(_ task: String) async throws -> HTTPAnswer {
        try await call("DELETE", "/v2/\(app.id)/task/schedule/\(task)", headers: ["token: \(token)"])
    }

    func stopTask(_ task: String) async throws -> HTTPAnswer {
        try await call("DELETE", "/v2/\(app.id)/task/\(task)", headers: ["token: \(token)"])
    }
}

extension TaskTests {
    @Test(arguments: shardCounts)
    func `stopped lists and pushes to one device or a name come to nobody, across a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        var away: [TestIdentity] = []
        for _ in 0..<3 {
            let device = try await RawDevice(world)
            away.append(try await device.register())
            try await device.sayBye()
        }
        let backend = try await Backend(world)
        for identity in away { try await backend.waitUntil(identity.cid, isOnline: false) }
        #expect(try await backend.bind(away.prefix(2).map { ($0.cid, "ann") }).code == 0)
        func content(_ text: String) -> [String: Any] {
            [
                "request_id": Backend.freshRequestID(), "settings": ["ttl": 86_400_000],
                "push_message": ["transmission": text],
            ]
        }
        let list = try #require(
            try await backend.data("POST", "push/list/message", content("of a list"))["taskid"] as? String)
        let cids = away.map(\.cid.description)
        _ = try await backend.data("POST", "push/list/cid", ["taskid": list, "audience": ["cid": cids]])
        let single = try await backend.push(away[2].cid, "to one")
        var named = content("to a name")
        named["audience"] = ["alias": ["ann"]]
        let pushed = try await backend.data("POST", "push/single/alias", named)
        let name = try #require(pushed.keys.first)
        #expect(pushed.count == 1)
        let report = try await backend.data("GET", "report/push/task/\(name)")[name] as? [String: Any]
        #expect((report?["total"] as? [String: Int])?["msg_num"] == 2)
        for identity in away.prefix(2) {
            let detail = try await backend.data("GET", "task/detail/\(identity.cid)/\(name)")
            #expect((detail["detail"] as? [Any])?.isEmpty == false)
        }
        let stays = try await backend.push(away[2].cid, "stays")
        for task in [list, single.taskID, name] { #expect(try await backend.stopTask(task).status == 200) }
        try await world.restartAfterKill()
        for identity in away {
            let device = try await RawDevice(world)
            let welcome = try await device.login(identity)
            #expect(welcome.keptMessages == (identity.cid == away[2].cid ? 1 : 0))
            if identity.cid == away[2].cid { #expect(try await device.push().text == "stays") }
            #expect(try await device.settled().isEmpty)
        }
        #expect(stays.taskID != single.taskID)
        let again = try await Backend(world)
        for task in [list, single.taskID, name] { #expect(try await again.stopTask(task).status == 200) }
    }
}
