internal import FerryCore
internal import FerryGateway
internal import FerryStore
internal import Testing

/// Names of devices, while the disk is slow or refuses them.
struct AliasRaces {
    private func send(_ world: RaceWorld, _ backend: RaceBackend, _ call: String, _ body: String) {
        let head =
            "\(call) HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        backend.send(Array((head + body).utf8))
    }

    private func bind(_ world: RaceWorld, _ device: RaceDevice, _ alias: String, _ backend: RaceBackend) {
        let body = #"{"data_list":[{"cid":"\#(device.cid)","alias":"\#(alias)"}]}"#
        send(world, backend, "POST /v2/\(world.app.text)/user/alias", body)
    }

    private func push(_ world: RaceWorld, _ alias: String, _ backend: RaceBackend) {
        let body =
            #"{"request_id":"request-to-\#(alias)","audience":{"alias":["\#(alias)"]},"#
            + #""push_message":{"transmission":"hello"}}"#
        send(world, backend, "POST /v2/\(world.app.text)/push/single/alias", body)
    }

    @Test(arguments: [1, 2])
    func `Neither a name nor an answer about it comes before it is on disk`(shards: Int) throws {
        let world = try RaceWorld(shards: shards)
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let other = try RaceBackend(world)
        bind(world, device, "ann", backend)
        for _ in 0..<6 { world.turn() }
        send(world, other, "GET /v2/\(world.app.text)/user/cid/alias/ann", "")
        send(world, other, "GET /v2/\(world.app.text)/user/alias/cid/\(device.cid)", "")
        // What changes nothing waits for what does.
        bind(world, device, "ann", other)
        for _ in 0..<6 { world.turn() }
        #expect(backend.answers() == [] && other.answers() == [])
        world.settle()
        #expect(backend.answers() == [.refused(0)] && other.answers() == [.refused(0), .refused(0), .refused(0)])
        try world.cutPower()
        let later = try RaceBackend(world)
        push(world, "ann", later)
        world.settle()
        #expect(later.answers().areOnline == [false])
        try world.checkEnd(kept: 1)
    }

    @Test func `A name that the disk refused is refused, and is on disk once a repeat is answered`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        world.disk.capacity = 0
        world.hurt { $0.writes = 1 }
        bind(world, device, "ann", backend)
        world.turn()
        world.sync()
        world.turn()
        #expect(backend.answers() == [.refused(30_019)])
        world.disk.capacity = .max
        bind(world, device, "ann", backend)
        for _ in 0..<3 { world.turn() }
        #expect(backend.answers() == [])
        world.settle()
        #expect(backend.answers() == [.refused(0)])
        try world.cutPower()
        let later = try RaceBackend(world)
        push(world, "ann", later)
        world.settle()
        #expect(later.answers().areOnline == [false])
        // The rows that were refused are written again.
        world.pass(2_000)
        world.settle()
        try world.checkEnd(kept: 1)
    }
}
