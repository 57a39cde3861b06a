internal import FerryCore
internal import FerryGateway
internal import FerryStore
internal import FerryWire
internal import Testing

/// Repeats of one request, and what becomes of its first try meanwhile.
struct RequestRaces {
    private static let busy = 30019

    @Test func `Repeats that come while the first is synced get its answer, and the message exists once`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let first = try RaceBackend(world)
        let second = try RaceBackend(world)
        first.post("a", to: device, request: "request-0001")
        second.post("a", to: device, request: "request-0001")
        first.post("a", to: device, request: "request-0001")
        world.turn()
        #expect(world.waiting("requestWaiters") == 1)
        #expect(first.answers() + second.answers() == [])
        world.settle()
        let answers = first.answers() + second.answers()
        #expect(answers.count == 3)
        #expect(Set(answers.map(\.task)).count == 1)
        #expect(answers.areOnline == [false, false, false])
        #expect(world.kept == 1)
        try world.checkEnd(kept: 1)
    }

    @Test
    func `Repeats that wait for a first try that the disk refuses are refused with it, and the next is a first try`()
        throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let first = try RaceBackend(world)
        let second = try RaceBackend(world)
        world.disk.capacity = 0
        world.hurt { $0.writes = 1 }
        for backend in [first, second, second] { backend.post("a", to: device, request: "request-0001") }
        world.turn()
        world.sync()
        world.turn()
        #expect(first.answers() == [.refused(Self.busy)])
        #expect(second.answers() == [.refused(Self.busy), .refused(Self.busy)])
        #expect(world.kept == 0)
        #expect(world.waiting("requestWaiters") == 0)
        world.disk.capacity = .max
        second.post("a", to: device, request: "request-0001")
        world.settle()
        #expect(second.answers().areOnline == [false])
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.push("a", true)])
        try world.checkEnd(kept: 1)
    }

    @Test func `A sync that fails is made good in another segment, and all repeats are answered alike`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        world.hurt { $0.syncs = 1 }
        for _ in 0..<3 { backend.post("a", to: device, request: "request-0001") }
        world.turn()
        world.settle()
        let answers = backend.answers()
        #expect(answers.areOnline == [false, false, false])
        #expect(Set(answers.map(\.task)).count == 1)
        try world.checkEnd(kept: 1)
    }

    @Test func `A disk that cannot say whether it has a request leaves all repeats unanswered until it can`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        world.hurt { $0.writes = 4 }
        for _ in 0..<3 { backend.post("a", to: device, request: "request-0001") }
        world.turn()
        world.sync()
        world.turn()
        #expect(backend.answers() == [])
        #expect(world.waiting("requestWaiters") == 1)
        world.settle()
        let answers = backend.answers()
        #expect(answers.areOnline == [false, false, false])
        #expect(Set(answers.map(\.task)).count == 1)
        try world.checkEnd(kept: 1)
    }

    @Test(arguments: [true, false])
    func `A repeat with other content is refused by its name, while the first is synced and behind`(isSynced: Bool)
        throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let other = try RaceBackend(world)
        backend.post("a", to: device, request: "request-0001")
        world.turn()
        if isSynced { world.settle() }
        other.post("b", to: device, request: "request-0001")
        world.turn()
        let refusal = other.answers()
        #expect(refusal.count == 1)
        #expect(refusal.map(\.task) == [nil])
        #expect(refusal != [.refused(Self.busy)])
        world.settle()
        #expect(backend.answers().areOnline == [false])
        try world.checkEnd(kept: 1)
    }

    @Test(arguments: [true, false])
    func `Power lost before the sync forgets a request, behind it a repeat gets the first answer`(isSynced: Bool) throws
    {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device, request: "request-0001")
        world.turn()
        if isSynced { world.sync() }
        #expect(backend.answers() == [], "on disk or not, the answer has not left")
        try world.cutPower()
        #expect(world.kept == (isSynced ? 1 : 0))
        let again = try RaceBackend(world)
        again.post("a", to: device, request: "request-0001")
        world.settle()
        #expect(again.answers().areOnline == [false])
        #expect(world.kept == 1)
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.push("a", true)])
        try world.checkEnd(kept: 1)
    }

    @Test func `A backend that hangs up before its answer leaves the message, and the answer for the repeat`() throws {
        let world = try RaceWorld(shards: 2)
        let device = try RaceDevice(world)
        let impatient = try RaceBackend(world, shard: 0)
        impatient.post("a", to: device, request: "request-0001")
        world.turn(0)
        impatient.hangUp()
        world.settle()
        #expect(world.kept == 1)
        let patient = try RaceBackend(world, shard: 1)
        patient.post("a", to: device, request: "request-0001")
        world.settle()
        #expect(patient.answers().areOnline == [false])
        try world.checkEnd(kept: 1)
    }
}
