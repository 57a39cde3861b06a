private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Reports over HTTP: what they tell holds across kills, whatever the number of shards.
@Suite struct ReportTests {
    @Test(arguments: shardCounts)
    func `a push to all is accounted for, across a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        var online: [RawDevice] = []
        for _ in 0..<3 {
            let device = try await RawDevice(world)
            try await device.register()
            online.append(device)
        }
        let leaving = try await RawDevice(world)
        let away = try await leaving.register()
        try await leaving.sayBye()
        let backend = try await Backend(world)
        let task = try await backend.pushAll("to everybody")
        for device in online.prefix(2) {
            let push = try await device.push()
            try await device.ack(push.seq)
            _ = try await device.settled()
        }
        let before = try await backend.report(task)
        #expect(before.total == ["msg_num": 4, "target_num": 2, "receive_num": 2, "display_num": 0, "click_num": 0])
        #expect(before.states == ["delivered": 2, "kept": 2])
        try await world.restartAfterKill()
        let again = try await Backend(world)
        #expect(try await again.report(task) == before)
        let device = try await RawDevice(world)
        try await device.login(away)
        let push = try await device.push()
        try await device.ack(push.seq)
        _ = try await device.settled()
        #expect(try await again.report(task).states == ["delivered": 3, "kept": 1])
        try await world.restartAfterKill()
        let last = try await Backend(world)
        #expect(try await last.report(task).states == ["delivered": 3, "kept": 1])
        // Another app does not see it, and what is unknown is left out.
        let other = try await Backend(world, app: .second)
        #expect(try await other.data("report/push/task/\(task),RASA_1201_\(String(repeating: "0", count: 32))").isEmpty)
    }

    @Test(arguments: shardCounts)
    func `what expires is lost at its stage, and the day tells of all kinds of pushes`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let leaving = try await RawDevice(world)
        let away = try await leaving.register()
        try await leaving.sayBye()
        let backend = try await Backend(world)
        let expired = try await backend.pushAll("live only", ttl: -1)
        let push = try await device.push()
        try await device.ack(push.seq)
        _ = try await device.settled()
        let kept = try await backend.push(away.cid, "one")
        let lost = try await backend.push(away.cid, "two", ttl: -1)
        let given = try await backend.push(identity.cid, "three")
        try await device.ack(try await device.push().seq)
        _ = try await device.settled()
        let report = try await backend.report(expired) { $0.states["kept"] == nil }
        #expect(report.states == ["delivered": 1, "expired": 1])
        #expect(report.losses == ["rs": ["gt": ["d12": 1]]])
        #expect(report.total["target_num"] == 1)

        // Single pushes: by the timeline, of their own app only.
        #expect(try await backend.report(kept.taskID).states == ["kept": 1])
        #expect(try await backend.report(lost.taskID).states == ["expired": 1])
        let delivered = try await backend.report(given.taskID)
        #expect(delivered.states == ["delivered": 1] && delivered.total["receive_num"] == 1)
        let all = try await backend.data("report/push/task/\([kept, lost, given].map(\.taskID).joined(separator: ","))")
        #expect(Set(all.keys) == Set([kept, lost, given].map(\.taskID)))
        let other = try await Backend(world, app: .second)
        #expect(try await other.data("report/push/task/\(given.taskID)").isEmpty)

        try await world.restartAfterKill()
        let again = try await Backend(world)
        #expect(try await again.report(kept.taskID).states == ["kept": 1])
        let today = CalendarDay(of: WallClock().now, UTCOffset(minutes: 480)).description
        let day = try #require(try await again.data("report/push/date/\(today)")[today] as? [String: [String: Int]])
        #expect(day["total"]?["msg_num"] == 5 && day["gt"]?["receive_num"] == 2)
        let users = try #require(try await again.data("report/user/date/\(today)")[today] as? [String: Int])
        #expect(users == ["accumulative_num": 2, "register_num": 2, "active_num": 2, "online_num": 2])
        let count = try #require(try await again.data("report/push/count")["gt"] as? [String: [String: Any]])
        #expect(count["all"]?["push_num"] as? Int == 5 && count["all"]?["limit"] as? Bool == false)
        let curve = try await again.data("report/online_user")
        #expect(curve["online_statics"] is [String: Int])
        #expect(try await again.data("report/push/task_group/spring").isEmpty)
        let wrong = try await again.get("report/push/date/2026-02-30")
        #expect(wrong.code == 20_001 && wrong.message.contains("2026-02-30"))
    }

    /// They were counted when the record of the removal was known to be on disk, and a kill came first: told as expired.
    @Test(arguments: shardCounts)
    func `what an erasure ends is told as skipped, and a list is in its group, also after a kill`(
        shards: Int
    ) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        var gone: [CID] = []
        for _ in 0..<2 {
            let device = try await RawDevice(world)
            gone.append(try await device.register().cid)
            try await device.sayBye()
        }
        let task = try await backend.pushAll("to everybody")
        let content: [String: Any] = [
            "request_id": Backend.freshRequestID(), "group_name": "spring", "push_message": ["transmission": "listed"],
        ]
        let made = try await backend.user("POST", "push/list/message", content)
        let list = try #require((try made.object()["data"] as? [String: Any])?["taskid"] as? String)
        let targets: [String: Any] = ["taskid": list, "audience": ["cid": gone.map(\.description)]]
        #expect(try await backend.user("POST", "push/list/cid", targets).code == 0)
        #expect(try await backend.user("DELETE", "devices/\(gone[0])", version: "v1").code == 0)
        try await world.restartAfterKill()
        let again = try await Backend(world)
        for name in [task, list] {
            #expect(try await again.report(name).states == ["kept": 1, "skipped": 1])
        }
        let group = try await again.data("report/push/task_group/spring")["spring"] as? [String: [String: Int]]
        #expect(group?["total"]?["msg_num"] == 2)
        let today = CalendarDay(of: WallClock().now, UTCOffset(minutes: 480)).description
        let day = try #require(try await again.data("report/push/date/\(today)")[today] as? [String: [String: Int]])
        #expect(day["total"]?["msg_num"] == 4)
    }

    @Test func `the way of one task at one device is told under both spellings`() async throws {
        let world = try await World(shards: 2)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let receipt = try await backend.push(identity.cid, "hello")
        try await device.ack(try await device.push().seq)
        _ = try await device.settled()
        let data = try await backend.data("task/detail/\(identity.cid)/\(receipt.taskID)")
        let detail = try #require(data["detail"] as? [[String: String]])
        #expect(data["deatil"] as? [[String: String]] == detail)
        let events = detail.compactMap { $0["event"]?.split(separator: ":").first.map { String($0) } }
        #expect(events.filter { $0 == "accepted" || $0 == "sent" || $0 == "acknowledged" }.count == 3)
        let time = try #require(detail.first?["time"])
        #expect(time.count == 19 && CalendarDay(time.prefix(10)) != nil)
        let unknown = "RASS_1201_" + String(repeating: "0", count: 32)
        let answer = try await backend.get("task/detail/\(identity.cid)/\(unknown)")
        #expect(answer.code == 20_001 && answer.message.contains(unknown))
    }
}

extension Backend {
    fileprivate struct Report: Equatable {
        var total: [String: Int]
        /// Without those that are 0.
        var states: [String: Int]
        var losses: [String: [String: [String: Int]]]
    }

    fileprivate func get(_ path: String) async throws -> HTTPAnswer {
        try await call("GET", "/v2/\(app.id)/\(path)", headers: ["token: \(token)"])
    }

    fileprivate func data(_ path: String) async throws -> [String: Any] {
        let answer = try await get(path)
        guard answer.code == 0, let data = try answer.object()["data"] as? [String: Any] else {
            throw Unexpected("no report: \(answer.text)")
        }
        return data
    }

    /// Of one task, once it is as `isWanted` says.
    fileprivate func report(_ task: String, isWanted: (Report) -> Bool = { _ in true }) async throws -> Report {
        let deadline = ContinuousClock.now + patience
        while true {
            let data = try await data("report/push/task/\(task)/detail")
            guard let found = data[task] as? [String: Any], let total = found["total"] as? [String: Int],
                let states = found["states"] as? [String: Int],
                let losses = found["failed_detail"] as? [String: [String: [String: Int]]]
            else { throw Unexpected("no report of \(task): \(data)") }
            let report = Report(
                total: total, states: states.filter { $0.value != 0 }, losses: losses.filter { !$0.value.isEmpty })
            if isWanted(report) { return report }
            guard ContinuousClock.now < deadline else { throw Unexpected("\(task) is \(report)") }
        }
    }
}
