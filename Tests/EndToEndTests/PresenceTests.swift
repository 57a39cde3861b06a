private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Is the device there, and where did it stop.
@Suite struct PresenceTests {
    @Test(arguments: shardCounts)
    func `in background nothing is sent, acks count, and foreground goes on`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        let backend = try await Backend(world)
        try await backend.push(identity.cid, all: ["1", "2"])
        let seen = try await device.pushes(2)
        try await device.send(.background)
        #expect(try await device.settled().isEmpty)
        #expect(try await backend.isOnline(identity.cid) == false)
        #expect(try await backend.push(identity.cid, "3").wasOnline == false)
        try await device.ack(seen[0].seq)
        #expect(try await device.settled().isEmpty)
        #expect(try await world.stubs(count: 1)[0].badge == 2)
        try await device.send(.foreground(ForegroundFrame(lastSeq: seen[0].seq)))
        guard case .resumed(let resumed)? = try await device.next() else { throw Unexpected("not resumed") }
        #expect(resumed.isResumed && resumed.keptMessages == 2)
        let flushed = try await device.pushes(2)
        #expect(flushed.map(\.text) == ["2", "3"])
        #expect(flushed.allSatisfy { $0.isOffLine })
        #expect(try await backend.isOnline(identity.cid))
        try await backend.push(identity.cid, "4")
        let live = try await device.push()
        #expect(live.text == "4" && !live.isOffLine)
        try await device.ack(live.seq)
        #expect(try await device.settled().isEmpty)
        try await device.sayBye()
        let again = try await RawDevice(world)
        #expect(try await again.login(identity).keptMessages == 0)
    }

    @Test(arguments: shardCounts)
    func `background twice and foreground in the foreground are faults`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let twice = try await RawDevice(world)
        try await twice.register()
        try await twice.send(.background)
        try await twice.send(.background)
        #expect(try await twice.closeCode() == .protocolError)
        let already = try await RawDevice(world)
        try await already.register()
        try await already.send(.foreground(ForegroundFrame(lastSeq: .zero)))
        #expect(try await already.closeCode() == .protocolError)
    }

    @Test(arguments: shardCounts)
    func `after bye the device is offline at once`(shards: Int) async throws {
        let world = try await World(shards: shards, ["reattachGraceMs": 3_600_000])
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "1")
        let push = try await device.push()
        // Acks before it count.
        try await device.ack(push.seq)
        try await device.sayBye()
        #expect(try await backend.isOnline(identity.cid) == false)
        #expect(try await backend.push(identity.cid, "2").wasOnline == false)
        #expect(try await world.stubs(count: 1)[0].badge == 1)
    }

    /// Without a token, so that no stub says it too.
    @Test(arguments: shardCounts)
    func `a message in flight when its device goes away comes marked`(shards: Int) async throws {
        let world = try await World(shards: shards, ["reattachGraceMs": 0])
        let backend = try await Backend(world)
        for leaves in ["bye", "background", "loss"] {
            let device = try await RawDevice(world)
            let identity = try await device.register()
            try await backend.push(identity.cid, leaves)
            #expect(try await device.push().isOffLine == false)
            switch leaves {
            case "bye": try await device.sayBye()
            case "background": try await device.send(.background)
            default: device.close()
            }
            try await backend.waitUntil(identity.cid, isOnline: false)
            let again = try await RawDevice(world)
            try await again.login(identity)
            let push = try await again.push()
            #expect(push.text == leaves && push.isOffLine, "\(leaves)")
        }
    }

    @Test(arguments: shardCounts)
    func `a device that is back within the grace was never away`(shards: Int) async throws {
        let world = try await World(shards: shards, ["reattachGraceMs": 3_600_000])
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "in flight")
        #expect(try await device.push().isOffLine == false)
        device.close()
        // Either order of loss and acceptance is within the grace.
        #expect(try await backend.push(identity.cid, "in between").wasOnline)
        #expect(try await backend.isOnline(identity.cid))
        let again = try await RawDevice(world)
        try await again.login(identity)
        let pushes = try await again.take(2)
        #expect(pushes.map(\.text) == ["in flight", "in between"])
        #expect(pushes.allSatisfy { !$0.isOffLine })
        try await again.sayBye()
        try await world.stop()
        #expect(try world.stubs().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `the client's place covers what it has, in the same epoch only`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let epoch = try #require(device.welcome).epoch
        try await Backend(world).push(identity.cid, all: ["1", "2", "3", "4"])
        let seen = try await device.pushes(4)
        device.close()

        let foreign = try await RawDevice(world)
        let other = Epoch(epoch.rawValue ^ 1)
        #expect(
            try await foreign.login(identity, at: StreamPlace(epoch: other, lastSeq: seen[3].seq)).isResumed == false)
        #expect(try await foreign.pushes(4).map(\.seq) == seen.map(\.seq))
        let future = try await RawDevice(world)
        let beyond = StreamPlace(epoch: epoch, lastSeq: Seq(.max))
        #expect(try await future.login(identity, at: beyond).isResumed == false)
        #expect(try await future.pushes(4).map(\.seq) == seen.map(\.seq))

        let again = try await RawDevice(world)
        let welcome = try await again.login(identity, at: StreamPlace(epoch: epoch, lastSeq: seen[1].seq))
        #expect(welcome.isResumed && welcome.keptMessages == 2)
        #expect(try await again.pushes(2).map(\.text) == ["3", "4"])
        again.close()
        // It was an acknowledgement: gone for good, also by a login that names no place, also after a kill. What was
        // accepted later is on disk, and so is all before it.
        try await Backend(world).push(identity.cid, "5")
        try await world.restartAfterKill()
        let last = try await RawDevice(world)
        #expect(try await last.login(identity).epoch == epoch)
        #expect(try await last.pushes(3).map(\.text) == ["3", "4", "5"])
    }

    @Test(arguments: shardCounts)
    func `on another data folder the numbers of before say nothing`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let before = try #require(device.welcome).epoch
        try await Backend(world).push(identity.cid, all: ["1", "2", "3"])
        let seen = try await device.take(3)
        try await device.sayBye()
        try await world.stop()
        try FileManager.default.removeItem(atPath: world.data)
        try await world.start()
        let registrar = try await RawDevice(world)
        #expect(try await registrar.register(key: identity.installationKey) == identity)
        try await registrar.sayBye()
        // As many as before, so that the old place lies within the new numbers.
        try await Backend(world).push(identity.cid, all: ["a", "b", "c", "d"])
        let again = try await RawDevice(world)
        let welcome = try await again.login(identity, at: StreamPlace(epoch: before, lastSeq: seen[2].seq))
        #expect(!welcome.isResumed)
        #expect(welcome.epoch != before && welcome.epoch != .none)
        #expect(try await again.take(4).map(\.text) == ["a", "b", "c", "d"])
    }
}
