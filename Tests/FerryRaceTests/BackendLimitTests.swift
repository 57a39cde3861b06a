internal import FerryCore
internal import FerryGateway
internal import FerrySession
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
}
