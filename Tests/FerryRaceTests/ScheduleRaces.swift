internal import FerryCore
internal import FerryGateway
internal import FerryStore
internal import FerryWire
internal import Testing

/// A push for a later time and something else, in both orders.
struct ScheduleRaces {
    private func send(_ backend: RaceBackend, _ world: RaceWorld, _ line: String, _ body: String = "") {
        backend.send(
            Array(
                ("\(line) HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8))
    }

    private func schedule(
        _ backend: RaceBackend, _ world: RaceWorld, _ payload: String, at time: Instant, ttl: Int = 86_400_000,
        isToTag: Bool = false
    ) {
        let audience =
            isToTag ? #"{"tag":[{"key":"custom_tag","values":["nobody"],"opt_type":"not"}]}"# : #""all""#
        send(
            backend, world, "POST /v2/\(world.app.text)/push/\(isToTag ? "tag" : "all")",
            #"{"request_id":"request-of-\#(payload)","audience":\#(audience),"settings":{"ttl":\#(ttl),"#
                + #""schedule_time":\#(time.milliseconds)},"push_message":{"transmission":"\#(payload)"}}"#)
    }

    private func task(_ backend: RaceBackend) throws -> String { try #require(backend.answers().first?.task) }

    private static let done = RaceBackend.Answer.refused(0)

    @Test(arguments: 1...3, [false, true])
    func `It comes at its time and not before, to who is there then`(shards: Int, isToTag: Bool) throws {
        let world = try RaceWorld(shards: shards)
        let line = try RaceDevice(world, number: 1).attach()
        let backend = try RaceBackend(world)
        let time = world.clock.now + .seconds(3_600)
        schedule(backend, world, "for-everybody", at: time, isToTag: isToTag)
        world.settle()
        let task = try task(backend)
        #expect(world.kept == 0)
        let later = try RaceDevice(world, number: 2)
        world.pass(3_599_999)
        world.turn()
        // The long while without a word ended the session.
        _ = line.stream()
        #expect(world.kept == 0)
        // So long without a word, its connection is closed.
        let again = try RaceBackend(world)
        schedule(again, world, "for-everybody", at: time, isToTag: isToTag)
        world.settle()
        #expect(again.answers().first?.task == task)
        world.pass(1)
        world.settle()
        #expect(world.kept == 2)
        let lines = try [later.attach()]
        world.settle()
        let pushes = lines.flatMap { $0.pushes() }
        #expect(pushes.map { String(decoding: $0.payload, as: UTF8.self) } == ["for-everybody"])
        #expect(pushes.map(\.taskID.description) == [task])
        // Its repeat is answered by the first also when its time is past.
        schedule(again, world, "for-everybody", at: time, isToTag: isToTag)
        world.settle()
        #expect(again.answers().first?.task == task)
        #expect(world.kept == 2)
        try world.checkEnd(kept: 2)
    }

    /// Between any two steps of the release the power may go: it is released once, and not at all before its time.
    @Test(arguments: 0..<10, [false, true])
    func `It is released once, whenever the power goes`(moment: Int, isToTag: Bool) throws {
        let world = try RaceWorld(shards: 2)
        let devices = try (1...3 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let backend = try RaceBackend(world)
        schedule(backend, world, "for-everybody", at: world.clock.now + .seconds(10), isToTag: isToTag)
        world.settle()
        #expect(backend.answers().count == 1)
        world.pass(10_000)
        for step in 0..<moment { if step % 2 == 0 { world.turn() } else { world.sync() } }
        try world.cutPower()
        world.settle()
        #expect(world.kept == 3)
        try world.cutPower()
        world.settle()
        let lines = try devices.map { try $0.attach() }
        world.settle()
        for line in lines { #expect(line.stream() == [.push("for-everybody", true)]) }
        for line in lines { line.ack(Seq(1)) }
        try world.checkEnd(kept: 0)
    }

    @Test func `What was due while the gateway was down is released at its start`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        schedule(backend, world, "for-everybody", at: world.clock.now + .seconds(10), ttl: 1_000)
        world.settle()
        world.pass(3_600_000)
        try world.cutPower()
        world.settle()
        // Its ttl counts from there.
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.push("for-everybody", true)])
        line.ack(Seq(1))
        try world.checkEnd(kept: 0)
    }

    @Test func `It outlives the segments of the journal`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        schedule(backend, world, "for-everybody", at: world.clock.now + .seconds(3_600))
        world.settle()
        #expect(backend.answers().count == 1)
        try world.forgetResting()
        #expect(!world.disk.list().contains("journal-0000000001.seg"))
        try world.cutPower()
        world.pass(3_600_000)
        world.settle()
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.push("for-everybody", true)])
    }

    @Test(arguments: [false, true], [false, true])
    func `What was cancelled comes to nobody, and what was released cannot be cancelled`(
        isStop: Bool, isToTag: Bool
    ) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        schedule(backend, world, "for-everybody", at: world.clock.now + .seconds(100), isToTag: isToTag)
        world.settle()
        let task = try task(backend)
        let path = isStop ? "task/\(task)" : "task/schedule/\(task)"
        send(backend, world, "DELETE /v2/\(world.app.text)/\(path)")
        world.settle()
        #expect(backend.answers() == [Self.done])
        send(backend, world, "DELETE /v2/\(world.app.text)/\(path)")
        world.settle()
        #expect(backend.answers() == [Self.done])
        try world.cutPower()
        world.pass(200_000)
        world.settle()
        #expect(world.kept == 0)
        let again = try RaceBackend(world)
        schedule(again, world, "another", at: world.clock.now + .seconds(50), isToTag: isToTag)
        world.settle()
        let other = try self.task(again)
        send(again, world, "DELETE /v2/\(world.app.text)/task/schedule/\(other)")
        world.settle()
        #expect(again.answers().first != Self.done, "less than a minute is left")
        world.pass(50_000)
        world.settle()
        #expect(world.kept == 1)
        send(again, world, "DELETE /v2/\(world.app.text)/task/schedule/\(other)")
        world.settle()
        #expect(again.answers().first != Self.done, "it has run")
        send(again, world, "DELETE /v2/\(world.app.text)/task/\(other)")
        world.settle()
        #expect(again.answers() == [Self.done])
        #expect(world.ended(.revoked) == 1)
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [])
        try world.checkEnd(kept: 0)
    }

    @Test func `A disk that refuses the release has it tried again`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        schedule(backend, world, "for-everybody", at: world.clock.now + .seconds(1))
        world.settle()
        world.pass(1_000)
        world.hurt { $0.syncs = 2 }
        world.settle()
        world.hurt { _ in }
        world.pass(2_000)
        world.settle()
        let line = try device.attach()
        world.settle()
        #expect(line.pushes().count == 1)
        #expect(world.kept == 1)
    }

    @Test func `An app has so many and no more, and a time must lie ahead`() throws {
        let world = try RaceWorld { $0.scheduledPerApp = 2 }
        let backend = try RaceBackend(world)
        let week = Duration.seconds(7 * 86_400)
        for (payload, time) in [
            ("first", world.clock.now + .seconds(100)), ("past", world.clock.now),
            ("far", world.clock.now + week + .seconds(1)),
            ("last", world.clock.now + week), ("too-many", world.clock.now + .seconds(100)),
        ] {
            schedule(backend, world, payload, at: time)
            world.settle()
        }
        let answers = backend.answers()
        #expect(answers.map { $0.task != nil } == [true, false, false, true, false])
        #expect(answers[1] == .refused(20_001) && answers[2] == .refused(20_001) && answers[4] == .refused(30_019))
        try world.checkEnd(kept: 0)
    }
}
