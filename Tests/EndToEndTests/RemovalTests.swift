private import FerryCore
private import FerryWire
private import Foundation
internal import Testing

/// The end of a device.
@Suite struct RemovalTests {
    private static func erase(_ backend: Backend, _ cid: CID) async throws -> HTTPAnswer {
        try await backend.user("DELETE", "devices/\(cid)", version: "v1")
    }

    private static func expectGone(_ cid: CID, _ world: World) async throws {
        let backend = try await Backend(world)
        #expect(try await backend.send(cid, "lost").message.contains("target user is invalid"))
        #expect(try await backend.data("GET", "user/status/\(cid)").isEmpty)
        #expect(try await backend.data("GET", "user/detail/\(cid)")["invalidCids"] as? [String] == [cid.description])
        for path in ["user/alias/cid/\(cid)", "user/custom_tag/cid/\(cid)"] {
            #expect(try await backend.user("GET", path).code == 20001)
        }
        #expect(try await backend.user("GET", "devices/\(cid)/timeline", version: "v1").code == 20001)
        #expect(try await backend.devices(of: "ann").contains(cid.description) == false)
        #expect(try await backend.count([["key": "custom_tag", "values": ["vip"]]]) == 0)
    }

    @Test(arguments: shardCounts)
    func `an erased device is told to register anew, and nothing of it is found, also after a kill`(
        shards: Int
    ) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        let cid = identity.cid
        #expect(try await backend.bind([(cid, "ann")]).code == 0)
        #expect(try await backend.user("POST", "user/custom_tag/cid/\(cid)", ["custom_tag": ["vip"]]).code == 0)
        let told = try await backend.push(cid, "unacknowledged").taskID
        #expect(try await device.push().text == "unacknowledged")
        #expect(try await Self.erase(backend, cid).code == 0)
        #expect(try await device.closeCode() == .deviceRemoved)
        #expect(CloseCode.deviceRemoved.duty == .registerAnew)
        for _ in 0..<2 {
            try await Self.expectGone(cid, world)
            #expect(try await Self.erase(try await Backend(world), cid).message.contains("target user is invalid"))
            let late = try await RawDevice(world)
            try await late.sayHello()
            try await late.send(.login(try late.loginFrame(identity)))
            #expect(try await late.closeCode() == .unknownDevice)
            try await world.restartAfterKill()
        }
        // The same installation begins anew, without what was before.
        let again = try await RawDevice(world)
        #expect(try await again.register(key: identity.installationKey).cid == cid)
        let later = try await Backend(world)
        try await later.push(cid, "anew")
        #expect(try await again.take(1).map(\.text) == ["anew"])
        #expect(try await later.tags(of: cid) == [])
        #expect(try await later.alias(of: cid) == "")
        let story = try await later.user("GET", "devices/\(cid)/timeline", version: "v1")
        let data = try #require(try story.object()["data"] as? [String: Any])
        #expect((data["messages"] as? [Any])?.count == 1)
        #expect(try await later.data("GET", "report/push/task/\(told)").isEmpty)
        try await world.restartAfterKill()
        #expect(try await Backend(world).tags(of: cid) == [])
    }

    @Test(arguments: shardCounts)
    func `kept messages and broadcasts of an erased device end, and the sums hold`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        let other = try await RawDevice(world)
        let otherIdentity = try await other.register()
        try await device.sayBye()
        try await other.sayBye()
        try await backend.waitUntil(cid, isOnline: false)
        for number in 0..<20 { try await backend.push(cid, "kept \(number)") }
        let all: [String: Any] = [
            "request_id": Backend.freshRequestID(), "audience": "all", "push_message": ["transmission": "for all"],
        ]
        #expect(try await backend.user("POST", "push/all", all).code == 0)
        #expect(try await Self.erase(backend, cid).code == 0)
        #expect(
            try await backend.user("POST", "push/all", all.merging(["request_id": "another-of-all"]) { $1 }).code == 0)
        let back = try await RawDevice(world)
        try await back.login(otherIdentity)
        #expect(try await back.take(2).map(\.text) == ["for all", "for all"])
        try await world.stop()
        try await world.start()
        try await Self.expectGone(cid, world)
    }

    /// The tables still had the row of a device whose removal was in the journal alone.
    @Test(arguments: shardCounts)
    func `an erased device stays gone when its journal has moved to the tables`(shards: Int) async throws {
        let world = try await World(shards: shards, ["segmentBytes": 1 << 16, "keptSegments": 1])
        var backend = try await Backend(world)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let other = try await RawDevice(world)
        let otherCID = try await other.register().cid
        try await device.sayBye()
        try await backend.waitUntil(identity.cid, isOnline: false)
        let payload = String(repeating: "x", count: 2_000)
        func fill() async throws {
            for _ in 0..<3 {
                try await backend.push(otherCID, all: Array(repeating: payload, count: 64))
                _ = try await other.take(64)
            }
        }
        try await backend.push(identity.cid, "kept")
        try await fill()
        try await world.restartAfterKill()
        backend = try await Backend(world)
        #expect(try await Self.erase(backend, identity.cid).code == 0)
        try await Self.expectGone(identity.cid, world)
        try await world.restartAfterKill()
        try await Self.expectGone(identity.cid, world)
    }
}
