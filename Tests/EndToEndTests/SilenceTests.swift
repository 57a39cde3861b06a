private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Silence, and what the gateway calls it.
@Suite struct SilenceTests {
    @Test(arguments: shardCounts)
    func `a client that is silent with a message in flight is probed, then closed`(shards: Int) async throws {
        let world = try await World(shards: shards, ["ackDeadlineMs": 300])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        device.answersPings = false
        try await Backend(world).push(identity.cid, "unanswered")
        #expect(try await device.push().text == "unanswered")
        #expect(try await device.next() == .ping)
        #expect(try await device.closeCode() == .ackDeadlineExpired)
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.push().isOffLine == false)
    }

    @Test(arguments: shardCounts)
    func `a client that answers but acknowledges nothing is closed`(shards: Int) async throws {
        let world = try await World(shards: shards, ["ackDeadlineMs": 2_000, "progressDeadlineMs": 3_500])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await Backend(world).push(identity.cid, "unacknowledged")
        #expect(try await device.closeCode() == .noAcknowledgement)
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.take(1).map(\.text) == ["unacknowledged"])
    }

    @Test(arguments: shardCounts)
    func `a client that says nothing for longer than its keep-alive is closed`(shards: Int) async throws {
        let world = try await World(shards: shards, ["keepAliveMinimumSeconds": 1])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let silent = try await RawDevice(world)
        #expect(try await silent.login(identity, keepAlive: 1).keepAlive == 1)
        #expect(try await silent.closeCode() == .keepAliveExpired)
        // A client that keeps time stays.
        let listener = try ListenProcess(world, state: "device")
        _ = try await listener.online()
    }

    @Test(arguments: shardCounts)
    func `wishes for keep-alive and window are granted within bounds`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let identity = try await RawDevice(world).register()
        let wishes: [(UInt64, UInt64)] = [(0, 240), (1, 5), (77, 77), (.max, 3_600)]
        for (wished, granted) in wishes {
            let device = try await RawDevice(world)
            #expect(try await device.login(identity, keepAlive: wished).keepAlive == granted)
        }
        for (wished, granted) in [(0, 64), (1, 1), (77, 77), (.max, 1_024)] as [(UInt64, UInt64)] {
            let device = try await RawDevice(world)
            #expect(try await device.login(identity, window: wished).window == granted)
        }
    }

    @Test(arguments: shardCounts)
    func `a handshake that takes too long is closed`(shards: Int) async throws {
        let world = try await World(shards: shards, ["handshakeDeadlineMs": 2_000])
        let nothing = try await RawDevice(world)
        let half = try await RawDevice(world)
        try await half.socket.send([1, 33, 1])
        let hello = try await RawDevice(world)
        try await hello.sayHello()
        for device in [nothing, half, hello] { #expect(try await device.closeCode() == .handshakeTooLong) }
        // A session is not a handshake.
        let device = try await RawDevice(world)
        try await device.register()
        let late = try await RawDevice(world)
        #expect(try await late.closeCode() == .handshakeTooLong)
        #expect(try await device.settled().isEmpty)
    }
}
