private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// What a `kill -9` may not undo (P1, P2, P3).
@Suite struct CrashTests {
    @Test(arguments: shardCounts)
    func `what was accepted for a device that is away survives a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let texts = (0..<50).map { "message \($0)" }
        let receipts = try await Backend(world).push(identity.cid, all: texts)
        try await world.restartAfterKill()
        let again = try await RawDevice(world)
        let welcome = try await again.login(identity)
        #expect(welcome.keptMessages == 50)
        let pushes = try await again.take(50)
        #expect(pushes.map(\.text) == texts)
        #expect(pushes.map(\.taskID) == receipts.map(\.taskID))
        #expect(pushes.allSatisfy { $0.isOffLine })
        try await Backend(world).push(identity.cid, "new")
        let new = try await again.push()
        #expect(new.text == "new")
        #expect(new.seq > pushes[49].seq)
        #expect(!new.isOffLine)
    }

    @Test(arguments: shardCounts)
    func `what an online device has not acknowledged survives a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let texts = (0..<30).map { "message \($0)" }
        try await Backend(world).push(identity.cid, all: texts)
        let seen = try await device.pushes(30)
        try await device.ack(seen[9].seq)
        #expect(try await device.settled().isEmpty)
        try await world.restartAfterKill()
        let again = try await RawDevice(world)
        // The ack may have been lost with the process, and may not: the client's place counts.
        let place = StreamPlace(epoch: try #require(device.welcome).epoch, lastSeq: seen[9].seq)
        let welcome = try await again.login(identity, at: place)
        #expect(welcome.isResumed)
        let pushes = try await again.take(20)
        #expect(pushes.map(\.seq) == seen.dropFirst(10).map(\.seq))
        #expect(pushes.map(\.text) == Array(texts.dropFirst(10)))
        #expect(try await again.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `an acknowledgement survives a kill with what was accepted after it`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, all: ["1", "2", "3"])
        let seen = try await device.pushes(3)
        try await device.ack(seen[1].seq)
        #expect(try await device.settled().isEmpty)
        try await backend.push(identity.cid, "4")
        try await world.restartAfterKill()
        let again = try await RawDevice(world)
        // No place named: the gateway alone must know.
        #expect(try await again.login(identity).keptMessages == 2)
        #expect(try await again.take(2).map(\.text) == ["3", "4"])
    }

    @Test(arguments: shardCounts)
    func `a device that never acknowledges gets all again after a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let silent = try ListenProcess(world, state: "device", ["--no-ack"])
        let cid = try await silent.online()
        try await Backend(world).push(cid, all: ["1", "2", "3"])
        #expect(try await silent.payloads(3).compactMap(\.payload) == ["1", "2", "3"])
        try await silent.kill()
        try await world.restartAfterKill()
        try await Backend(world).push(cid, "4")
        let device = try ListenProcess(world, state: "device", ["--count", "4"])
        #expect(try await device.payloads(4).compactMap(\.payload) == ["1", "2", "3", "4"])
        #expect(try await device.status() == 0)
    }

    @Test(arguments: shardCounts)
    func `a client comes back to a killed gateway and gets each message once`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try ListenProcess(world, state: "device")
        let cid = try await device.online()
        try await Backend(world).push(cid, all: ["1", "2"])
        #expect(try await device.payloads(2).compactMap(\.payload) == ["1", "2"])
        try await world.kill()
        #expect(try await device.event("offline").name == "offline")
        try await world.start()
        try await Backend(world).push(cid, all: ["3", "4"])
        #expect(try await device.payloads(2).compactMap(\.payload) == ["3", "4"])
        #expect(try await device.stop() == 0)
        var rest: [String?] = []
        while let event = try await device.event() { if event.name == "payload" { rest.append(event.payload) } }
        #expect(rest.isEmpty)
    }

    @Test(arguments: shardCounts)
    func `through kill after kill, what is accepted is delivered, in order and once`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try ListenProcess(world, state: "device")
        let cid = try await device.online()
        let perRound = 30
        let rounds = 5
        let accepted = Inbox<PushReceipt>()
        let address = world.backends
        async let all: Void = Self.pushStubbornly(cid, (rounds + 1) * perRound, at: address, accepted)
        var receipts: [PushReceipt] = []
        for round in 1...rounds + 1 {
            while receipts.count < round * perRound {
                guard case .item(let receipt) = await accepted.next(within: patience) else {
                    throw Unexpected("the backend got no answer")
                }
                receipts.append(receipt)
            }
            if round <= rounds { try await world.restartAfterKill() }
        }
        try await all
        let events = try await device.payloads(receipts.count)
        #expect(events.compactMap(\.payload) == receipts.indices.map { "message \($0)" })
        #expect(events.compactMap { $0.fields["taskId"] as? String } == receipts.map(\.taskID))
        #expect(Set(receipts.map(\.taskID)).count == receipts.count)
        // What would come twice would come before this.
        try await Backend(world).push(cid, "last")
        #expect(try await device.event("payload").payload == "last")
    }

    /// Sends one message after the other; repeats each, with its request id, until it is accepted.
    private static func pushStubbornly(
        _ cid: CID, _ count: Int, at address: SocketAddress, _ accepted: Inbox<PushReceipt>
    ) async throws {
        var backend: Backend?
        for number in 0..<count {
            let requestID = "stubborn-\(number)-\(cid.description.prefix(8))"
            let deadline = ContinuousClock.now + patience
            while true {
                do {
                    let connection: Backend
                    if let backend { connection = backend } else { connection = try await Backend(at: address) }
                    backend = connection
                    accepted.put(try await connection.push(cid, "message \(number)", requestID: requestID))
                    break
                } catch {
                    backend = nil
                    guard ContinuousClock.now < deadline else { throw error }
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
        }
    }
}
