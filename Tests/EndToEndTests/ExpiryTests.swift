private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Messages that end without being delivered, and how the device learns of it (P6, P8).
@Suite struct ExpiryTests {
    @Test(arguments: shardCounts)
    func `an expired message is told by a gap, until the gap is acknowledged`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, all: ["gone", "gone too"], ttl: 1)
        try await backend.push(identity.cid, "stays")
        for _ in 0..<2 {
            let again = try await RawDevice(world)
            try await again.login(identity)
            let gap = try await again.gap()
            #expect(gap.count == 2 && gap.expired == 2 && gap.overflowed == 0)
            let push = try await again.push()
            #expect(push.text == "stays")
            #expect(gap.seq < push.seq)
            again.close()
        }
        // A gap survives a kill as well.
        try await world.restartAfterKill()
        let last = try await RawDevice(world)
        try await last.login(identity)
        let gap = try await last.gap()
        #expect(gap.count == 2 && gap.expired == 2)
        try await last.ack(gap.seq)
        #expect(try await last.push().text == "stays")
        #expect(try await last.settled().isEmpty)
        last.close()
        let after = try await RawDevice(world)
        try await after.login(identity)
        #expect(try await after.push().text == "stays")
    }

    @Test(arguments: shardCounts)
    func `a message in flight does not expire`(shards: Int) async throws {
        let world = try await World(shards: shards, ["reattachGraceMs": 0])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "in flight", ttl: 100)
        let push = try await device.push()
        // Waits for the ttl to pass by what the gateway's own clock lets expire: a shorter one of another device.
        let other = try await RawDevice(world)
        let otherIdentity = try await other.register()
        try await other.sayBye()
        try await backend.push(otherIdentity.cid, "clock", ttl: 150)
        var isExpired = false
        while !isExpired {
            let look = try await RawDevice(world)
            isExpired = try await look.login(otherIdentity).keptMessages == 0
            try await look.sayBye()
        }
        try await device.ack(push.seq)
        #expect(try await device.settled().isEmpty)
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.settled().isEmpty)
    }

    @Test(arguments: shardCounts, [-1, 0])
    func `a live-only message reaches a device that is there, or nobody`(shards: Int, ttl: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "live", ttl: ttl)
        let push = try await device.push()
        #expect(push.text == "live" && !push.isOffLine)
        try await device.ack(push.seq)
        // Sent and not acknowledged when its session ends: it ends with it.
        try await backend.push(identity.cid, "lost", ttl: ttl)
        #expect(try await device.push().text == "lost")
        try await device.sayBye()
        // Its device is away: it is over at once.
        let receipt = try await backend.push(identity.cid, "too late", ttl: ttl)
        #expect(!receipt.wasOnline)
        try await backend.push(
            identity.cid, "alerted", ttl: ttl, ios: ["aps": ["alert": ["title": "Call", "body": "Missed"]]])
        let stub = try await world.stubs(count: 1)[0]
        #expect(stub.text == "Missed")
        #expect(stub.headers["apns-expiration"] == "0")
        let again = try await RawDevice(world)
        let welcome = try await again.login(identity)
        #expect(welcome.keptMessages == 0)
        #expect(try await again.settled().isEmpty)
        try await world.stop()
        #expect(try world.stubs().count == 1)
    }

    @Test(arguments: shardCounts)
    func `beyond the cap the oldest are dropped and told`(shards: Int) async throws {
        let world = try await World(shards: shards, ["messageCap": 3])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let other = try await RawDevice(world).register()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, all: (1...7).map { "\($0)" })
        // When this is on disk, so are the drops.
        try await backend.push(other.cid, "fence")
        try await world.restartAfterKill()
        let again = try await RawDevice(world)
        let welcome = try await again.login(identity)
        #expect(welcome.keptMessages == 3)
        let gap = try await again.gap()
        #expect(gap.count == 4 && gap.overflowed == 4 && gap.expired == 0)
        try await again.ack(gap.seq)
        #expect(try await again.take(3).map(\.text) == ["5", "6", "7"])
        #expect(try await again.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `the cap counts bytes too, and spares the newest`(shards: Int) async throws {
        let world = try await World(shards: shards, ["byteCap": 1_000])
        let device = try ListenProcess(world, state: "device")
        let cid = try await device.online()
        try await device.stop()
        let backend = try await Backend(world)
        try await backend.waitUntil(cid, isOnline: false)
        try await backend.push(cid, all: (0..<5).map { String(repeating: "\($0)", count: 400) })
        try await backend.push(cid, String(repeating: "x", count: 2_000))
        let again = try ListenProcess(world, state: "device", ["--count", "1"])
        let gap = try await again.event("gap")
        #expect(gap.fields["count"] as? Int == 5)
        #expect((gap.fields["reasons"] as? [String: Any])?["overflowed"] as? Int == 5)
        #expect(try await again.event("payload").payload == String(repeating: "x", count: 2_000))
        #expect(try await again.status() == 0)
    }

    @Test(arguments: shardCounts)
    func `what is in flight is not dropped by the cap`(shards: Int) async throws {
        let world = try await World(shards: shards, ["messageCap": 3])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let again = try await RawDevice(world)
        try await again.login(identity, window: 2)
        let backend = try await Backend(world)
        try await backend.push(identity.cid, all: (1...6).map { "\($0)" })
        let inFlight = try await again.pushes(2)
        #expect(inFlight.map(\.text) == ["1", "2"])
        try await again.ack(inFlight[1].seq)
        let gap = try await again.gap()
        #expect(gap.overflowed == 3)
        try await again.ack(gap.seq)
        #expect(try await again.take(1).map(\.text) == ["6"])
    }

    @Test(arguments: shardCounts)
    func `what expires behind a full window is told as soon as there is room`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let again = try await RawDevice(world)
        try await again.login(identity, window: 1)
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "first")
        try await backend.push(identity.cid, "expires", ttl: 1)
        try await backend.push(identity.cid, "last")
        let first = try await again.push()
        #expect(try await again.settled().isEmpty)
        try await again.ack(first.seq)
        let gap = try await again.gap()
        #expect(gap.count == 1 && gap.expired == 1)
        try await again.ack(gap.seq)
        #expect(try await again.take(1).map(\.text) == ["last"])
    }
}
