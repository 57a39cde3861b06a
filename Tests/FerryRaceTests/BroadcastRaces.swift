internal import FerryCore
internal import FerryGateway
internal import FerryStore
internal import FerrySession
internal import FerryWire
internal import Testing

/// A push to all and something else, in both orders.
struct BroadcastRaces {
    private func postAll(
        _ backend: RaceBackend, _ world: RaceWorld, _ payload: String, request: String? = nil, ttl: Int? = 86_400_000
    ) {
        let body =
            #"{"request_id":"\#(request ?? "request-of-\(payload)")","audience":"all","settings":{"ttl":\#(ttl ?? -1)},"#
            + #""push_message":{"transmission":"\#(payload)"}}"#
        backend.send(
            Array(
                ("POST /v2/\(world.app.text)/push/all HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8))
    }

    @Test(arguments: 1...3)
    func `One that is posted after the answer comes behind, at every device of every shard`(shards: Int) throws {
        let world = try RaceWorld(shards: shards)
        let devices = try (1...6 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let online = try devices.prefix(3).map { try $0.attach() }
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        world.settle()
        #expect(backend.answers().count == 1)
        for device in devices {
            backend.post("for-one", to: device, request: "request-\(device.cid.description.prefix(20))")
        }
        world.settle()
        #expect(backend.answers().count == 6)
        for line in online { #expect(line.stream() == [.push("for-everybody", false), .push("for-one", false)]) }
        let later = try devices.suffix(3).map { try $0.attach() }
        world.settle()
        for line in later { #expect(line.stream() == [.push("for-everybody", true), .push("for-one", true)]) }
        for line in online + later { line.ack(Seq(2)) }
        try world.checkEnd(kept: 0)
    }

    /// The record of the broadcast and that of its places are two syncs, and between any two steps the power may go.
    @Test(arguments: 0..<8)
    func `It comes once to each device, or was never answered, whenever the power goes`(moment: Int) throws {
        let world = try RaceWorld(shards: 2)
        let devices = try (1...4 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        for step in 0..<moment { if step % 2 == 0 { world.turn() } else { world.sync() } }
        let isAnswered = backend.answers().count == 1
        try world.cutPower()
        world.settle()
        let lines = try devices.map { try $0.attach() }
        world.settle()
        let streams = lines.map { $0.stream() }
        #expect(streams.allSatisfy { $0 == streams[0] })
        #expect(streams[0] == [] && !isAnswered || streams[0] == [.push("for-everybody", true)])
        for line in lines where streams[0] != [] { line.ack(Seq(1)) }
        try world.checkEnd(kept: 0)
    }

    /// The frame waits for the places, not for the content alone (P1).
    @Test func `Nothing leaves before its places are on disk`() throws {
        let world = try RaceWorld()
        let line = try RaceDevice(world).attach()
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        world.turn()
        world.sync()
        for _ in 0..<3 { world.turn() }
        #expect(line.stream() == [])
        #expect(backend.answers() == [])
        world.sync()
        for _ in 0..<2 { world.turn() }
        #expect(line.stream() == [.push("for-everybody", false)])
        #expect(backend.answers().count == 1)
        line.ack(Seq(1))
        try world.checkEnd(kept: 0)
    }

    @Test func `A device that registers later is no target, and one that was there before is`() throws {
        let world = try RaceWorld()
        let before = try RaceDevice(world, number: 1)
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        world.settle()
        let after = try RaceDevice(world, number: 2)
        #expect(world.kept == 1)
        try world.cutPower()
        #expect(world.kept == 1)
        let lines = try [before, after].map { try $0.attach() }
        world.settle()
        #expect(lines.map { $0.stream() } == [[.push("for-everybody", true)], []])
        lines[0].ack(Seq(1))
        try world.checkEnd(kept: 0)
    }

    @Test func `What is live only comes to who is there, and is over for everybody else`() throws {
        let world = try RaceWorld()
        let devices = try (1...3 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let line = try devices[0].attach()
        let backend = try RaceBackend(world)
        postAll(backend, world, "now-or-never", ttl: nil)
        world.settle()
        #expect(line.stream() == [.push("now-or-never", false)])
        #expect(world.ended(.expired) == 2)
        let late = try devices[1].attach()
        world.settle()
        #expect(late.stream() == [])
        line.ack(Seq(1))
        try world.checkEnd(kept: 0)
    }

    /// Whether it was in a log, or nobody had told the device of it: each misses it once, and a crash changes nothing in that.
    @Test(arguments: [false, true])
    func `Who comes after its end is told that it missed it`(isCut: Bool) throws {
        let world = try RaceWorld()
        let devices = try (1...2 as ClosedRange<UInt8>).map { try RaceDevice(world, number: $0) }
        let backend = try RaceBackend(world)
        postAll(backend, world, "short-lived", ttl: 1_000)
        world.settle()
        // So the first device has both in its log, the second is known by its number alone.
        backend.post("long-lived", to: devices[0])
        world.settle()
        world.pass(2_000)
        world.settle()
        #expect(world.ended(.expired) == 2)
        if isCut { try world.cutPower() }
        for _ in 0..<2 {
            let lines = try devices.map { try $0.attach() }
            world.settle()
            #expect(lines[0].stream() == [.gap(expired: 1, overflowed: 0), .push("long-lived", true)])
            #expect(lines[1].stream() == [.gap(expired: 1, overflowed: 0)])
            for line in lines { line.close() }
            world.settle()
        }
        let line = try devices[0].attach()
        world.settle()
        line.ack(Seq(2))
        world.settle()
        #expect(world.kept == 0)
        try world.checkEnd(kept: 0)
    }

    @Test func `A device that left memory gets it when it is loaded again, from a segment that is past`() throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        world.settle()
        #expect(backend.answers().count == 1)
        try world.forgetResting()
        #expect(!world.disk.list().contains("journal-0000000001.seg"))
        try world.cutPower()
        let line = try device.attach()
        world.settle()
        #expect(line.stream() == [.push("for-everybody", true)])
        line.ack(Seq(1))
        world.settle()
        // The filler device of the rest has it before it too.
        try world.checkEnd(kept: 0)
    }

    @Test func `A disk that refuses the places keeps the call waiting, and the broadcast comes when there is room`()
        throws
    {
        let world = try RaceWorld()
        let line = try RaceDevice(world).attach()
        let backend = try RaceBackend(world)
        postAll(backend, world, "for-everybody")
        world.turn()
        world.sync()
        world.turn()
        // Neither the segment takes them nor the next one.
        world.hurt { $0.syncs = 2 }
        world.settle()
        #expect(backend.answers() == [])
        world.hurt { _ in }
        world.pass(2_000)
        world.settle()
        #expect(backend.answers().count == 1)
        #expect(line.stream() == [.push("for-everybody", false)])
        line.ack(Seq(3))
        world.settle()
    }

    @Test func `A long one travels compressed to who takes that, and as it is to all others`() throws {
        let world = try RaceWorld()
        let text = String(repeating: "see-you-at-eight-", count: 100)
        let lines = try [1, 2].map { number in
            try RaceDevice(world, number: number).attach(capabilities: number == 1 ? .compressedPayloads : [])
        }
        let backend = try RaceBackend(world)
        postAll(backend, world, text, request: "request-of-a-long-one")
        world.settle()
        let pushes = lines.map { $0.pushes() }
        #expect(pushes.map { $0.map(\.flags) } == [[.compressed], [[]]])
        #expect(pushes[0].allSatisfy { $0.payload.count * 10 < text.utf8.count })
        #expect(pushes[1].map { String(decoding: $0.payload, as: UTF8.self) } == [text])
        #expect(world.gateway.snapshot.compression.messages == 1)
        for line in lines { line.ack(Seq(1)) }
        try world.checkEnd(kept: 0)
    }

    @Test func `An app has so many live ones and no more, and a repeat is none`() throws {
        let world = try RaceWorld { $0.broadcastsPerApp = 2 }
        let backend = try RaceBackend(world)
        for payload in ["first", "second", "third", "second"] { postAll(backend, world, payload, ttl: 1_000) }
        world.settle()
        let answers = backend.answers()
        #expect(answers.map { $0.task != nil } == [true, true, false, true])
        #expect(answers[2] == .refused(30_019))
        #expect(answers[3] == answers[1])
        world.pass(2_000)
        world.settle()
        postAll(backend, world, "third")
        world.settle()
        #expect(backend.answers().map { $0.task != nil } == [true])
        try world.checkEnd(kept: 0)
    }

    /// Each took 8 KiB of memory until the next start.
    @Test func `What was live only takes the memory of the latest thousand`() throws {
        let world = try RaceWorld {
            $0.broadcastsPerHour = 100_000
            $0.segmentBytes = 1 << 24
        }
        _ = try RaceDevice(world)
        let backend = try RaceBackend(world)
        var memory: [Int] = []
        for round in 1...3 {
            for number in 1...500 {
                postAll(backend, world, "now-or-never-\(round)-\(number)", ttl: nil)
                if number % 50 == 0 { world.settle() }
            }
            #expect(backend.answers().count == 500)
            memory.append(world.gateway.snapshot.memoryBytes)
        }
        #expect(world.ended(.expired) == 1_500)
        #expect(memory[1] - memory[0] > 500 * 8_192)
        #expect(memory[2] - memory[1] < 500 * 1_024)
        try world.checkEnd(kept: 0)
    }

    @Test func `An app begins so many within an hour and no more, also across a restart`() throws {
        let world = try RaceWorld { $0.broadcastsPerHour = 2 }
        let backend = try RaceBackend(world)
        for payload in ["first", "second", "third"] { postAll(backend, world, payload, ttl: 1_000) }
        world.settle()
        #expect(backend.answers().map { $0.task != nil } == [true, true, false])
        world.pass(1_800_000)
        world.settle()
        try world.cutPower()
        let again = try RaceBackend(world)
        postAll(again, world, "third", ttl: 1_000)
        world.settle()
        #expect(again.answers() == [.refused(30_019)])
        world.pass(1_800_001)
        world.settle()
        let later = try RaceBackend(world)
        postAll(later, world, "third", ttl: 1_000)
        world.settle()
        #expect(later.answers().map { $0.task != nil } == [true])
        world.pass(2_000)
        try world.checkEnd(kept: 0)
    }
}
