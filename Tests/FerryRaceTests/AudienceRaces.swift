internal import FerryCore
internal import FerryGateway
internal import FerryRouting
internal import FerryStats
internal import FerryStore
internal import Testing

/// Pushes to those that meet a condition, while the disk, the power or the time is against them. Each device gets it, or it is
/// counted why not.
struct AudienceRaces {
    /// No device has the tag.
    private func push(
        _ world: RaceWorld, _ backend: RaceBackend, speed: Int = 0, settings: String = "",
        request: String = "request-of-a-test"
    ) {
        let body =
            #"{"request_id":"\#(request)","audience":{"tag":[{"key":"custom_tag","values":["nobody"],"opt_type":"not"}]},"#
            + #""settings":{"ttl":3600000,"speed":\#(speed)\#(settings)},"push_message":{"transmission":"to all of them"}}"#
        backend.send(
            Array(
                ("POST /v2/\(world.app.text)/push/tag HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8))
    }

    private func devices(_ world: RaceWorld, hasToken: Bool = true) throws -> [RaceDevice] {
        try (1...3 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0, hasToken: hasToken) }
    }

    /// Nothing of pushes waits, and as much is found after a power cut.
    private func checkEnd(_ world: RaceWorld, kept: Int) throws {
        goOn(world)
        #expect(world.waiting("tags") == 0 && world.waiting("lists") == 0)
        #expect(world.kept == kept)
        try world.cutPower()
        goOn(world)
        #expect(world.waiting("tags") == 0)
        #expect(world.kept == kept)
    }

    /// So that every other paused step has its turn.
    private func goOn(_ world: RaceWorld, times: Int = 4) {
        for _ in 0..<times {
            world.pass(500)
            world.settle()
        }
    }

    @Test(arguments: 0..<12, [1, 2])
    func `Who is full is passed over, and counted once, whenever the power goes`(moment: Int, shards: Int) throws {
        let world = try RaceWorld(shards: shards) {
            $0.delivery.messageCap = Cap(1)
            $0.delivery.capPolicy = .refuse
        }
        let devices = try devices(world)
        let first = try RaceBackend(world)
        first.post("is there before", to: devices[0])
        world.settle()
        push(world, first)
        for step in 0..<moment { if step % 2 == 0 { world.turn() } else { world.sync() } }
        try world.cutPower()
        let second = try RaceBackend(world)
        push(world, second)
        goOn(world)
        #expect(second.answers().compactMap(\.task).count == 1)
        #expect(world.kept == 3)
        let reported = world.gateway.snapshot.reported
        #expect(reported.accepted == 4)
        #expect(reported.ended(.deviceFull) == 1 && reported.endedCount == 1)
        try checkEnd(world, kept: 3)
    }

    @Test(arguments: [1, 2])
    func `Who lacks what the sender's settings need is passed over, and counted`(shards: Int) throws {
        let world = try RaceWorld(shards: shards)
        _ = try devices(world, hasToken: false)
        _ = try RaceDevice(world, number: 9)
        let backend = try RaceBackend(world)
        let alert = #","strategy":{"default":2}"#
        let body =
            #"{"request_id":"request-of-two","audience":{"tag":[{"key":"custom_tag","values":["nobody"],"opt_type":"not"}]},"#
            + #""settings":{"ttl":3600000\#(alert)},"push_message":{"transmission":"by the channel alone"},"#
            + #""push_channel":{"ios":{"type":"notify","aps":{"alert":{"title":"T","body":"B"}}}}}"#
        backend.send(
            Array(
                ("POST /v2/\(world.app.text)/push/tag HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8))
        goOn(world)
        world.wake.answerAll()
        goOn(world)
        let reported = world.gateway.snapshot.reported
        #expect(reported.accepted == 4)
        #expect(reported.ended(.tokenMissing) == 3)
        #expect(reported.ended(.handedOver) == 1)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [1, 2])
    func `Whose turn does not come in seven days is told so, and nothing of the push is left`(shards: Int) throws {
        let world = try RaceWorld(shards: shards)
        _ = try devices(world)
        let backend = try RaceBackend(world)
        push(world, backend, speed: 1)
        world.settle()
        let given = world.kept
        #expect((1...shards).contains(given))
        // Nothing has its turn for a week.
        world.pass(7 * 86_400_000 + 1)
        goOn(world)
        let reported = world.gateway.snapshot.reported
        #expect(reported.accepted == 3)
        #expect(reported.ended(.turnTooLate) == Int64(3 - given))
        #expect(reported.ended(.ttlRanOut) == Int64(given))
        try world.checkEnd(kept: 0)
    }

    @Test func `Those whose records the disk refused get it later, once`() throws {
        let world = try RaceWorld()
        let devices = try devices(world)
        let backend = try RaceBackend(world)
        push(world, backend, speed: 1)
        world.settle()
        #expect(world.kept == 1)
        world.pass(1_000)
        world.hurt { $0.syncs = 1 }
        world.turn()
        world.sync()
        world.turn()
        #expect(world.kept == 1)
        goOn(world, times: 6)
        #expect(world.kept == 3)
        #expect(world.gateway.snapshot.reported.accepted == 3)
        let lines = try devices.map { try $0.attach() }
        world.settle()
        for line in lines { #expect(line.pushes().count == 1) }
        try checkEnd(world, kept: 3)
    }

    @Test(arguments: [1, 7])
    func `Devices that cannot be read for a while are waited for`(failures: Int) throws {
        let world = try RaceWorld()
        _ = try devices(world)
        try world.forgetResting()
        let backend = try RaceBackend(world)
        world.hurtTables { $0.gets = failures }
        push(world, backend)
        goOn(world, times: failures + 2)
        #expect(backend.answers().compactMap(\.task).count == 1)
        // The one that filled the journal is of the audience too.
        #expect(world.kept == 4)
        #expect(world.gateway.snapshot.reported.ended(.deviceUnreadable) == 0)
    }

    @Test func `Devices that can never be read hold up nobody, and are told of`() throws {
        let world = try RaceWorld()
        _ = try devices(world)
        try world.forgetResting()
        let backend = try RaceBackend(world)
        world.hurtTables { $0.gets = .max }
        push(world, backend)
        goOn(world, times: 700)
        world.hurtTables { _ in }
        goOn(world)
        // The one that filled the journal is of the audience too.
        #expect(world.kept == 0)
        #expect(world.gateway.snapshot.reported.ended(.deviceUnreadable) == 4)
        #expect(world.waiting("tags") == 0)
    }
}
