internal import FerryCore
internal import FerryGateway
internal import FerryStore
internal import FerryWire
internal import Testing

/// A device is erased, or removed for its long absence, while something else happens.
struct RemovalRaces {
    private static let moments = 14
    private static let day = 86_400_000

    private func erase(_ world: RaceWorld, _ device: RaceDevice, _ backend: RaceBackend) {
        let head =
            "DELETE /v1/\(world.app.text)/devices/\(device.cid) HTTP/1.1\r\nHost: gateway\r\n"
            + "token: \(world.apiToken)\r\nContent-Length: 0\r\n\r\n"
        backend.send(Array(head.utf8))
    }

    private func closeCode(_ line: RaceLine) -> CloseCode? {
        for case .close(let close) in line.frames() { return close.code }
        return nil
    }

    /// What a login of the device is answered with.
    private func expectGone(_ world: RaceWorld, _ device: RaceDevice) throws {
        let line = try device.greet()
        line.login()
        world.settle()
        #expect(closeCode(line) == .unknownDevice)
        line.close()
    }

    /// A device with a token and two messages kept, one of them sent; the other way, it is away.
    private func kept(_ world: RaceWorld, isAway: Bool) throws -> (RaceDevice, RaceBackend, RaceLine) {
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach(window: 1)
        if isAway {
            line.send(.bye)
            world.settle()
        }
        for text in ["a", "b"] { backend.post(text, to: device) }
        world.settle()
        try #require(backend.answers().count == 2)
        if !isAway { try #require(line.stream() == [.push("a", false)]) }
        return (device, backend, line)
    }

    @Test(arguments: 0..<moments, [false, true])
    func `A device that is erased at any moment of a retirement leaves nothing behind`(
        moment: Int, isAway: Bool
    ) throws {
        let world = try RaceWorld(shards: 2)
        let (device, backend, line) = try kept(world, isAway: isAway)
        let filler = try RaceDevice(world, number: 200, hasToken: false)
        let fillers = try RaceBackend(world)
        let text = String(repeating: "x", count: 3_000)
        for move in 0..<Self.moments {
            if move == moment { erase(world, device, backend) }
            if move % 2 == 0 {
                if move < 10 {
                    for number in 0..<2 {
                        fillers.post(text, to: filler, request: "filler-request-\(move)-\(number)", ttl: nil)
                    }
                }
                world.turn()
            } else {
                world.sync()
            }
        }
        world.settle()
        #expect(backend.answers() == [.refused(0)])
        if !isAway { #expect(closeCode(line) == .deviceRemoved) }
        #expect(world.ended(.skipped) == 2 && world.gateway.snapshot.devicesRemoved == 1)
        try expectGone(world, device)
        try world.checkEnd(kept: 0)
        try expectGone(world, device)
        // The tables take over what the journal said of it.
        try world.forgetResting()
        world.settle()
        try expectGone(world, device)
        try world.cutPower()
        try expectGone(world, device)
    }

    @Test func `What the disk refuses leaves the device as it was, and the call may be repeated`() throws {
        let world = try RaceWorld()
        let (device, backend, line) = try kept(world, isAway: false)
        world.disk.capacity = 0
        world.hurt { $0.writes = 1 }
        erase(world, device, backend)
        world.turn()
        world.sync()
        world.turn()
        #expect(backend.answers() == [.refused(30_019)])
        world.disk.capacity = .max
        world.pass(2_000)
        world.settle()
        line.ack(Seq(1))
        world.settle()
        #expect(line.stream() == [.push("b", false)])
        erase(world, device, backend)
        world.settle()
        #expect(backend.answers() == [.refused(0)])
        #expect(closeCode(line) == .deviceRemoved)
        try world.checkEnd(kept: 0)
    }

    @Test func `What is pushed while a removal is on its way to the disk finds no device`() throws {
        let world = try RaceWorld()
        let (device, backend, _) = try kept(world, isAway: true)
        erase(world, device, backend)
        world.turn()
        backend.post("late", to: device)
        world.turn()
        let other = try device.greet()
        other.login()
        world.turn()
        world.settle()
        #expect(backend.answers() == [.refused(0), .refused(20_001)])
        // It was not known yet whether it would be gone.
        #expect(closeCode(other) == .storeUnavailable)
        #expect(world.ended(.skipped) == 2)
        other.close()
        try expectGone(world, device)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [1, 2])
    func `A device that was not seen for its retention is gone, and one that was is not`(shards: Int) throws {
        let world = try RaceWorld(shards: shards) { $0.deviceRetention = .seconds(90 * 86_400) }
        let absent = try RaceDevice(world, number: 1)
        let back = try RaceDevice(world, number: 2)
        for device in [absent, back] {
            let line = try device.attach()
            line.send(.bye)
            world.settle()
            line.close()
        }
        for days in [60, 29] {
            world.pass(days * Self.day)
            world.settle()
        }
        let line = try back.attach()
        line.send(.bye)
        world.settle()
        line.close()
        #expect(world.gateway.snapshot.devicesRemoved == 0)
        world.pass(2 * Self.day)
        world.settle()
        #expect(world.gateway.snapshot.devicesRemoved == 1)
        try expectGone(world, absent)
        let backend = try RaceBackend(world)
        backend.post("there", to: back)
        world.settle()
        #expect(backend.answers().map { $0.task != nil } == [true])
        try world.cutPower()
        try expectGone(world, absent)
        #expect(world.kept == 1)
    }
}
