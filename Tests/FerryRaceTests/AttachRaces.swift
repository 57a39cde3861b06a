internal import FerryCore
internal import FerryGateway
internal import FerryWire
internal import Testing

/// A device comes while something else happens to it.
struct AttachRaces {
    @Test func `A device that attaches while its message is synced gets it once, marked offLine, without a stub`()
        throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        world.turn()
        let line = try device.attach()
        #expect(line.stream() == [], "nothing leaves before its sync")
        #expect(backend.answers() == [])
        world.sync()
        world.turn()
        #expect(line.stream() == [.push("a", true)])
        #expect(backend.answers().areOnline == [false])
        line.ack(Seq(1))
        world.settle()
        #expect(line.stream() == [])
        #expect(world.wake.count == 0)
        #expect(world.ended(.delivered) == 1)
        try world.checkEnd(kept: 0)
    }

    @Test func `A device that attaches after its message is synced gets it once, and one stub went out before`() throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        world.settle()
        #expect(backend.answers().areOnline == [false])
        #expect(world.wake.count == 1)
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.push("a", true)])
        line.ack(Seq(1))
        world.settle()
        #expect(world.wake.count == 1)
        #expect(world.ended(.delivered) == 1)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [true, false])
    func `A push and the login behind or before it in one tick: the message comes once`(pushIsFirst: Bool) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.greet()
        if pushIsFirst { backend.post("a", to: device) }
        line.login()
        if !pushIsFirst { backend.post("a", to: device) }
        world.settle()
        #expect(line.takeWelcome() != nil)
        #expect(line.stream() == [.push("a", pushIsFirst)])
        #expect(backend.answers().areOnline == [!pushIsFirst])
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 1)
    }

    @Test func `A device that went and came back while its message was synced gets it marked offLine`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let first = try device.attach()
        backend.post("a", to: device)
        world.turn()
        first.send(.bye)
        world.turn()
        let second = try device.attach()
        world.settle()
        #expect(first.stream() == [])
        #expect(second.stream() == [.push("a", true)])
        #expect(backend.answers().areOnline == [true], "as it was at acceptance")
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 1)
    }

    // MARK: - Two at once

    @Test(arguments: [1, 2, 3])
    func `Of two sessions that attach in one tick the later one stays, and only it gets what is kept`(shards: Int)
        throws
    {
        let world = try RaceWorld(shards: shards)
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        world.settle()
        let first = try device.greet(shard: 0)
        let second = try device.greet(shard: shards - 1)
        first.login()
        second.login()
        world.settle()
        // Over several shards either may be the later.
        let lines = [first, second].map { (line: $0, isWelcome: $0.takeWelcome() != nil, stream: $0.stream()) }
        #expect(lines.map(\.isWelcome) == [true, true])
        let losers = lines.filter { $0.stream.contains(.close(.takenOver)) }
        #expect(losers.count == 1)
        #expect(losers.map(\.stream) == [[.close(.takenOver)]])
        #expect(losers.map(\.line.isEnded) == [true])
        #expect(lines.filter { $0.stream == [.push("a", true)] }.count == 1)
        #expect(world.sessions == 1)
        try world.checkEnd(kept: 1)
    }

    @Test func `Two sessions that wait for the same record of the store: the later one stays`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        try world.forgetResting()
        let first = try device.greet()
        let second = try device.greet()
        first.login()
        second.login()
        world.turn()
        #expect(world.waiting("loading") == 1, "both wait for one read")
        world.settle()
        #expect(first.takeWelcome() != nil)
        #expect(first.stream() == [.close(.takenOver)])
        #expect(second.takeWelcome() != nil)
        #expect(second.stream() == [])
        #expect(world.sessions == 1)
        try world.checkEnd(kept: world.kept)
    }

    @Test func `A takeover while a read for the older session is under way sends each message once, to the newer one`()
        throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        for text in ["a", "b", "c"] { backend.post(text, to: device) }
        world.settle()
        let older = try device.attach()
        #expect(older.stream() == [], "its read is under way")
        let newer = try device.greet()
        newer.login()
        world.turn()
        #expect(older.stream() == [.close(.takenOver)])
        world.settle()
        #expect(newer.takeWelcome() != nil)
        #expect(newer.stream() == [.push("a", true), .push("b", true), .push("c", true)])
        #expect(older.stream() == [])
        newer.ack(Seq(3))
        world.settle()
        #expect(world.ended(.delivered) == 3)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [true, false])
    func `An ack of the older session counts before the takeover and not behind it`(ackIsFirst: Bool) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let older = try device.attach()
        backend.post("a", to: device)
        world.settle()
        #expect(older.stream() == [.push("a", false)])
        let newer = try device.greet()
        if ackIsFirst { older.ack(Seq(1)) }
        newer.login()
        if !ackIsFirst { older.ack(Seq(1)) }
        world.settle()
        #expect(newer.takeWelcome() != nil)
        #expect(newer.stream() == (ackIsFirst ? [] : [.push("a", false)]))
        #expect(world.ended(.delivered) == (ackIsFirst ? 1 : 0))
        try world.checkEnd(kept: ackIsFirst ? 0 : 1)
    }

    // MARK: - The grace

    @Test func `A login at the last millisecond of the grace finds the device online all the time`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let lost = try device.attach()
        lost.close()
        world.turn()
        backend.post("a", to: device)
        world.settle()
        #expect(backend.answers().areOnline == [true])
        let line = try device.greet()
        world.pass(RaceWorld.grace - RaceWorld.tick)
        line.login()
        world.settle()
        #expect(line.takeWelcome() != nil)
        #expect(line.stream() == [.push("a", false)])
        for _ in 0..<3 {
            world.pass(RaceWorld.ackDeadline)
            world.settle()
        }
        #expect(world.wake.count == 1, "never acknowledged, closed for silence, offline after another grace")
        try world.checkEnd(kept: 1)
    }

    @Test(arguments: [true, false])
    func `A login in the very tick in which the grace ends: offLine, and no stub`(loginIsFirst: Bool) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let lost = try device.attach()
        lost.close()
        world.turn()
        backend.post("a", to: device)
        world.settle()
        let line = try device.greet()
        world.pass(RaceWorld.grace)
        if loginIsFirst {
            // The shard reads before it looks at the time.
            line.login()
            world.turn()
        } else {
            world.turn()
            line.login()
        }
        world.settle()
        #expect(line.takeWelcome() != nil)
        #expect(line.stream() == [.push("a", true)])
        #expect(world.wake.count == 0, "it came back before the due stub was on disk")
        try world.checkEnd(kept: 1)
    }

    /// The shard stood still, or its timer was late, and the login was read before the end of the grace was noticed: the device
    /// was away for longer than the grace, and its messages went out as if it had not been.
    @Test(arguments: [true, false])
    func `A device that comes after the grace to a gateway that stood still gets what came meanwhile marked offLine`(
        isSynced: Bool
    ) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let lost = try device.attach()
        lost.close()
        world.turn()
        let line = try device.greet()
        backend.post("a", to: device)
        world.turn()
        if isSynced { world.settle() }
        world.pass(RaceWorld.grace * 3)
        line.login()
        world.settle()
        #expect(line.takeWelcome() != nil)
        #expect(line.stream() == [.push("a", true)])
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 1)
    }

    // MARK: - Memory

    @Test(arguments: [true, false])
    func `A device that has left memory is loaded once for a push and a login together`(pushIsFirst: Bool) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        try world.forgetResting()
        let before = world.kept
        let backend = try RaceBackend(world)
        let line = try device.greet()
        if pushIsFirst { backend.post("a", to: device) }
        line.login()
        if !pushIsFirst { backend.post("a", to: device) }
        world.turn()
        #expect(world.waiting("loading") == 1)
        world.settle()
        #expect(line.takeWelcome() != nil)
        #expect(line.stream() == [.push("a", pushIsFirst)])
        #expect(backend.answers().areOnline == [!pushIsFirst])
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: before + 1)
    }

    @Test func `A push in the tick in which its device would leave memory is kept, and the device with it`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        try world.forgetResting(isLastTickLeft: true)
        let before = world.kept
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        world.turn()
        #expect(world.waiting("loading") == 0, "it was still in memory")
        for _ in 0..<3 {
            world.pass(60_000)
            world.turn()
        }
        world.settle()
        #expect(backend.answers().areOnline == [false])
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.push("a", true)])
        try world.checkEnd(kept: before + 1)
    }
}
