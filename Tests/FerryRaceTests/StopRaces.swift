internal import FerryCore
internal import FerryGateway
internal import FerryStore
internal import FerryWire
internal import Testing

/// The stop of a push to all, and something else, in both orders.
struct StopRaces {
    private func send(_ backend: RaceBackend, _ world: RaceWorld, _ line: String, _ body: String = "") {
        backend.send(
            Array(
                ("\(line) HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8))
    }

    private func postAll(_ backend: RaceBackend, _ world: RaceWorld, _ payload: String, ttl: Int = 86_400_000) {
        send(
            backend, world, "POST /v2/\(world.app.text)/push/all",
            #"{"request_id":"request-of-\#(payload)","audience":"all","settings":{"ttl":\#(ttl)},"#
                + #""push_message":{"transmission":"\#(payload)"}}"#)
    }

    private func stop(_ backend: RaceBackend, _ world: RaceWorld, _ task: String) {
        send(backend, world, "DELETE /v2/\(world.app.text)/task/\(task)")
    }

    /// The task of the one answer that has come.
    private func task(_ backend: RaceBackend) throws -> String {
        try #require(backend.answers().first?.task)
    }

    private static let stopped = RaceBackend.Answer.refused(0)

    @Test(arguments: 1...3)
    func `What nobody acknowledged ends as revoked, each device once, and comes to nobody any more`(shards: Int) throws
    {
        let world = try RaceWorld(shards: shards)
        let devices = try (1...6 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let lines = try devices.prefix(2).map { try $0.attach() }
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        world.settle()
        let task = try task(backend)
        for line in lines { #expect(line.stream() == [.push("for-everybody", false)]) }
        lines[0].ack(Seq(1))
        world.settle()
        stop(backend, world, task)
        world.settle()
        #expect(backend.answers() == [Self.stopped])
        #expect(world.ended(.delivered) == 1)
        #expect(world.ended(.revoked) == 5)
        #expect(world.kept == 0)
        // A late ack is only an ack.
        lines[1].ack(Seq(1))
        world.settle()
        #expect(lines[1].stream() == [])
        #expect(world.ended(.delivered) == 1)
        let later = try devices.suffix(4).map { try $0.attach() }
        world.settle()
        for line in later { #expect(line.stream() == []) }
        stop(backend, world, task)
        world.settle()
        #expect(backend.answers() == [Self.stopped])
        #expect(world.ended(.revoked) == 5)
        try world.checkEnd(kept: 0)
    }

    /// Between any two steps of the stop the power may go.
    @Test(arguments: 0..<8, [false, true])
    func `After the answer it comes to nobody, whenever the power goes`(moment: Int, isRetired: Bool) throws {
        let world = try RaceWorld(shards: 2)
        let devices = try (1...4 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        world.settle()
        let task = try task(backend)
        stop(backend, world, task)
        for step in 0..<moment { if step % 2 == 0 { world.turn() } else { world.sync() } }
        let isAnswered = backend.answers() == [Self.stopped]
        if isRetired, isAnswered { try world.forgetResting() }
        try world.cutPower()
        world.settle()
        let lines = try devices.map { try $0.attach() }
        world.settle()
        let streams = lines.map { $0.stream() }
        #expect(streams.allSatisfy { $0 == streams[0] })
        #expect(streams[0] == [] || (!isAnswered && streams[0] == [.push("for-everybody", true)]))
        for line in lines where streams[0] != [] { line.ack(Seq(1)) }
        world.settle()
        #expect(world.kept == 0)
        // The filler of a retirement registered after it.
        try world.checkEnd(kept: 0)
    }

    /// The stop finds the content on disk and no place of it.
    @Test func `One that is stopped while it gets its places goes to nobody, and both calls are answered`() throws {
        let world = try RaceWorld(shards: 2)
        let line = try RaceDevice(world, number: 1).attach()
        let backend = try RaceBackend(world)
        let other = try RaceBackend(world)
        postAll(backend, world, "for-everybody", ttl: 60_000)
        world.turn()
        world.sync()
        world.turn()
        // The task's name is known to its sender by the answer alone: another start tells it by the request.
        #expect(backend.answers() == [])
        world.settle()
        let task = try task(backend)
        stop(other, world, task)
        stop(backend, world, task)
        world.settle()
        #expect(other.answers() == [Self.stopped])
        #expect(backend.answers() == [Self.stopped])
        #expect(line.stream() == [.push("for-everybody", false)])
        #expect(world.ended(.revoked) == 1)
        try world.checkEnd(kept: 0)
    }

    /// What waits in the window behind others is not sent, and what is behind it is.
    @Test func `The stream of a device goes on behind what was stopped`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let line = try device.attach(window: 1)
        let backend = try RaceBackend(world)
        backend.post("first", to: device)
        world.settle()
        _ = backend.answers()
        postAll(backend, world, "for-everybody")
        world.settle()
        let task = try task(backend)
        backend.post("last", to: device)
        world.settle()
        #expect(line.stream() == [.push("first", false)])
        stop(backend, world, task)
        world.settle()
        line.ack(Seq(1))
        world.settle()
        #expect(line.stream() == [.push("last", false)])
        line.ack(Seq(3))
        world.settle()
        #expect(world.ended(.revoked) == 1)
        #expect(world.ended(.delivered) == 2)
        try world.checkEnd(kept: 0)
    }

    @Test func `A disk that refuses the record leaves it going, and says so`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        world.settle()
        let task = try task(backend)
        world.hurt { $0.syncs = 2 }
        stop(backend, world, task)
        world.settle()
        #expect(backend.answers() == [.refused(30_019)])
        world.hurt { _ in }
        world.pass(2_000)
        world.settle()
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.push("for-everybody", true)])
        stop(backend, world, task)
        world.settle()
        #expect(backend.answers() == [Self.stopped])
        #expect(world.ended(.revoked) == 1)
        try world.checkEnd(kept: 0)
    }

    @Test func `What the app does not have cannot be stopped`() throws {
        let world = try RaceWorld()
        let backend = try RaceBackend(world)
        let device = try RaceDevice(world)
        backend.post("for-one", to: device)
        world.settle()
        _ = try task(backend)
        let unknown = "1130_00000000000000000000000000000001"
        for task in ["RASL_\(unknown)", "RASA_\(unknown)", "RASA_", "nothing"] {
            stop(backend, world, task)
            world.settle()
            // A refusal that names a task is read as one.
            #expect(backend.answers().first != Self.stopped, "\(task)")
        }
        #expect(world.kept == 1)
        try world.checkEnd(kept: 1)
    }
}
