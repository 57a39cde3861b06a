internal import FerryCore
internal import FerryGateway
internal import FerrySession
internal import FerryStore
internal import FerryWire
internal import Testing

/// What backends can make the gateway hold.
struct BackendLimitTests {
    private static let mark = 2_000

    private func request(_ method: String, _ path: String, _ world: RaceWorld) -> [UInt8] {
        Array("\(method) \(path) HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n\r\n".utf8)
    }

    @Test func `Answers that wait behind a slow one hold up further requests, and are counted`() throws {
        let world = try RaceWorld { $0.session.highWaterMark = Self.mark }
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        backend.post("a", to: device)
        let health = request("GET", "/healthz", world)
        for _ in 0..<60 { backend.send(health) }
        world.turn()
        let held = world.waiting("answerBytes")
        #expect(held > Self.mark && held < Self.mark + 500)
        #expect(world.gateway.snapshot.memoryBytes >= held)
        world.settle()
        #expect(backend.answers().count == 61)
        try world.checkEnd(kept: 1)
    }

    @Test func `While memory is short, questions to the timeline are refused`() throws {
        let world = try RaceWorld { $0.memoryBytes = 100_000 }
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let path = "/v1/\(world.app.text)/devices/\(device.cid)/timeline"
        backend.send(request("GET", path + "?limit=5000", world) + request("GET", path + "?limit=10", world))
        world.settle()
        #expect(backend.answers() == [.refused(30019), .refused(0)])
        #expect(world.waiting("waitingBytes") == 0)
        try world.checkEnd(kept: 0)
    }

    /// The app's tokens, each for a day from now.
    private func tokens(_ count: UInt8, _ world: RaceWorld) throws -> [String] {
        let app = try #require(world.configuration.apps[world.app])
        return (0..<count).map { number in
            world.configuration.identity.apiToken(
                app: app, expiresAt: world.clock.now + .seconds(86_400), nonce: [number, 0, 0, 0, 0, 0, 0, 0])
        }
    }

    private func revoke(_ tokens: [String], _ backend: RaceBackend, _ world: RaceWorld) -> [RaceBackend.Answer] {
        var answers: [RaceBackend.Answer] = []
        for token in tokens {
            backend.send(request("DELETE", "/v2/\(world.app.text)/auth/\(token)", world))
            world.settle()
            answers += backend.answers()
        }
        return answers
    }

    @Test(arguments: [1, 2])
    func `Revoked tokens count as memory, and are refused while it is short, until those before have expired`(
        shards: Int
    ) throws {
        let limit = 16_384
        let world = try RaceWorld(shards: shards) { $0.memoryBytes = Cap(limit) }
        let backend = try RaceBackend(world)
        let answers = revoke(try tokens(200, world), backend, world)
        let taken = answers.count { $0 == .refused(0) }
        #expect(taken > 10 && taken * 192 * shards < limit)
        #expect(answers == (0..<200).map { .refused($0 < taken ? 0 : 30019) })
        #expect(world.gateway.snapshot.memoryBytes > limit * 9 / 10)
        // What was revoked before is revoked still, and to say so again costs nothing.
        #expect(revoke([try tokens(1, world)[0]], backend, world) == [.refused(0)])
        backend.hangUp()
        world.settle()
        world.pass(86_400_000)
        world.settle()
        let later = try RaceBackend(world)
        #expect(revoke(try tokens(1, world), later, world) == [.refused(0)])
        try world.checkEnd(kept: 0)
    }

    @Test func `While the disk is short, nobody registers and no token is revoked, and who is known comes back`() throws
    {
        let world = try RaceWorld { $0.diskReserveBytes = 1 << 20 }
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        world.disk.capacity = 1 << 20
        world.pass(2_000)
        // Its record is what has the disk looked at.
        var line = try device.attach()
        world.settle()
        let written = world.disk.freeBytes()
        #expect(revoke(try tokens(1, world), backend, world) == [.refused(30019)])
        let stranger = try RaceLine(world, device, shard: 0)
        try stranger.sayHello()
        stranger.introduce(register: try #require(Bytes32([UInt8](repeating: 99, count: 32))))
        world.settle()
        guard case .close(let close)? = stranger.frames().first else { throw RaceFailure("not refused") }
        #expect(close.code == .storeUnavailable)
        #expect(world.disk.freeBytes() == written)
        line = try device.attach()
        world.disk.capacity = 1 << 30
        world.pass(2_000)
        world.settle()
        #expect(revoke(try tokens(1, world), backend, world) == [.refused(0)])
        line.send(.bye)
        try world.checkEnd(kept: 0)
    }
}
