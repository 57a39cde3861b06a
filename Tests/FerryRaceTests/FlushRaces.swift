internal import FerryCore
internal import FerryGateway
internal import FerryStore
internal import FerryWire
internal import Testing

/// Messages that are accepted while what is kept is on its way to a device that came back.
struct FlushRaces {
    private func away(_ texts: [String], _ world: RaceWorld) throws -> (RaceDevice, RaceBackend) {
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        for text in texts { backend.post(text, to: device) }
        world.settle()
        try #require(backend.answers().areOnline == texts.map { _ in false })
        return (device, backend)
    }

    @Test func `A message accepted while the flush is read waits behind what is kept, and is not marked offLine`()
        throws
    {
        let world = try RaceWorld()
        let (device, backend) = try away(["a", "b"], world)
        let line = try device.attach()
        #expect(line.stream() == [], "the read is under way")
        backend.post("c", to: device)
        world.turn()
        // The disk answers the new message and the read together.
        world.sync()
        world.turn()
        world.settle()
        #expect(line.stream() == [.push("a", true), .push("b", true), .push("c", false)])
        #expect(backend.answers().areOnline == [true])
        #expect(world.wake.count == 1)
        line.ack(Seq(3))
        try world.checkEnd(kept: 0)
    }

    @Test func `A message synced before the flush was asked for waits behind what is kept, marked offLine`() throws {
        let world = try RaceWorld()
        let (device, backend) = try away(["a", "b"], world)
        let line = try device.greet()
        backend.post("c", to: device)
        world.turn()
        world.sync()
        line.login()
        world.settle()
        #expect(line.takeWelcome() != nil)
        #expect(line.stream() == [.push("a", true), .push("b", true), .push("c", true)])
        #expect(backend.answers().areOnline == [false])
        line.ack(Seq(3))
        try world.checkEnd(kept: 0)
    }

    @Test func `A message accepted while the window is full of kept ones comes behind them, one for each ack`() throws {
        let world = try RaceWorld()
        let (device, backend) = try away(["a", "b", "c"], world)
        let line = try device.attach(window: 2)
        world.settle()
        #expect(line.stream() == [.push("a", true), .push("b", true)])
        backend.post("d", to: device)
        world.settle()
        #expect(line.stream() == [])
        line.ack(Seq(1))
        world.settle()
        #expect(line.stream() == [.push("c", true)])
        line.ack(Seq(2))
        world.settle()
        #expect(line.stream() == [.push("d", false)])
        line.ack(Seq(4))
        world.settle()
        #expect(world.ended(.delivered) == 4)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [true, false])
    func `An ack of the last kept message and a new message in one tick: live follows the flush`(isAckFirst: Bool)
        throws
    {
        let world = try RaceWorld()
        let (device, backend) = try away(["a"], world)
        let line = try device.attach(window: 1)
        world.settle()
        #expect(line.stream() == [.push("a", true)])
        backend.post("b", to: device)
        world.turn()
        if isAckFirst {
            line.ack(Seq(1))
            world.sync()
        } else {
            world.sync()
            line.ack(Seq(1))
        }
        world.turn()
        world.settle()
        #expect(line.stream() == [.push("b", false)])
        line.ack(Seq(2))
        try world.checkEnd(kept: 0)
    }

    @Test func `A session that ends while its flush is read sends nothing of it, and the next one gets all`() throws {
        let world = try RaceWorld()
        let (device, backend) = try away(["a", "b"], world)
        let line = try device.attach()
        line.send(.background)
        world.turn()
        backend.post("c", to: device)
        world.settle()
        #expect(line.stream() == [], "nothing is pushed in the background")
        line.send(.foreground(ForegroundFrame(lastSeq: .zero)))
        world.settle()
        #expect(line.stream() == [.resumed, .push("a", true), .push("b", true), .push("c", true)])
        line.ack(Seq(3))
        try world.checkEnd(kept: 0)
    }

    @Test
    func `Background and foreground in one segment while a flush is read: the new session gets each message once`()
        throws
    {
        let world = try RaceWorld()
        let (device, _) = try away(["a", "b"], world)
        let line = try device.attach()
        line.send(.background, .foreground(ForegroundFrame(lastSeq: .zero)))
        world.settle()
        #expect(line.stream() == [.resumed, .push("a", true), .push("b", true)])
        line.ack(Seq(2))
        world.settle()
        #expect(world.ended(.delivered) == 2)
        #expect(world.wake.count == 1, "that of the first absence")
        try world.checkEnd(kept: 0)
    }

    @Test func `A kept message that expires while it is read is told as a gap and not sent`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device, ttl: 1_600)
        backend.post("b", to: device)
        world.settle()
        let line = try device.attach()
        world.pass(1_600)
        world.settle()
        #expect(line.stream() == [.gap(expired: 1, overflowed: 0), .push("b", true)])
        line.ack(Seq(2))
        world.settle()
        #expect(world.ended(.expired) == 1)
        #expect(world.ended(.delivered) == 1)
        try world.checkEnd(kept: 0)
    }

    @Test func `A disk that fails to read the flush is asked again, and the order stays`() throws {
        let world = try RaceWorld()
        let (device, backend) = try away(["a", "b"], world)
        let line = try device.attach()
        world.hurt { $0.reads = 1 }
        backend.post("c", to: device)
        world.settle()
        #expect(line.stream() == [])
        world.pass(1_008)
        world.settle()
        #expect(line.stream() == [.push("a", true), .push("b", true), .push("c", false)])
        line.ack(Seq(3))
        try world.checkEnd(kept: 0)
    }
}
