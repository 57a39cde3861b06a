private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// What comes after a device attaches, and when it attaches twice (P2, P4).
@Suite struct FlushTests {
    @Test(arguments: shardCounts)
    func `a message accepted during a flush comes after what was kept`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let kept = (0..<300).map { "kept \($0)" }
        let fresh = (0..<60).map { "fresh \($0)" }
        let backend = try await Backend(world)
        try await backend.push(identity.cid, all: kept)
        let again = try await RawDevice(world)
        let welcome = try await again.login(identity, window: 4)
        #expect(welcome.keptMessages == 300)
        #expect(welcome.window == 4)
        // The flush cannot end before the first ack: the rest is accepted while it is under way.
        let first = try await again.push()
        try await backend.push(identity.cid, all: fresh)
        try await again.ack(first.seq)
        let pushes = [first] + (try await again.take(359))
        #expect(pushes.map(\.text) == kept + fresh)
        #expect(pushes.prefix(300).allSatisfy { $0.isOffLine })
        #expect(pushes.dropFirst(300).allSatisfy { !$0.isOffLine })
    }

    @Test(arguments: shardCounts)
    func `no more than the window is in flight`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        try await Backend(world).push(identity.cid, all: (0..<10).map { "\($0)" })
        let again = try await RawDevice(world)
        try await again.login(identity, window: 3)
        let first = try await again.pushes(3)
        #expect(try await again.settled().isEmpty)
        try await again.ack(first[1].seq)
        #expect(try await again.pushes(2).map(\.text) == ["3", "4"])
        #expect(try await again.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `a newer session takes over, with all that is not acknowledged`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let older = try await RawDevice(world)
        let identity = try await older.register(token: StubTests.token)
        let backend = try await Backend(world)
        try await backend.push(identity.cid, all: ["0", "1", "2", "3"])
        let seen = try await older.pushes(4)
        try await older.ack(seen[0].seq)
        #expect(try await older.settled().isEmpty)
        let newer = try await RawDevice(world)
        try await newer.login(identity)
        #expect(try await older.closeCode() == .takenOver)
        let pushes = try await newer.take(3)
        #expect(pushes.map(\.text) == ["1", "2", "3"])
        #expect(pushes.map(\.seq) == seen.dropFirst().map(\.seq))
        // It was never away.
        #expect(pushes.allSatisfy { !$0.isOffLine })
        #expect(try await backend.isOnline(identity.cid))
        try await backend.push(identity.cid, "to the newer")
        #expect(try await newer.push().text == "to the newer")
        try await world.stop()
        #expect(try world.stubs().isEmpty)
    }

    /// Connections are taken in by whichever shard is awake, so some of these cross from one to another.
    @Test(arguments: shardCounts)
    func `takeovers over many connections lose and repeat nothing`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        var older = try await RawDevice(world)
        let identity = try await older.register()
        for round in 0..<40 {
            try await backend.push(identity.cid, "a\(round)")
            #expect(try await older.push().text == "a\(round)")
            let newer = try await RawDevice(world)
            try await newer.login(identity)
            try await backend.push(identity.cid, "b\(round)")
            #expect(try await newer.take(2).map(\.text) == ["a\(round)", "b\(round)"])
            #expect(try await older.closeCode() == .takenOver)
            older = newer
        }
        #expect(try await older.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `many logins of one device at once leave exactly one session`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let identity = try await RawDevice(world).register()
        var devices: [RawDevice] = []
        for _ in 0..<12 {
            let device = try await RawDevice(world)
            try await device.sayHello()
            devices.append(device)
        }
        for device in devices { try await device.send(.login(try device.loginFrame(identity))) }
        for device in devices {
            guard case .welcome? = try await device.next() else { throw Unexpected("no welcome") }
        }
        // The older is told before the newer is welcomed, so each but one has its close by now.
        var survivors: [RawDevice] = []
        for device in devices {
            try await device.send(.ping)
            switch try await device.next() {
            case .pong: survivors.append(device)
            case .close(let close): #expect(close.code == .takenOver)
            case let other: Issue.record("\(String(describing: other))")
            }
        }
        #expect(survivors.count == 1)
        try await Backend(world).push(identity.cid, "for the last")
        #expect(try await survivors.first?.push().text == "for the last")
    }
}
