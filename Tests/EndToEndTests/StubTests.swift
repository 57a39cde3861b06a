private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Wake-ups of devices that are away (P5).
@Suite struct StubTests {
    static let token = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"

    @Test(arguments: shardCounts)
    func `a message for a device that is away makes one stub, without its payload`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: Self.token)
        try await device.sayBye()
        let backend = try await Backend(world)
        let before = WallClock().now
        let receipt = try await backend.push(identity.cid, "top-secret-payload", ttl: 60_000)
        #expect(!receipt.wasOnline)
        let stub = try await world.stubs(count: 1)[0]
        let after = WallClock().now
        #expect(stub.host == "api.sandbox.push.apple.com")
        #expect(stub.path == "/3/device/" + Self.token)
        #expect(stub.token == Self.token)
        #expect(stub.text == "You have a new message")
        #expect(stub.badge == 1)
        #expect(stub.aps["sound"] as? String == "default")
        #expect(stub.headers["apns-topic"] == "com.example.shop")
        #expect(stub.headers["apns-push-type"] == "alert")
        #expect(stub.headers["apns-priority"] == "10")
        #expect(stub.headers["apns-collapse-id"] == "ferry-\(identity.cid)")
        let expiration = try #require(stub.headers["apns-expiration"].flatMap { Int64($0) })
        #expect((before.milliseconds / 1000 + 60...after.milliseconds / 1000 + 60).contains(expiration))
        let id = try #require(stub.headers["apns-id"])
        #expect(UUID(uuidString: id) != nil && id == id.lowercased())
        #expect(stub.headers.count == 6)

        let again = try await RawDevice(world)
        try await again.login(identity)
        let push = try await again.push()
        #expect(push.text == "top-secret-payload")
        #expect(push.isOffLine)
        try await again.ack(push.seq)
        try await backend.push(identity.cid, "live again")
        #expect(try await again.push().isOffLine == false)
        try await world.stop()
        #expect(!world.outboxText.contains("top-secret-payload"))
        #expect(try world.stubs().count == 1)
    }

    @Test(arguments: shardCounts)
    func `default stubs collapse, wait for their cool-down, and count what is kept`(shards: Int) async throws {
        let world = try await World(
            shards: shards, ["stubCooldownMs": 2_000, "stubTitle": "Shop", "stubText": "News for you"])
        let device = try await RawDevice(world)
        let identity = try await device.register(token: Self.token)
        try await device.sayBye()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "1")
        _ = try await world.stubs(count: 1)
        for number in 2...4 { try await backend.push(identity.cid, "\(number)") }
        let stubs = try await world.stubs(count: 2)
        #expect(stubs.map(\.badge) == [1, 4])
        #expect(Set(stubs.map(\.collapseID)) == ["ferry-\(identity.cid)"])
        #expect(Set(stubs.map { $0.headers["apns-id"] }).count == 2)
        #expect(stubs.allSatisfy { $0.text == "News for you" })
        #expect((stubs[0].aps["alert"] as? [String: Any])?["title"] as? String == "Shop")
        try await world.stop()
        #expect(try world.stubs().count == 2)
    }

    @Test(arguments: shardCounts)
    func `the sender's own alert goes out as it is, and by itself`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: Self.token)
        try await device.sayBye()
        let backend = try await Backend(world)
        for name in ["first", "second"] {
            try await backend.push(
                identity.cid, "hidden", ios: ["type": "notify", "aps": ["alert": ["title": "T", "body": name]]])
        }
        try await backend.push(
            identity.cid, "hidden",
            ios: [
                "aps": ["alert": ["title": "T", "body": "third"]], "apns-collapse-id": "order-7", "payload": "custom",
            ])
        let stubs = try await world.stubs(count: 3)
        #expect(stubs.map(\.text) == ["first", "second", "third"])
        #expect(stubs.map(\.collapseID) == [nil, nil, "order-7"])
        #expect(stubs.allSatisfy { $0.badge == nil && $0.headers["apns-topic"] == "com.example.shop" })
        #expect(stubs[2].line.contains(#""payload":"custom""#))
        try await world.stop()
        #expect(try world.stubs().count == 3)
        #expect(!world.outboxText.contains("hidden"))
    }

    @Test(arguments: shardCounts)
    func `without a token there is no stub, until one is named`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "for nobody")
        try await world.stop()
        #expect(try world.stubs().isEmpty)

        try await world.start()
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.push().text == "for nobody")
        let token = try #require(
            Hexadecimal.decode(Self.token).flatMap { PushToken(environment: .production, bytes: $0) })
        try await again.send(.deviceToken(DeviceTokenFrame(change: .set(token))))
        #expect(try await again.next() == .tokenSaved(TokenSavedFrame(environment: .production)))
        try await again.sayBye()
        let stub = try await world.stubs(count: 1)[0]
        #expect(stub.host == "api.push.apple.com")
        #expect(stub.badge == 1)
    }

    @Test(arguments: shardCounts)
    func `a device that goes away with a message unacknowledged gets a stub`(shards: Int) async throws {
        let world = try await World(shards: shards, ["reattachGraceMs": 50])
        let device = try await RawDevice(world)
        let identity = try await device.register(token: Self.token)
        let backend = try await Backend(world)
        #expect(try await backend.push(identity.cid, "unacknowledged").wasOnline)
        #expect(try await device.push().isOffLine == false)
        device.close()
        #expect(try await world.stubs(count: 1)[0].badge == 1)
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.push().isOffLine)
    }

    @Test(arguments: shardCounts)
    func `a cool-down that ends while the device is there sends nothing`(shards: Int) async throws {
        let world = try await World(shards: shards, ["stubCooldownMs": 1_500])
        let backend = try await Backend(world)
        var identities: [TestIdentity] = []
        var devices: [RawDevice] = []
        for token in ["aa11", "bb22"] {
            let device = try await RawDevice(world)
            let identity = try await device.register(token: token)
            try await device.sayBye()
            identities.append(identity)
            try await backend.push(identity.cid, "1")
            _ = try await world.stubs(count: identities.count)
            try await backend.push(identity.cid, "2")
            guard identities.count == 1 else { continue }
            let again = try await RawDevice(world)
            try await again.login(identity)
            _ = try await again.pushes(2)
            // The session lives on with both in flight.
            devices.append(again)
        }
        // The second device's cool-down began later, so the first one's is over too.
        let stubs = try await world.stubs(count: 3)
        #expect(stubs.map(\.token) == ["aa11", "bb22", "bb22"])
        for device in devices { #expect(try await device.settled().isEmpty) }
        try await world.stop()
        #expect(try world.stubs().count == 3)
    }

    @Test(arguments: shardCounts)
    func `a due stub survives a kill, and goes out after the grace`(shards: Int) async throws {
        let world = try await World(shards: shards, ["stubCooldownMs": 3_600_000, "reattachGraceMs": 100])
        let device = try await RawDevice(world)
        let identity = try await device.register(token: Self.token)
        try await device.sayBye()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "1")
        _ = try await world.stubs(count: 1)
        // Due, and held back by the cool-down when the gateway dies.
        try await backend.push(identity.cid, "2")
        try await world.restartAfterKill()
        #expect(try await world.stubs(count: 2)[1].badge == 2)
        let after = try await Backend(world)
        try await after.waitUntil(identity.cid, isOnline: false)
        try await world.stop()
        #expect(try world.stubs().count == 2)
    }

    @Test(arguments: shardCounts)
    func `a due stub is not sent to a device that came back first`(shards: Int) async throws {
        let world = try await World(shards: shards, ["stubCooldownMs": 3_600_000, "reattachGraceMs": 60_000])
        let device = try await RawDevice(world)
        let identity = try await device.register(token: Self.token)
        try await device.sayBye()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "1")
        _ = try await world.stubs(count: 1)
        try await backend.push(identity.cid, "2")
        try await world.restartAfterKill()
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.take(2).map(\.text) == ["1", "2"])
        try await again.sayBye()
        try await world.stop()
        #expect(try world.stubs().count == 1)
    }

    /// A phone that was set up anew was woken for the installation before it, too.
    @Test(arguments: shardCounts)
    func `a push token belongs to the last device that named it, also after a restart`(shards: Int) async throws {
        let world = try await World(shards: shards, ["stubCooldownMs": 0])
        let first = try await RawDevice(world)
        let former = try await first.register(token: Self.token)
        try await first.sayBye()
        let second = try await RawDevice(world)
        let present = try await second.register(token: Self.token)
        try await second.sayBye()
        let backend = try await Backend(world)
        try await backend.push(present.cid, "to the present one")
        _ = try await world.stubs(count: 1)
        try await backend.push(former.cid, "to the former one")
        try await world.stop()
        try await world.start()
        let after = try await Backend(world)
        try await after.waitUntil(former.cid, isOnline: false)
        try await after.push(former.cid, "to the former one again")
        try await after.push(present.cid, "to the present one again")
        let stubs = try await world.stubs(count: 2)
        try await world.stop()
        #expect(stubs.allSatisfy { $0.headers["apns-collapse-id"] == "ferry-\(present.cid)" })
        #expect(try world.stubs().count == 2)
        #expect(former.cid != present.cid)
    }
}
