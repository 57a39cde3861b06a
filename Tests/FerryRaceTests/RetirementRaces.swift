internal import FerryCore
internal import FerryGateway
internal import FerryStore
internal import FerryWire
internal import Testing

/// What happens to a device while the journal's segment with its messages goes to the tables, at every moment of that.
struct RetirementRaces {
    /// Turns and syncs of one retirement, from the first record that it needs to well behind its end.
    private static let moments = 14

    /// Puts so much into the journal that the segments before go to the tables, a turn or a sync at a time, and calls
    /// `event` before the move with that number.
    private func retire(_ world: RaceWorld, at moment: Int, _ event: () throws -> Void) throws {
        let filler = try RaceDevice(world, number: 200, hasToken: false)
        let backend = try RaceBackend(world)
        let text = String(repeating: "x", count: 3_000)
        for move in 0..<Self.moments {
            if move == moment { try event() }
            if move % 2 == 0 {
                if move < 10 {
                    for number in 0..<2 {
                        backend.post(text, to: filler, request: "filler-request-\(move)-\(number)", ttl: nil)
                    }
                }
                world.turn()
            } else {
                world.sync()
            }
        }
        world.settle()
        let answers = backend.answers()
        try #require(answers.count == 10)
        let isRetired = !world.disk.list().contains("journal-0000000001.seg")
        try #require(isRetired, "the first segment is in the tables")
    }

    /// A device with a token, two messages in flight and one that waits for room.
    private func streaming(_ world: RaceWorld) throws -> (RaceDevice, RaceBackend, RaceLine) {
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach(window: 2)
        for text in ["a", "b", "c"] { backend.post(text, to: device) }
        world.settle()
        try #require(line.stream() == [.push("a", false), .push("b", false)])
        try #require(backend.answers().count == 3)
        return (device, backend, line)
    }

    @Test(arguments: 0..<Self.moments)
    func `An ack at any moment of a retirement leaves no message behind on disk, and lets the next one come`(
        moment: Int
    ) throws {
        let world = try RaceWorld()
        let (_, _, line) = try streaming(world)
        try retire(world, at: moment) { line.ack(Seq(2)) }
        #expect(line.stream() == [.push("c", false)])
        #expect(world.ended(.delivered) == 2)
        line.ack(Seq(3))
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: 0..<Self.moments)
    func
        `A session lost at any moment of a retirement loses no message, and the flush reads them from wherever they are`(
            moment: Int
        ) throws
    {
        let world = try RaceWorld()
        let (device, _, line) = try streaming(world)
        try retire(world, at: moment) { line.close() }
        let again = try device.attach()
        world.settle()
        #expect(again.stream() == [.push("a", false), .push("b", false), .push("c", false)])
        again.ack(Seq(3))
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: 0..<Self.moments)
    func `A login that takes over at any moment of a retirement gets each message once`(moment: Int) throws {
        let world = try RaceWorld()
        let (device, _, line) = try streaming(world)
        let newer = try device.greet()
        try retire(world, at: moment) { newer.login(lastSeq: Seq(1)) }
        #expect(line.stream() == [.close(.takenOver)])
        #expect(newer.takeWelcome() != nil)
        #expect(newer.stream() == [.push("b", false), .push("c", false)])
        newer.ack(Seq(3))
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: 0..<Self.moments)
    func `A message that expires at any moment of a retirement is told as a gap, also after a power cut`(moment: Int)
        throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device, ttl: 1_600)
        backend.post("b", to: device)
        world.settle()
        try retire(world, at: moment) { world.pass(1_600) }
        world.settle()
        #expect(world.ended(.expired) == 1 + 10, "the message, and the live-only ones that filled the journal")
        try world.cutPower()
        #expect(world.kept == 1)
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.gap(expired: 1, overflowed: 0), .push("b", true)])
        line.ack(Seq(2))
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: 0..<Self.moments)
    func `Power lost at any moment of a retirement loses no kept message and brings no acknowledged one back`(
        moment: Int
    ) throws {
        let world = try RaceWorld()
        let (device, _, line) = try streaming(world)
        line.ack(Seq(1))
        world.settle()
        let filler = try RaceDevice(world, number: 200, hasToken: false)
        let backend = try RaceBackend(world)
        let text = String(repeating: "x", count: 3_000)
        for move in 0..<moment {
            if move % 2 == 0 {
                for number in 0..<2 {
                    backend.post(text, to: filler, request: "filler-request-\(move)-\(number)", ttl: nil)
                }
                world.turn()
            } else {
                world.sync()
            }
        }
        try world.cutPower()
        #expect(world.kept == 2)
        let again = try device.attach()
        world.settle()
        #expect(again.stream() == [.push("b", true), .push("c", true)])
        again.ack(Seq(3))
        world.pass(RaceWorld.grace)
        world.settle()
        try world.checkEnd(kept: 0)
    }

    @Test func `A flush that the disk failed to read finds its messages where they went meanwhile`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        for text in ["a", "b"] { backend.post(text, to: device) }
        world.settle()
        let line = try device.attach()
        world.hurt { $0.reads = 1 }
        world.settle()
        #expect(line.stream() == [], "the read failed")
        try retire(world, at: 0) {}
        world.pass(1_008)
        world.settle()
        #expect(line.stream() == [.push("a", true), .push("b", true)])
        line.ack(Seq(2))
        try world.checkEnd(kept: 0)
    }
}
