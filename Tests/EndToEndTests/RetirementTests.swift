private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Journal segments that go, while devices are away and while they are there (P1, P2, P5).
@Suite struct RetirementTests {
    /// The smallest segments, so that a few hundred messages fill many.
    private static let smallSegments = [
        "segmentBytes": 65_536, "keptSegments": 1, "reattachGraceMs": 100, "stubCooldownMs": 0,
    ]

    private static func texts(_ range: Range<Int>) -> [String] {
        range.map { "\($0) " + String(repeating: "x", count: 700) }
    }

    /// Fills several segments with messages that are acknowledged at once.
    private static func churn(_ world: World, _ count: Int = 300) async throws {
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        let texts = texts(0..<count)
        let address = world.backends
        async let receipts = Backend.push(cid, all: texts, at: address)
        #expect(try await device.take(count).map(\.text) == texts)
        _ = try await receipts
        try await device.sayBye()
    }

    /// Waits until the journal's first segment has gone.
    private static func waitForRetirement(_ world: World) async throws {
        let deadline = ContinuousClock.now + patience
        let files = try FileManager.default.contentsOfDirectory(atPath: world.data)
        try #require(files.contains { $0.hasPrefix("journal-") }, "\(files)")
        while FileManager.default.fileExists(atPath: world.data + "/" + "journal-0000000001.seg") {
            guard ContinuousClock.now < deadline else {
                let files = try FileManager.default.contentsOfDirectory(atPath: world.data)
                throw Unexpected("the first segment is still there: \(files)")
            }
            try await churn(world, 50)
        }
    }

    @Test(arguments: shardCounts, [false, true])
    func `what outlives its segment comes in order`(shards: Int, isKilled: Bool) async throws {
        let world = try await World(shards: shards, Self.smallSegments)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let texts = Self.texts(0..<400)
        try await Backend(world).push(identity.cid, all: Array(texts[..<250]))
        try await Self.churn(world)
        try await Self.waitForRetirement(world)
        try await Backend(world).push(identity.cid, all: Array(texts[250...]))
        if isKilled { try await world.restartAfterKill() }
        let again = try await RawDevice(world)
        let welcome = try await again.login(identity)
        #expect(welcome.keptMessages == 400)
        let first = try await again.take(200)
        // Half of it is acknowledged, in the middle of what has left the journal, when all segments go on.
        try await Self.churn(world)
        let rest = try await again.take(200)
        #expect((first + rest).map(\.text) == texts)
        #expect(try await again.settled().isEmpty)
        try await again.sayBye()
        try await Self.churn(world)
        if isKilled { try await world.restartAfterKill() }
        let last = try await RawDevice(world)
        #expect(try await last.login(identity).keptMessages == 0)
    }

    @Test(arguments: shardCounts)
    func `an online device's unacknowledged messages outlive their segment`(shards: Int) async throws {
        let world = try await World(shards: shards, Self.smallSegments)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let texts = Self.texts(0..<60)
        try await Backend(world).push(identity.cid, all: texts)
        let seen = try await device.pushes(60)
        try await device.ack(seen[19].seq)
        try await Self.churn(world)
        try await Self.waitForRetirement(world)
        #expect(try await device.settled().isEmpty)
        try await world.restartAfterKill()
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.take(40).map(\.seq) == seen.dropFirst(20).map(\.seq))
        #expect(try await again.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `settled stubs are not asked for again, due ones are`(shards: Int) async throws {
        let world = try await World(shards: shards, Self.smallSegments)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        try await device.sayBye()
        let backend = try await Backend(world)
        for number in 1...5 {
            try await backend.push(identity.cid, "\(number)")
            #expect(try await world.stubs(count: number).last?.badge == number)
        }
        try await Self.churn(world)
        try await Self.waitForRetirement(world)
        try await world.restartAfterKill()
        let after = try await Backend(world)
        try await after.waitUntil(identity.cid, isOnline: false)
        try await after.push(identity.cid, "6")
        let stubs = try await world.stubs(count: 6)
        #expect(stubs.count == 6)
        #expect(stubs.last?.badge == 6)
        try await world.stop()
        #expect(try world.stubs().count == 6)
    }

    @Test(arguments: shardCounts)
    func `request ids, revoked tokens, devices and gaps outlive their segment`(shards: Int) async throws {
        let world = try await World(shards: shards, Self.smallSegments)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        try await device.sayBye()
        let backend = try await Backend(world)
        let receipt = try await backend.push(identity.cid, "once", requestID: "request-0001")
        try await backend.push(identity.cid, "expires", ttl: 1)
        let revoked = backend.token
        _ = try await backend.call("DELETE", "/v2/shop/auth/\(revoked)")
        try await Self.churn(world)
        try await Self.waitForRetirement(world)
        for isKilled in [false, true] {
            if isKilled { try await world.restartAfterKill() }
            let after = try await Backend(world)
            #expect(try await after.push(identity.cid, "once", requestID: "request-0001") == receipt)
            #expect(try await after.send(identity.cid, "other", requestID: "request-0001").code == 20001)
            let answer = try await after.call(
                "GET", "/v2/shop/user/status/\(identity.cid)", headers: ["token: \(revoked)"])
            #expect(answer.code == 10001)
        }
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.push().text == "once")
        let gap = try await again.gap()
        #expect(gap.count == 1 && gap.expired == 1)
        #expect(try await again.settled().isEmpty)
    }
}
