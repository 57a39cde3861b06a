internal import FerryCore
internal import FerryGateway
internal import FerryStore
internal import FerryWire
internal import Testing

/// A disk that stands still: what depends on it waits, and nothing else does.
struct DiskStallTests {
    private static let stall = 500
    private static let step = 25

    @Test func `A disk that stands still for 500 ms leaves sessions up, and nothing leaves before its sync`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach()
        world.settle()
        try #require(line.stream() == [])
        let texts = (0..<Self.stall / Self.step).map { "\($0) in the stall" }
        for text in texts {
            backend.post(text, to: device)
            line.send(.ping)
            world.pass(Self.step)
            for _ in 0..<3 { world.turn() }
            #expect(line.stream() == [.pong])
            #expect(backend.answers().isEmpty)
        }
        world.settle()
        #expect(line.stream() == texts.map { .push($0, false) })
        #expect(backend.answers().areOnline == texts.map { _ in true })
        #expect(world.wake.count == 0)
        line.ack(Seq(UInt64(texts.count)))
        world.settle()
        #expect(world.ended(.delivered) == texts.count)
        try world.checkEnd(kept: 0)
    }

    /// What is kept is read from files that are there: a stall of writes need not hold it up.
    @Test func `What was kept before is collected while the journal stands still`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        world.settle()
        try #require(backend.answers().areOnline == [false])
        let line = try device.attach()
        backend.post("b", to: device, request: "a request of its own")
        for _ in 0..<Self.stall / Self.step {
            world.pass(Self.step)
            world.turn()
            world.step(.reader)
        }
        #expect(line.stream() == [.push("a", true)])
        #expect(backend.answers().isEmpty)
        world.settle()
        #expect(line.stream() == [.push("b", false)])
        line.ack(Seq(2))
        try world.checkEnd(kept: 0)
    }
}
