internal import FerryAPNS
internal import FerryCore
internal import FerryGateway
internal import FerryWire
internal import Testing

/// A device comes back, or goes, while its stub is on its way.
struct StubRaces {
    private func inFlight(
        _ world: RaceWorld, alert: String? = nil
    ) throws -> (RaceDevice, RaceBackend, RaceLine) {
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach()
        backend.post("a", to: device, alert: alert)
        world.settle()
        try #require(line.stream() == [.push("a", false)])
        try #require(backend.answers().areOnline == [true])
        return (device, backend, line)
    }

    // MARK: - Foreground against a due stub

    @Test(arguments: [true, false])
    func `Foreground before a due stub is on disk takes it back, behind that it went out once`(isForegroundFirst: Bool)
        throws
    {
        let world = try RaceWorld()
        let (_, _, line) = try inFlight(world)
        line.send(.background)
        world.turn()
        #expect(world.wake.count == 0, "the record that it is due is not on disk")
        if !isForegroundFirst { world.settle() }
        line.send(.foreground(ForegroundFrame(lastSeq: .zero)))
        world.turn()
        world.settle()
        #expect(line.stream() == [.resumed, .push("a", true)])
        #expect(world.wake.count == (isForegroundFirst ? 0 : 1))
        line.ack(Seq(1))
        world.settle()
        for _ in 0..<3 {
            world.pass(60_000)
            world.settle()
        }
        #expect(world.wake.count == (isForegroundFirst ? 0 : 1))
        try world.checkEnd(kept: 0)
    }

    @Test func `Background and foreground in one segment ask for no stub, and mark what was in flight`() throws {
        let world = try RaceWorld()
        let (_, _, line) = try inFlight(world)
        line.send(.background, .foreground(ForegroundFrame(lastSeq: .zero)))
        world.settle()
        #expect(line.stream() == [.resumed, .push("a", true)])
        #expect(world.wake.count == 0)
        #expect(world.sessions == 1)
        try world.checkEnd(kept: 1)
    }

    @Test func `A stub taken back in time is due again when the device goes again, once`() throws {
        let world = try RaceWorld()
        let (_, _, line) = try inFlight(world)
        line.send(.background)
        world.turn()
        line.send(.foreground(ForegroundFrame(lastSeq: .zero)))
        world.settle()
        #expect(world.wake.count == 0)
        line.send(.background)
        world.settle()
        #expect(world.wake.count == 1)
        try world.checkEnd(kept: 1)
    }

    @Test(arguments: [true, false])
    func `Foreground while the text of an own alert is read takes the stub back, behind that it went out once`(
        isForegroundFirst: Bool
    ) throws {
        let world = try RaceWorld()
        let (_, _, line) = try inFlight(world, alert: "hello")
        line.send(.background)
        // Two turns and the sync between them bring the request to read the alert's text; then the reader has not had its turn.
        world.turn()
        world.sync()
        world.turn()
        #expect(world.waiting("reads") == 1)
        if !isForegroundFirst { world.settle() }
        line.send(.foreground(ForegroundFrame(lastSeq: .zero)))
        world.turn()
        world.settle()
        #expect(line.stream() == [.resumed, .push("a", true)])
        #expect(world.wake.count == (isForegroundFirst ? 0 : 1))
        line.ack(Seq(1))
        try world.checkEnd(kept: 0)
    }

    // MARK: - The answer of the wake-up channel

    @Test(arguments: [true, false])
    func `An answer that comes after the device came back settles the stub and asks for no other`(isAcknowledged: Bool)
        throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        world.settle()
        #expect(world.wake.count == 1)
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.push("a", true)])
        if isAcknowledged {
            line.ack(Seq(1))
            world.settle()
        }
        world.wake.answerAll()
        world.settle()
        #expect(world.waiting("stubsInFlight") == 0)
        line.send(.bye)
        world.settle()
        world.pass(RaceWorld.cooldown)
        world.settle()
        #expect(world.wake.count == 1, "one stub for one message")
        try world.checkEnd(kept: isAcknowledged ? 0 : 1)
    }

    @Test(arguments: [true, false])
    func `A message for a device that came and went before the answer waits for it, and for the cool-down`(
        isRefused: Bool
    ) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        world.settle()
        let line = try device.attach()
        world.settle()
        line.send(.ack(AckFrame(seq: Seq(1))), .bye)
        world.settle()
        backend.post("b", to: device)
        world.settle()
        #expect(world.wake.count == 1, "one at a time")
        world.wake.answerAll(isRefused ? .refused("not now") : .accepted)
        world.settle()
        world.pass(RaceWorld.cooldown - RaceWorld.tick)
        world.settle()
        #expect(world.wake.count == 1, "not before the cool-down is over")
        world.pass(RaceWorld.tick)
        world.settle()
        #expect(world.wake.count == 2)
        try world.checkEnd(kept: 1)
    }

    @Test(arguments: [true, false])
    func `The end of the cool-down in the tick of a login: the device that came first gets no second stub`(
        isLoginFirst: Bool
    ) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        world.settle()
        world.wake.answerAll()
        world.settle()
        backend.post("b", to: device)
        world.settle()
        let line = try device.greet()
        world.pass(RaceWorld.cooldown)
        if !isLoginFirst { world.turn() }
        line.login()
        world.settle()
        #expect(line.takeWelcome() != nil)
        #expect(line.stream() == [.push("a", true), .push("b", true)])
        #expect(world.wake.count == (isLoginFirst ? 1 : 2))
        line.ack(Seq(2))
        try world.checkEnd(kept: 0)
    }

    // MARK: - The end of a session against a commit

    @Test(arguments: [true, false])
    func `A session lost in the tick of a commit: sent or not, the message is kept, and comes once within the grace`(
        isCommitFirst: Bool
    ) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach()
        world.settle()
        backend.post("a", to: device)
        world.turn()
        if isCommitFirst {
            world.sync()
            line.close()
        } else {
            line.close()
            world.sync()
        }
        world.turn()
        #expect(backend.answers().areOnline == [true])
        #expect(world.sessions == 0)
        #expect(world.kept == 1)
        let again = try device.attach()
        world.settle()
        #expect(again.stream() == [.push("a", false)])
        #expect(world.wake.count == 0)
        again.ack(Seq(1))
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [true, false])
    func `Bye in the tick of a commit: one stub, and the message comes marked offLine`(isCommitFirst: Bool) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach()
        world.settle()
        backend.post("a", to: device)
        world.turn()
        if isCommitFirst { world.sync() }
        line.send(.bye)
        if !isCommitFirst { world.sync() }
        world.turn()
        world.settle()
        #expect(world.wake.count == 1)
        let again = try device.attach()
        world.settle()
        #expect(again.stream() == [.push("a", true)])
        again.ack(Seq(1))
        try world.checkEnd(kept: 0)
    }

    @Test func `A live-only message whose session is lost before its commit has expired, and asks for no stub`() throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach()
        world.settle()
        backend.post("a", to: device, ttl: nil)
        world.turn()
        line.close()
        world.sync()
        world.turn()
        world.settle()
        #expect(world.ended(.expired) == 1)
        let again = try device.attach()
        world.settle()
        #expect(again.stream() == [])
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 0)
    }

    // MARK: - The push token

    @Test(arguments: [1, 2])
    func `A token that another device names while the stub of its former holder is not due yet wakes nobody for that`(
        shards: Int
    ) throws {
        let world = try RaceWorld(shards: shards)
        let former = try RaceDevice(world)
        let later = try RaceDevice(world, number: 2)
        let backend = try RaceBackend(world)
        let formerLine = try former.attach()
        let laterLine = try later.attach()
        backend.post("a", to: former)
        world.settle()
        #expect(formerLine.stream() == [.push("a", false)])
        let token = try #require(former.token)
        laterLine.send(.deviceToken(DeviceTokenFrame(change: .set(token))))
        world.settle()
        formerLine.send(.bye)
        world.settle()
        #expect(world.wake.count == 0)
        backend.post("b", to: later)
        laterLine.send(.bye)
        world.settle()
        #expect(world.wake.stubs.map(\.token) == [token.bytes], "one, for the device that holds it now")
        try world.checkEnd(kept: 2)
    }

    /// It was recorded as refused for want of a token, and never asked for again.
    @Test func `An own alert whose device loses its token while the text is read is due again with the next token`()
        throws
    {
        let world = try RaceWorld()
        let former = try RaceDevice(world)
        let later = try RaceDevice(world, number: 2)
        let backend = try RaceBackend(world)
        let formerLine = try former.attach()
        let laterLine = try later.attach()
        backend.post("a", to: former, alert: "hello")
        world.settle()
        #expect(formerLine.stream() == [.push("a", false)])
        let token = try #require(former.token)
        formerLine.send(.background)
        laterLine.send(.deviceToken(DeviceTokenFrame(change: .set(token))))
        world.turn()
        world.sync()
        // In this turn the text is asked for, and the loss of the token goes to the disk, which is done first.
        world.turn()
        #expect(world.waiting("reads") == 1)
        world.settle()
        #expect(world.wake.count == 0)
        #expect(world.waiting("stubsInFlight") == 0)
        formerLine.send(.deviceToken(DeviceTokenFrame(change: .set(token))))
        world.settle()
        #expect(world.wake.stubs.map(\.token) == [token.bytes])
        try world.checkEnd(kept: 1)
    }

    // MARK: - The power

    @Test(arguments: [true, false])
    func `Power lost before a due stub was asked for asks for it after the restart, unless the device came first`(
        comesBack: Bool
    ) throws {
        let world = try RaceWorld()
        let (device, _, line) = try inFlight(world)
        line.send(.background)
        world.turn()
        world.sync()
        try world.cutPower()
        #expect(world.kept == 1)
        if comesBack {
            let again = try device.attach()
            world.settle()
            #expect(again.stream() == [.push("a", true)])
            again.ack(Seq(1))
            world.settle()
        }
        world.pass(RaceWorld.grace + 1_008)
        world.settle()
        #expect(world.wake.count == (comesBack ? 0 : 1))
        try world.checkEnd(kept: comesBack ? 0 : 1)
    }

    @Test
    func `A stub that went out before the power was lost and has no answer on disk goes out again under its own name`()
        throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        world.settle()
        let first = world.wake.stubs
        try world.cutPower()
        world.pass(RaceWorld.grace + 1_008)
        world.settle()
        #expect(first.count == 1)
        #expect(world.wake.stubs.map(\.headers) == first.map(\.headers), "the same apns-id")
        try world.checkEnd(kept: 1)
    }
}
