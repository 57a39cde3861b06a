internal import FerryCore
internal import FerryGateway
internal import FerryRouting
internal import FerryWire
internal import Testing

/// An acknowledgement arrives together with something that would make it too late.
struct AckRaces {
    /// A device that is attached, and has been sent `texts` unacknowledged.
    private func sent(
        _ texts: [String], _ world: RaceWorld, window: UInt64 = 0, ttl: Int = 86_400_000, alert: String? = nil
    ) throws -> (RaceDevice, RaceBackend, RaceLine) {
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach(window: window)
        for text in texts { backend.post(text, to: device, ttl: ttl, alert: alert) }
        world.settle()
        try #require(line.pushes().count == texts.count)
        try #require(backend.answers().areOnline == texts.map { _ in true })
        return (device, backend, line)
    }

    // MARK: - The end of a connection

    @Test(arguments: [true, false])
    func `An ack that arrives with the end of the connection counts, one that does not arrive leaves a stub`(
        isAckSent: Bool
    ) throws {
        let world = try RaceWorld()
        let (device, _, line) = try sent(["a"], world)
        if isAckSent { line.ack(Seq(1)) }
        line.close()
        world.settle()
        world.pass(RaceWorld.grace)
        world.settle()
        #expect(world.wake.count == (isAckSent ? 0 : 1))
        #expect(world.ended(.delivered) == (isAckSent ? 1 : 0))
        let again = try device.attach()
        world.settle()
        #expect(again.stream() == (isAckSent ? [] : [.push("a", true)]))
        try world.checkEnd(kept: isAckSent ? 0 : 1)
    }

    @Test(arguments: [true, false])
    func `An ack in the tick of the ack deadline keeps the session, one behind it comes too late`(isAckFirst: Bool)
        throws
    {
        let world = try RaceWorld()
        let (device, _, line) = try sent(["a"], world)
        world.pass(RaceWorld.ackDeadline / 2)
        world.turn()
        #expect(line.stream() == [.ping])
        world.pass(RaceWorld.ackDeadline / 2)
        if isAckFirst { line.ack(Seq(1)) }
        world.turn()
        if isAckFirst {
            world.settle()
            #expect(line.stream() == [])
            #expect(world.sessions == 1)
            #expect(world.ended(.delivered) == 1)
        } else {
            line.ack(Seq(1))
            world.settle()
            #expect(line.stream() == [.close(.ackDeadlineExpired)])
            #expect(world.sessions == 0)
            #expect(world.kept == 1, "what the closed session says does not count")
            let again = try device.attach(lastSeq: Seq(1))
            world.settle()
            #expect(again.stream() == [], "the login says it again")
            #expect(world.ended(.delivered) == 1)
        }
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [true, false])
    func `An ack and the word background in one segment, in either order, leave no stub`(isAckFirst: Bool) throws {
        let world = try RaceWorld()
        let (_, _, line) = try sent(["a"], world)
        let ack = DeviceFrame.ack(AckFrame(seq: Seq(1)))
        if isAckFirst { line.send(ack, .background) } else { line.send(.background, ack) }
        world.settle()
        #expect(world.sessions == 0)
        #expect(world.ended(.delivered) == 1)
        world.pass(60_000)
        world.settle()
        #expect(world.wake.count == 0)
        #expect(!line.isEnded, "the connection stays")
        try world.checkEnd(kept: 0)
    }

    @Test func `Of two messages the ack of the first and the word background in one segment leave one stub`() throws {
        let world = try RaceWorld()
        let (_, _, line) = try sent(["a", "b"], world)
        line.send(.ack(AckFrame(seq: Seq(1))), .background)
        world.settle()
        #expect(world.ended(.delivered) == 1)
        #expect(world.wake.count == 1)
        line.ack(Seq(2))
        world.settle()
        #expect(world.ended(.delivered) == 2, "acks count in the background")
        try world.checkEnd(kept: 0)
    }

    @Test func `An ack and bye in one segment: delivered, and no stub`() throws {
        let world = try RaceWorld()
        let (_, _, line) = try sent(["a"], world)
        line.send(.ack(AckFrame(seq: Seq(1))), .bye)
        world.settle()
        #expect(world.ended(.delivered) == 1)
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 0)
    }

    // MARK: - A login that says what the ack did not

    @Test(arguments: [true, false])
    func `A login that covers what was in flight delivers it, and the rest comes again with its numbers`(
        isOlderOpen: Bool
    ) throws {
        let world = try RaceWorld()
        let (device, _, line) = try sent(["a", "b", "c"], world)
        if !isOlderOpen {
            line.close()
            world.settle()
        }
        let again = try device.attach(lastSeq: Seq(2))
        world.settle()
        let pushes = again.pushes()
        #expect(pushes.map(\.seq) == [Seq(3)])
        #expect(pushes.map(\.flags) == [[]])
        #expect(world.ended(.delivered) == 2)
        #expect(world.wake.count == 0)
        again.ack(Seq(3))
        try world.checkEnd(kept: 0)
    }

    @Test func `A login that covers everything leaves nothing to send, and no stub`() throws {
        let world = try RaceWorld()
        let (device, _, line) = try sent(["a", "b"], world)
        line.close()
        world.settle()
        let again = try device.attach(lastSeq: Seq(2))
        world.settle()
        #expect(again.stream() == [])
        #expect(world.ended(.delivered) == 2)
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 0)
    }

    // MARK: - The disk

    @Test(arguments: [true, false])
    func `Power lost between an ack and its sync brings the message again with its number, after the sync not`(
        isSynced: Bool
    ) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach()
        backend.post("a", to: device)
        world.settle()
        let first = line.pushes()
        line.ack(Seq(1))
        world.turn()
        #expect(world.ended(.delivered) == 1)
        if isSynced {
            // So long it waits for what else goes to the disk.
            world.pass(2)
            world.settle()
        }
        try world.cutPower()
        #expect(world.kept == (isSynced ? 0 : 1))
        let again = try device.attach()
        world.settle()
        let second = again.pushes()
        #expect(second.map(\.seq) == (isSynced ? [] : first.map(\.seq)))
        #expect(second.map(\.messageID) == (isSynced ? [] : first.map(\.messageID)))
        #expect(second.map(\.flags) == (isSynced ? [] : [.offLine]))
        try world.checkEnd(kept: isSynced ? 0 : 1)
    }

    @Test
    func `A login with the number of an ack that a power cut took from the disk delivers the message all the same`()
        throws
    {
        let world = try RaceWorld()
        let (device, _, line) = try sent(["a"], world)
        line.ack(Seq(1))
        world.turn()
        try world.cutPower()
        let again = try device.attach(lastSeq: Seq(1))
        world.settle()
        #expect(again.stream() == [])
        #expect(world.ended(.delivered) == 1)
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 0)
    }

    // MARK: - Expiry

    @Test func `An ack behind the time to live counts while its session lives`() throws {
        let world = try RaceWorld()
        let (_, _, line) = try sent(["a"], world, ttl: 1_600)
        world.pass(1_600)
        world.settle()
        #expect(world.kept == 1, "in flight it does not expire")
        line.ack(Seq(1))
        world.settle()
        #expect(world.ended(.delivered) == 1)
        #expect(world.ended(.expired) == 0)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [true, false])
    func `An expiry in the tick of the login that covers the message: whichever is first decides, once`(
        isLoginFirst: Bool
    ) throws {
        let world = try RaceWorld()
        let (device, _, line) = try sent(["a"], world, ttl: 3_200)
        line.close()
        world.settle()
        let again = try device.greet()
        world.pass(3_200)
        if !isLoginFirst { world.turn() }
        again.login(lastSeq: Seq(1))
        world.settle()
        #expect(again.takeWelcome() != nil)
        #expect(again.stream() == [], "no gap about what the app has")
        #expect(world.ended(.delivered) == (isLoginFirst ? 1 : 0))
        #expect(world.ended(.expired) == (isLoginFirst ? 0 : 1))
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [true, false])
    func `An expiry in the tick of a login that does not cover the message is a gap, told once`(isLoginFirst: Bool)
        throws
    {
        let world = try RaceWorld()
        let (device, _, line) = try sent(["a"], world, ttl: 3_200)
        line.close()
        world.settle()
        let again = try device.greet()
        world.pass(3_200)
        if !isLoginFirst { world.turn() }
        again.login()
        world.turn()
        #expect(again.takeWelcome() != nil)
        #expect(again.stream() == [], "the drop is not on disk")
        world.settle()
        #expect(again.stream() == [.gap(expired: 1, overflowed: 0)])
        again.ack(Seq(1))
        world.settle()
        #expect(again.stream() == [])
        #expect(world.ended(.expired) == 1)
        #expect(world.ended(.delivered) == 0)
        try world.checkEnd(kept: 0)
    }

    // MARK: - Overflow

    @Test(arguments: [true, false])
    func `An ack before the message that is one too many saves the oldest, behind it the oldest is told as a gap`(
        isAckFirst: Bool
    ) throws {
        let world = try RaceWorld { $0.delivery.messageCap = 3 }
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach(window: 1)
        for text in ["a", "b", "c"] { backend.post(text, to: device) }
        world.settle()
        #expect(line.stream() == [.push("a", false)])
        backend.post("d", to: device)
        world.turn()
        if isAckFirst {
            line.ack(Seq(1))
            world.sync()
        } else {
            world.sync()
            line.ack(Seq(1))
        }
        // One tick sees both, in this order.
        world.turn()
        world.settle()
        if isAckFirst {
            #expect(line.stream() == [.push("b", false)])
            line.ack(Seq(2))
        } else {
            #expect(line.stream() == [.gap(expired: 0, overflowed: 1)])
            line.ack(Seq(2))
        }
        world.settle()
        #expect(line.stream() == [.push("c", false)])
        line.ack(Seq(3))
        world.settle()
        #expect(line.stream() == [.push("d", false)])
        line.ack(Seq(4))
        world.settle()
        #expect(world.ended(.overflowed) == (isAckFirst ? 0 : 1))
        #expect(world.ended(.delivered) == (isAckFirst ? 4 : 3))
        try world.checkEnd(kept: 0)
    }

    // MARK: - A full window and a gap

    @Test(arguments: [true, false])
    func `With a full window a gap waits for its sync and for room, and nothing passes it`(isAckFirst: Bool) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach(window: 1)
        backend.post("a", to: device)
        backend.post("b", to: device, ttl: 1_600)
        backend.post("c", to: device)
        world.settle()
        #expect(line.stream() == [.push("a", false)])
        world.pass(1_600)
        world.turn()
        #expect(world.ended(.expired) == 1)
        if isAckFirst {
            line.ack(Seq(1))
            world.turn()
            #expect(line.stream() == [], "room, and the drop not on disk")
            world.settle()
        } else {
            world.settle()
            #expect(line.stream() == [], "on disk, and no room")
            line.ack(Seq(1))
            world.settle()
        }
        #expect(line.stream() == [.gap(expired: 1, overflowed: 0)])
        line.ack(Seq(2))
        world.settle()
        #expect(line.stream() == [.push("c", false)])
        line.ack(Seq(3))
        world.settle()
        #expect(world.ended(.delivered) == 2)
        try world.checkEnd(kept: 0)
    }

    @Test func `Power lost before a gap's ack is on disk tells it again`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device, ttl: 1_600)
        world.settle()
        world.pass(1_600)
        world.settle()
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.gap(expired: 1, overflowed: 0)])
        line.ack(Seq(1))
        world.turn()
        try world.cutPower()
        let again = try device.attach()
        world.settle()
        #expect(again.stream() == [.gap(expired: 1, overflowed: 0)])
        again.ack(Seq(1))
        world.settle()
        world.pass(2)
        world.settle()
        try world.cutPower()
        let last = try device.attach()
        world.settle()
        #expect(last.stream() == [])
        try world.checkEnd(kept: 0)
    }
}
