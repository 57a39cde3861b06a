private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// The table of descriptors is full: nobody who is attached notices.
@Suite struct DescriptorTests {
    @Test(arguments: shardCounts)
    func `descriptors that run out during a flush harm nobody who is attached`(shards: Int) async throws {
        let world = try await World(
            shards: shards,
            ["segmentBytes": 1 << 17, "keptSegments": 2, "messageCap": "unlimited", "handshakeDeadlineMs": 600_000],
            starts: false)
        world.descriptorLimit = 256
        try await world.start()
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let neighbour = try await RawDevice(world)
        let neighbourIdentity = try await neighbour.register()
        let backend = try await Backend(world)
        // Enough to have been moved to the tables, most of it, so that the flush has to open their files.
        let texts = (0..<800).map { "\($0) \(Hexadecimal.encode(Cryptography.random(600)))" }
        try await backend.push(identity.cid, all: texts)
        let back = try await RawDevice(world)
        try await back.login(identity, window: 4)
        var received = try await back.take(10).map(\.text)
        // Idle connections, more than there are descriptors for.
        let idle = try await fill(world, 160, refused: 8)
        received += try await back.take(790).map(\.text)
        #expect(received == texts)
        try await backend.push(neighbourIdentity.cid, "meanwhile")
        #expect(try await neighbour.take(1).map(\.text) == ["meanwhile"])
        // More is kept and moved while the table is full.
        try await back.sayBye()
        try await backend.push(identity.cid, all: texts)
        #expect(try await neighbour.settled().isEmpty)
        for socket in idle { socket.close() }
        let deadline = ContinuousClock.now + patience
        while true {
            if (try? await RawDevice(world).login(identity)) != nil { break }
            try #require(ContinuousClock.now < deadline, "no descriptor is given back")
        }
        let last = try await RawDevice(world)
        try await last.login(identity)
        #expect(try await last.take(800).map(\.text) == texts)
        let log = try await world.log(with: [])
        #expect(!log.contains("Too many open files") && !log.contains(" error "), "\(log)")
    }

    /// Somebody else's fault, such as a limit that was lowered under a running gateway: not even the reserve is there.
    @Test(arguments: shardCounts)
    func `with no descriptor left at all, whoever is attached gets what is kept and what is new`(shards: Int)
        async throws
    {
        let world = try await World(
            shards: shards,
            ["segmentBytes": 1 << 17, "keptSegments": 2, "messageCap": "unlimited", "handshakeDeadlineMs": 600_000])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let neighbour = try await RawDevice(world)
        let neighbourIdentity = try await neighbour.register()
        let backend = try await Backend(world)
        let texts = (0..<800).map { "\($0) \(Hexadecimal.encode(Cryptography.random(600)))" }
        try await backend.push(identity.cid, all: texts)
        let back = try await RawDevice(world)
        try await back.login(identity, window: 4)
        var received = try await back.take(10).map(\.text)
        let free = try await world.freezeDescriptors()
        let idle = try await fill(world, free + 40, refused: 4)
        received += try await back.take(790).map(\.text)
        #expect(received == texts)
        // Until the journal needs a new segment; then a push is refused, and nobody loses anything.
        var taken: [String] = []
        for number in 0..<100 {
            let text = "\(number) \(String(repeating: "x", count: 3_000))"
            let answer = try await backend.send(neighbourIdentity.cid, text)
            if answer.code == 0 { taken.append(text) } else { #expect(answer.code == 30019, "\(answer.text)") }
        }
        #expect(taken.count < 100)
        #expect(try await neighbour.take(taken.count).map(\.text) == taken)
        #expect(try await back.settled().isEmpty)
        try await world.unfreezeDescriptors()
        for socket in idle { socket.close() }
        let deadline = ContinuousClock.now + patience
        while try await backend.send(neighbourIdentity.cid, "after").code != 0 {
            try #require(ContinuousClock.now < deadline, "no push is taken again")
        }
        #expect(try await neighbour.take(1).map(\.text) == ["after"])
        try await RawDevice(world).register()
    }

    /// Opens connections that say nothing, and waits until so many of them were refused: whoever is taken in hears nothing.
    private func fill(_ world: World, _ count: Int, refused: Int) async throws -> [ByteSocket] {
        var silent: [ByteSocket] = []
        for number in 0..<count {
            silent.append(try await ByteSocket(to: number.isMultiple(of: 2) ? world.devices : world.backends))
        }
        let all = silent
        let deadline = ContinuousClock.now + patience
        while all.count - silent.count < refused {
            try #require(ContinuousClock.now < deadline, "\(all.count - silent.count) of \(all.count) are refused")
            var next: [ByteSocket] = []
            for socket in silent where !(await isRefused(socket)) { next.append(socket) }
            silent = next
        }
        return all
    }

    private func isRefused(_ socket: ByteSocket) async -> Bool {
        do { return try await socket.receive(within: .milliseconds(1)) != nil } catch { return false }
    }
}
