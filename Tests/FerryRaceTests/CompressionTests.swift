internal import FerryAPI
internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerrySession
internal import FerryWire
internal import Testing

/// Compressed payloads inside the gateway: what they count, and what they do not change.
struct CompressionTests {
    private let text = String(repeating: "see you at eight; ", count: 222)

    private func world(windowBytes: Int32 = 262_144) throws -> RaceWorld {
        try RaceWorld {
            $0.api = APILimits(payloadCharacters: 65_536)
            $0.session.windowBytes = windowBytes
        }
    }

    /// The window is a bound on the client's memory: it must not grow by what compression saves.
    @Test func `The window of bytes counts originals`() throws {
        let world = try world(windowBytes: 10_000)
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach(capabilities: .compressedPayloads)
        for number in 0..<5 { backend.post(text, to: device, request: "request-\(1_000 + number)") }
        world.settle()
        let first = line.pushes()
        try #require(first.count == 2)
        #expect(first.allSatisfy { $0.flags == .compressed && $0.payload.count < 1_000 })
        line.ack(first[1].seq)
        world.settle()
        #expect(line.pushes().count == 2)
    }

    @Test func `Counters tell bytes before and after, for each time that a message is sent`() throws {
        let world = try world()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach(capabilities: .compressedPayloads)
        for (number, text) in [text, "short", text].enumerated() {
            backend.post(text, to: device, request: "request-\(1_000 + number)")
        }
        world.settle()
        let pushes = line.pushes()
        try #require(pushes.map(\.flags) == [.compressed, [], .compressed])
        let compression = world.gateway.snapshot.compression
        #expect(compression.messages == 2 && compression.unshrunk == 0)
        #expect(compression.bytesBefore == UInt64(2 * text.utf8.count))
        #expect(compression.bytesAfter == UInt64(pushes[0].payload.count + pushes[2].payload.count))
        // Once more, to another connection, which wants it; and to one that does not.
        let again = try device.attach(capabilities: .compressedPayloads)
        world.settle()
        #expect(again.pushes().map(\.flags) == [.compressed, [], .compressed])
        #expect(world.gateway.snapshot.compression.messages == 4)
        let plain = try device.attach()
        world.settle()
        #expect(plain.pushes().map { String(decoding: $0.payload, as: UTF8.self) } == [text, "short", text])
        #expect(world.gateway.snapshot.compression.messages == 4)
    }

    @Test func `Compression lasts through background and foreground`() throws {
        let world = try world()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        let line = try device.attach(capabilities: .compressedPayloads)
        line.send(.background)
        world.settle()
        backend.post(text, to: device)
        world.settle()
        line.send(.foreground(ForegroundFrame(lastSeq: .zero)))
        world.settle()
        let push = try #require(line.pushes().first)
        #expect(push.flags == [.compressed, .offLine])
        let whole = try push.unpacked(isAgreed: true, inflate: Inflation.inflate)
        #expect(String(decoding: whole.payload, as: UTF8.self) == text)
    }

    @Test(arguments: [1, 2])
    func `A push to all is compressed for those that take it, before and after the power went`(shards: Int) throws {
        let world = try RaceWorld(shards: shards) { $0.api = APILimits(payloadCharacters: 65_536) }
        let taking = try RaceDevice(world, number: 1)
        let plain = try RaceDevice(world, number: 2)
        let lines = (try taking.attach(capabilities: .compressedPayloads), try plain.attach())
        let backend = try RaceBackend(world)
        let body =
            #"{"request_id":"request-to-all","audience":"all","settings":{"ttl":86400000},"#
            + #""push_message":{"transmission":"\#(text)"}}"#
        backend.send(
            Array(
                ("POST /v2/\(world.app.text)/push/all HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8))
        world.settle()
        func check(_ lines: (RaceLine, RaceLine), _ flags: PushFrame.Flags) throws {
            let compressed = try #require(lines.0.pushes().first)
            #expect(compressed.flags == flags.union(.compressed))
            let whole = try compressed.unpacked(isAgreed: true, inflate: Inflation.inflate)
            #expect(String(decoding: whole.payload, as: UTF8.self) == text)
            let push = try #require(lines.1.pushes().first)
            #expect(push.flags == flags && String(decoding: push.payload, as: UTF8.self) == text)
        }
        try check(lines, [])
        #expect(world.gateway.snapshot.compression.messages == 1)
        try world.cutPower()
        world.settle()
        let again = (try taking.attach(capabilities: .compressedPayloads), try plain.attach())
        world.settle()
        try check(again, .offLine)
    }
}
