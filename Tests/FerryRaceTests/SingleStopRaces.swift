internal import FerryCore
internal import FerryRouting
internal import FerryWire
internal import Testing

/// Stops and revokes of pushes to one device and to a name, and something else.
struct SingleStopRaces {
    private static let stopped = RaceBackend.Answer.refused(0)

    private func send(_ backend: RaceBackend, _ world: RaceWorld, _ line: String, _ body: String = "") {
        backend.send(
            Array(
                ("\(line) HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8))
    }

    private func stop(_ backend: RaceBackend, _ world: RaceWorld, _ task: String) {
        send(backend, world, "DELETE /v2/\(world.app.text)/task/\(task)")
    }

    private func settled(_ backend: RaceBackend, _ world: RaceWorld) throws -> [RaceBackend.Answer] {
        world.settle()
        return backend.answers()
    }

    /// One name for all of them.
    private func bind(_ devices: [RaceDevice], _ backend: RaceBackend, _ world: RaceWorld) throws {
        let list = devices.map { #"{"cid":"\#($0.cid)","alias":"ann"}"# }.joined(separator: ",")
        send(backend, world, "POST /v2/\(world.app.text)/user/alias", #"{"data_list":[\#(list)]}"#)
        #expect(try settled(backend, world) == [.refused(0)])
    }

    private func pushToName(_ backend: RaceBackend, _ world: RaceWorld, _ payload: String) throws -> String {
        send(
            backend, world, "POST /v2/\(world.app.text)/push/single/alias",
            #"{"request_id":"request-of-\#(payload)","audience":{"alias":["ann"]},"#
                + #""settings":{"ttl":86400000},"push_message":{"transmission":"\#(payload)"}}"#)
        return try #require(try settled(backend, world).first?.task)
    }

    private func texts(_ line: RaceLine) -> [String] {
        line.pushes().map { String(decoding: $0.payload, as: UTF8.self) }
    }

    @Test(arguments: 1...3)
    func `A push to one device that is stopped ends as revoked, and others stay`(shards: Int) throws {
        let world = try RaceWorld(shards: shards)
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        for number in 1...100 { backend.post("number-\(number)", to: device) }
        let tasks = try settled(backend, world).compactMap(\.task)
        #expect(tasks.count == 100)
        stop(backend, world, tasks[70])
        #expect(try settled(backend, world) == [Self.stopped])
        #expect(world.ended(.revoked) == 1 && world.kept == 99)
        // A repeat, and what never was.
        stop(backend, world, tasks[70])
        stop(backend, world, "RASS_0101_00000000000000000000000000000000")
        #expect(try settled(backend, world) == [Self.stopped, Self.stopped])
        try world.cutPower()
        let line = try device.attach()
        world.settle()
        #expect(world.kept == 99)
        #expect(!texts(line).contains("number-71"))
        try world.checkEnd(kept: 99)
    }

    /// The answer is not sent before the end is on disk.
    @Test(arguments: 0..<8)
    func `After the answer a push to one device stays stopped, whenever the power goes`(moment: Int) throws {
        let world = try RaceWorld(shards: 2)
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("only-one", to: device)
        let task = try #require(try settled(backend, world).first?.task)
        stop(backend, world, task)
        for step in 0..<moment { if step % 2 == 0 { world.turn() } else { world.sync() } }
        let isAnswered = backend.answers() == [Self.stopped]
        try world.cutPower()
        let line = try device.attach()
        world.settle()
        let found = texts(line)
        #expect(found == [] || (!isAnswered && found == ["only-one"]))
        try world.checkEnd(kept: found.count)
    }

    @Test(arguments: 1...3, [false, true])
    func `A push to a name is one task, and its stop ends it at all devices, after a power cut too`(
        shards: Int, isCut: Bool
    ) throws {
        let world = try RaceWorld(shards: shards)
        let devices = try (1...5 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        var backend = try RaceBackend(world)
        try bind(devices, backend, world)
        let task = try pushToName(backend, world, "for-ann")
        let other = try pushToName(backend, world, "for-ann-too")
        #expect(task != other)
        #expect(try pushToName(backend, world, "for-ann") == task, "a repeat")
        #expect(world.kept == 10)
        if isCut {
            try world.cutPower()
            backend = try RaceBackend(world)
        }
        stop(backend, world, task)
        #expect(try settled(backend, world) == [Self.stopped])
        #expect(world.kept == 5)
        try world.cutPower()
        let lines = try devices.map { try $0.attach() }
        world.settle()
        for line in lines {
            let pushes = line.pushes()
            #expect(pushes.map { String(decoding: $0.payload, as: UTF8.self) } == ["for-ann-too"])
            #expect(pushes.map(\.taskID.description) == [other])
        }
        try world.checkEnd(kept: 5)
    }

    private func revoke(_ task: String, at device: RaceDevice, _ backend: RaceBackend, _ world: RaceWorld) throws {
        send(
            backend, world, "POST /v2/\(world.app.text)/push/single/cid",
            #"{"request_id":"revoke-\#(task.suffix(20))","audience":{"cid":["\#(device.cid)"]},"#
                + #""settings":{"ttl":86400000},"push_message":{"revoke":{"old_task_id":"\#(task)"}}}"#)
        #expect(try settled(backend, world).first?.task != nil)
    }

    @Test(arguments: 1...2)
    func `A revoke takes back what is kept of the earlier push, and is told itself`(shards: Int) throws {
        let world = try RaceWorld(shards: shards)
        let device = try RaceDevice(world)
        let other = try RaceDevice(world, number: 2)
        let backend = try RaceBackend(world)
        backend.post("before", to: device)
        backend.post("to-be-revoked", to: device)
        let tasks = try settled(backend, world).compactMap(\.task)
        try bind([device, other], backend, world)
        let named = try pushToName(backend, world, "to-a-name")
        send(
            backend, world, "POST /v2/\(world.app.text)/push/list/message",
            #"{"request_id":"request-of-a-list","settings":{"ttl":86400000},"push_message":{"transmission":"of-a-list"}}"#
        )
        let list = try #require(try settled(backend, world).first?.task)
        send(
            backend, world, "POST /v2/\(world.app.text)/push/list/cid",
            #"{"taskid":"\#(list)","audience":{"cid":["\#(device.cid)","\#(other.cid)"]}}"#)
        #expect(try settled(backend, world).count == 1)
        #expect(world.kept == 6)
        for task in [tasks[1], named, list] { try revoke(task, at: device, backend, world) }
        #expect(world.ended(.revoked) == 3 && world.kept == 6)
        try world.cutPower()
        let lines = try [device.attach(capabilities: .typedContents), other.attach()]
        world.settle()
        #expect(lines[0].pushes().map { $0.flags.kind } == [.transmission, .revoke, .revoke, .revoke])
        #expect(texts(lines[1]) == ["to-a-name", "of-a-list"])
        try world.checkEnd(kept: 6)
    }

    @Test func `A revoke to all stops the earlier task for everybody`() throws {
        let world = try RaceWorld(shards: 2)
        let devices = try (1...3 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let backend = try RaceBackend(world)
        send(
            backend, world, "POST /v2/\(world.app.text)/push/all",
            #"{"request_id":"request-for-all","audience":"all","settings":{"ttl":86400000},"#
                + #""push_message":{"transmission":"for-all"}}"#)
        let task = try #require(try settled(backend, world).first?.task)
        send(
            backend, world, "POST /v2/\(world.app.text)/push/all",
            #"{"request_id":"revoke-for-all","audience":"all","settings":{"ttl":86400000},"#
                + #""push_message":{"revoke":{"old_task_id":"\#(task)"}}}"#)
        #expect(try settled(backend, world).count == 1)
        try world.cutPower()
        let lines = try devices.map { try $0.attach() }
        world.settle()
        for line in lines { #expect(texts(line) == []) }
    }
}
