internal import FerryAPNS
internal import FerryCore
internal import FerryGateway
internal import FerryWire
internal import Testing

/// Pushes to all that wake, and those with a pace, against what may come between.
struct BroadcastWakeRaces {
    private func postAll(
        _ backend: RaceBackend, _ world: RaceWorld, _ payload: String, ttl: Int = 86_400_000, settings: String = "",
        more: String = ""
    ) {
        let body =
            #"{"request_id":"request-of-\#(payload)","audience":"all","settings":{"ttl":\#(ttl)\#(settings)},"#
            + #""push_message":{"transmission":"\#(payload)"}\#(more)}"#
        backend.send(
            Array(
                ("POST /v2/\(world.app.text)/push/all HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8))
    }

    private func pass(_ world: RaceWorld, _ milliseconds: Int, step: Int = 100) {
        for _ in 0..<(milliseconds / step) {
            world.pass(step)
            world.settle()
        }
    }

    // MARK: - Wake-ups

    @Test(arguments: 1...3)
    func `Who is away is woken once, who is there is not, and a restart wakes nobody again`(shards: Int) throws {
        let world = try RaceWorld(shards: shards)
        let devices = try (1...6 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let line = try devices[0].attach()
        world.settle()
        postAll(try RaceBackend(world), world, "for-everybody")
        pass(world, 1_000)
        #expect(world.wake.count == 5)
        #expect(line.stream() == [.push("for-everybody", false)])
        line.ack(Seq(1))
        world.settle()
        world.wake.answerAll()
        pass(world, 3_000)
        try world.cutPower()
        pass(world, 90_000, step: 1_000)
        #expect(world.wake.count == 0)
        #expect(world.kept == 5)
        try world.checkEnd(kept: 5)
    }

    @Test func `What was asked for and not answered when the power went is asked for again`() throws {
        let world = try RaceWorld()
        _ = try (1...3 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        postAll(try RaceBackend(world), world, "for-everybody")
        pass(world, 3_000)
        #expect(world.wake.count == 3)
        try world.cutPower()
        pass(world, 90_000, step: 1_000)
        #expect(world.wake.count == 3)
        try world.checkEnd(kept: 3)
    }

    @Test func `Who is there at its turn is woken when it leaves without the message, and not with it`() throws {
        let world = try RaceWorld()
        let devices = try (1...2 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let lines = try devices.map { try $0.attach() }
        world.settle()
        postAll(try RaceBackend(world), world, "for-everybody")
        pass(world, 1_000)
        for line in lines { #expect(line.stream() == [.push("for-everybody", false)]) }
        #expect(world.wake.count == 0)
        lines[1].ack(Seq(1))
        world.settle()
        for line in lines { line.send(.background) }
        pass(world, 1_000)
        #expect(world.wake.count == 1)
        try world.checkEnd(kept: 1)
    }

    @Test(arguments: [#","strategy":{"default":3}"#, #","ttl":-1"#])
    func `By strategy 3, and live only, nobody is woken`(settings: String) throws {
        let world = try RaceWorld()
        _ = try RaceDevice(world)
        let isLiveOnly = settings.contains("ttl")
        postAll(
            try RaceBackend(world), world, "for-everybody", ttl: isLiveOnly ? -1 : 86_400_000,
            settings: isLiveOnly ? "" : settings)
        pass(world, 3_000)
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: isLiveOnly ? 0 : 1)
    }

    @Test func `The sender's own alert goes to each by a name of its own`() throws {
        let world = try RaceWorld()
        _ = try (1...3 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        postAll(
            try RaceBackend(world), world, "for-everybody",
            more: #","push_channel":{"ios":{"aps":{"alert":{"title":"sender's"}}}}"#)
        pass(world, 1_000)
        let stubs = world.wake.stubs
        #expect(stubs.count == 3)
        #expect(Set(stubs.map { $0.headers.first { $0.name == "apns-id" }?.value }).count == 3)
        for stub in stubs { #expect(String(decoding: stub.body, as: UTF8.self).contains("sender's")) }
        try world.checkEnd(kept: 3)
    }

    @Test func `A stop ends the wake-ups that have not gone`() throws {
        let world = try RaceWorld { $0.broadcastWakesPerSecond = 1 }
        _ = try (1...5 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        pass(world, 1_500)
        #expect(world.wake.count == 2)
        let task = try #require(backend.answers().first?.task)
        backend.send(
            Array(
                "DELETE /v2/\(world.app.text)/task/\(task) HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n\r\n"
                    .utf8))
        pass(world, 10_000, step: 500)
        #expect(world.wake.count == 2)
        try world.checkEnd(kept: 0)
    }

    // MARK: - A pace

    @Test(arguments: 1...2)
    func `A pace is kept, across a power cut, and everybody has the message once`(shards: Int) throws {
        let world = try RaceWorld(shards: shards)
        let devices = try (1...8 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0, hasToken: false) }
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody", settings: #","speed":"2""#)
        world.settle()
        #expect(backend.answers().count == 1)
        // A device for each shard at once.
        #expect(world.kept == shards)
        pass(world, 1_000)
        #expect((2...4).contains(world.kept))
        let before = world.kept
        try world.cutPower()
        world.settle()
        #expect(world.kept == before)
        pass(world, 1_000)
        #expect((before...before + 3).contains(world.kept))
        pass(world, 6_000)
        #expect(world.kept == 8)
        let lines = try devices.map { try $0.attach() }
        world.settle()
        for line in lines {
            #expect(line.stream() == [.push("for-everybody", true)])
            line.ack(Seq(1))
        }
        try world.checkEnd(kept: 0)
    }

    @Test func `What the pace has not reached by the end of its time is accepted, over, and told`() throws {
        let world = try RaceWorld()
        let devices = try (1...5 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0, hasToken: false) }
        let lines = try devices.map { try $0.attach() }
        world.settle()
        postAll(try RaceBackend(world), world, "for-everybody", ttl: 2_500, settings: #","speed":1"#)
        pass(world, 4_000)
        let streams = lines.map { $0.stream() }
        #expect(streams.count { $0 == [.push("for-everybody", false)] } == 3)
        for (line, stream) in zip(lines, streams) {
            if stream != [.push("for-everybody", false)] { #expect(stream.count == 1, "a gap") }
            line.ack(Seq(1))
        }
        world.settle()
        #expect(world.ended(.expired) == 2)
        #expect(world.ended(.delivered) == 3)
        try world.checkEnd(kept: 0)
    }
}
