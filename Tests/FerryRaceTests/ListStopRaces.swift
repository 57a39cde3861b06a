internal import FerryCore
internal import FerryRouting
internal import FerryWire
internal import Testing

/// The stop of a task with stored content, and something else.
struct ListStopRaces {
    private static let stopped = RaceBackend.Answer.refused(0)

    private func send(_ backend: RaceBackend, _ world: RaceWorld, _ line: String, _ body: String = "") {
        backend.send(
            Array(
                ("\(line) HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8))
    }

    private func content(_ payload: String) -> String {
        #""settings":{"ttl":86400000},"push_message":{"transmission":"\#(payload)"}"#
    }

    private func createList(_ backend: RaceBackend, _ world: RaceWorld, _ payload: String) throws -> String {
        send(
            backend, world, "POST /v2/\(world.app.text)/push/list/message",
            #"{"request_id":"request-of-\#(payload)",\#(content(payload))}"#)
        world.settle()
        return try #require(backend.answers().first?.task)
    }

    private func add(_ devices: [RaceDevice], to task: String, _ backend: RaceBackend, _ world: RaceWorld) {
        let cids = devices.map { "\"\($0.cid)\"" }.joined(separator: ",")
        send(
            backend, world, "POST /v2/\(world.app.text)/push/list/cid",
            #"{"taskid":"\#(task)","audience":{"cid":[\#(cids)]}}"#)
    }

    /// To all devices, one a second.
    private func pushSlowly(_ backend: RaceBackend, _ world: RaceWorld, _ payload: String) throws -> String {
        send(
            backend, world, "POST /v2/\(world.app.text)/push/tag",
            #"{"request_id":"request-of-\#(payload)","settings":{"ttl":86400000,"speed":1},"#
                + #""audience":{"tag":[{"key":"custom_tag","values":["nobody"],"opt_type":"not"}]},"#
                + #""push_message":{"transmission":"\#(payload)"}}"#)
        world.settle()
        return try #require(backend.answers().first?.task)
    }

    private func stop(_ backend: RaceBackend, _ world: RaceWorld, _ task: String) {
        send(backend, world, "DELETE /v2/\(world.app.text)/task/\(task)")
    }

    private func devices(_ world: RaceWorld, _ count: UInt8) throws -> [RaceDevice] {
        try (1...count as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
    }

    @Test(arguments: 1...3)
    func `Of a stopped list nothing comes to anybody, and each message ends as revoked`(shards: Int) throws {
        let world = try RaceWorld(shards: shards)
        let devices = try devices(world, 6)
        let lines = try devices.prefix(2).map { try $0.attach() }
        let backend = try RaceBackend(world)
        let task = try createList(backend, world, "for-some")
        let other = try createList(backend, world, "for-some-too")
        for task in [task, other] { add(devices, to: task, backend, world) }
        world.settle()
        #expect(backend.answers().count == 2)
        for line in lines { #expect(line.pushes().count == 2) }
        #expect(world.kept == 12)
        stop(backend, world, task)
        world.settle()
        #expect(backend.answers() == [Self.stopped])
        #expect(world.ended(.revoked) == 6)
        #expect(world.kept == 6)
        let later = try devices.suffix(4).map { try $0.attach() }
        world.settle()
        for line in later {
            #expect(line.pushes().map { String(decoding: $0.payload, as: UTF8.self) } == ["for-some-too"])
        }
        add(devices, to: task, backend, world)
        world.settle()
        #expect(backend.answers().count == 1)
        #expect(world.kept == 6, "it takes no more devices")
        try world.checkEnd(kept: 6)
    }

    /// Between any two steps of the stop the power may go.
    @Test(arguments: 0..<8, [false, true])
    func `After the answer nothing of a list comes, whenever the power goes`(moment: Int, isRetired: Bool) throws {
        let world = try RaceWorld(shards: 2)
        let devices = try devices(world, 4)
        let backend = try RaceBackend(world)
        let task = try createList(backend, world, "for-some")
        add(devices, to: task, backend, world)
        world.settle()
        _ = backend.answers()
        #expect(world.kept == 4)
        stop(backend, world, task)
        for step in 0..<moment { if step % 2 == 0 { world.turn() } else { world.sync() } }
        let isAnswered = backend.answers() == [Self.stopped]
        if isRetired, isAnswered { try world.forgetResting() }
        try world.cutPower()
        let lines = try devices.map { try $0.attach() }
        world.settle()
        let streams = lines.map { $0.stream() }
        #expect(streams.allSatisfy { $0 == streams[0] })
        #expect(streams[0] == [] || (!isAnswered && streams[0] == [.push("for-some", true)]))
        guard streams[0] == [] else { return }
        #expect(world.kept == 0)
        try world.checkEnd(kept: 0)
    }

    @Test func `What is on its way to the disk when its list is stopped is accepted and over at once`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let line = try device.attach()
        let backend = try RaceBackend(world)
        let other = try RaceBackend(world)
        let task = try createList(backend, world, "for-one")
        stop(other, world, task)
        add([device], to: task, backend, world)
        world.turn()
        world.settle()
        #expect(other.answers() == [Self.stopped])
        #expect(line.stream() == [])
        #expect(world.kept == 0)
        #expect(world.ended(.revoked) <= 1)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: 1...2, [false, true])
    func `A push to an audience that is stopped comes to nobody else, nor after a power cut`(
        shards: Int, isCut: Bool
    ) throws {
        let world = try RaceWorld(shards: shards)
        let devices = try devices(world, 6)
        let backend = try RaceBackend(world)
        let task = try pushSlowly(backend, world, "slowly")
        stop(backend, world, task)
        world.settle()
        #expect(backend.answers() == [Self.stopped])
        #expect(world.kept == 0)
        if isCut { try world.cutPower() }
        let lines = try devices.map { try $0.attach() }
        world.settle()
        #expect(lines.allSatisfy { $0.stream() == [] })
        try world.checkEnd(kept: 0)
    }
}
