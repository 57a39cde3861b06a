private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Peers that are broken, slow or hostile hurt only themselves (P7).
@Suite struct HostileClientTests {
    /// A gateway with one well-behaved device, and the proof that it still behaves.
    private struct Neighbour {
        let device: RawDevice
        let identity: TestIdentity
        let backend: Backend

        init(_ world: World) async throws {
            device = try await RawDevice(world)
            identity = try await device.register()
            backend = try await Backend(world)
        }

        func check() async throws {
            let text = "still here \(Backend.freshRequestID())"
            try await backend.push(identity.cid, text)
            #expect(try await device.take(1).map(\.text) == [text])
        }
    }

    @Test(arguments: shardCounts)
    func `random bytes on both ports do no harm`(shards: Int) async throws {
        let world = try await World(shards: shards, ["handshakeDeadlineMs": 200])
        let neighbour = try await Neighbour(world)
        var random = SystemRandomNumberGenerator()
        for _ in 0..<60 {
            let size = Int.random(in: 1...3_000, using: &random)
            let bytes = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
            let device = try await ByteSocket(to: world.devices)
            try await device.send(bytes)
            while try await device.receive() != nil {}
            let backend = try await ByteSocket(to: world.backends)
            try await backend.send(bytes)
            backend.endSending()
            while try await backend.receive() != nil {}
        }
        try await neighbour.check()
    }

    @Test(arguments: shardCounts)
    func `random frames of a session end that session at most`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let neighbour = try await Neighbour(world)
        let identity = try await RawDevice(world).register()
        var random = SystemRandomNumberGenerator()
        for _ in 0..<60 {
            let device = try await RawDevice(world)
            try await device.login(identity)
            let type = UInt8.random(in: 0...255, using: &random)
            let size = UInt8.random(in: 0...100, using: &random)
            let body = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
            try await device.socket.send([type, size] + body)
            try await device.send(.bye)
            while try await device.next() != nil {}
        }
        try await neighbour.check()
    }

    @Test(arguments: shardCounts)
    func `each port refuses the other's language`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let neighbour = try await Neighbour(world)
        for method in ["GET", "POST", "DELETE"] {
            let lost = try await RawDevice(world)
            let agent = "User-Agent: " + String(repeating: "x", count: 100)
            try await lost.socket.send(Backend.request(method, "/v2/shop/auth", headers: [agent]))
            #expect(try await lost.closeCode() == .protocolError)
        }
        let stray = try await Backend(world, authenticates: false)
        try await stray.socket.send(DeviceFrame.hello(HelloFrame(nonce: .zero)).encoded() + Array("\r\n\r\n".utf8))
        #expect(try await stray.answer().status == 400)
        #expect(try await stray.isHungUp())
        try await neighbour.check()
    }

    @Test(arguments: shardCounts)
    func `frames may come one byte at a time`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let identity = try await RawDevice(world).register()
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        device.socket.sendsSingleBytes = true
        try await device.login(identity)
        try await backend.push(identity.cid, all: ["1", "2"])
        let pushes = try await device.take(2)
        #expect(pushes.map(\.text) == ["1", "2"])
        #expect(try await device.settled().isEmpty)
        try await device.sayBye()
        let again = try await RawDevice(world)
        #expect(try await again.login(identity).keptMessages == 0)
    }

    @Test(arguments: shardCounts)
    func `a client may vanish after any byte of its handshake`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let neighbour = try await Neighbour(world)
        let identity = try await RawDevice(world).register()
        try await neighbour.backend.push(identity.cid, "kept")
        let sample = try await RawDevice(world)
        try await sample.sayHello()
        let helloSize = sample.helloBytes.count
        let loginSize = DeviceFrame.login(try sample.loginFrame(identity)).encoded().count
        for size in 0..<helloSize {
            let device = try await RawDevice(world)
            try await device.socket.send(Array(sample.helloBytes.prefix(size)))
            device.close()
        }
        for size in 0...loginSize {
            let device = try await RawDevice(world)
            try await device.sayHello()
            try await device.socket.send(
                Array(DeviceFrame.login(try device.loginFrame(identity)).encoded().prefix(size)))
            device.close()
        }
        try await neighbour.check()
        let device = try await RawDevice(world)
        try await device.login(identity)
        #expect(try await device.take(1).map(\.text) == ["kept"])
    }

    @Test(arguments: shardCounts)
    func `a frame larger than a device may send is refused by its header`(shards: Int) async throws {
        let world = try await World(shards: shards)
        for isInSession in [false, true] {
            for header: [UInt8] in [[4, 0x81, 0x20], [0x7f, 0xff, 0xff, 0xff, 0x7f]] {
                let device = try await RawDevice(world)
                if isInSession { try await device.register() }
                try await device.socket.send(header)
                #expect(try await device.closeCode() == .frameTooLarge)
            }
            // The largest that is allowed: skipped in a session, out of turn in a handshake.
            let device = try await RawDevice(world)
            if isInSession { try await device.register() }
            try await device.socket.send([0x7f, 0x80, 0x20] + [UInt8](repeating: 7, count: 4_096))
            if isInSession {
                #expect(try await device.settled().isEmpty)
            } else {
                #expect(try await device.closeCode() == .protocolError)
            }
        }
    }

    @Test(arguments: shardCounts)
    func `frames that break the protocol close the session and lose nothing`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await backend.push(identity.cid, "kept")
        let push = try await device.push()
        let faults: [([UInt8], CloseCode)] = [
            (DeviceFrame.ack(AckFrame(seq: push.seq.next)).encoded(), .acknowledgedUnsent),
            (DeviceFrame.ack(AckFrame(seq: Seq(.max))).encoded(), .acknowledgedUnsent),
            ([0x80, 0], .protocolError), ([4, 0], .protocolError), ([4, 0xff, 0xff, 0xff, 0xff, 0xff], .protocolError),
            ([4, 2, 0x80, 0], .protocolError), ([0x44, 0], .protocolError), ([10, 2, 3, 0], .fieldOutOfRange),
            (DeviceFrame.hello(HelloFrame(nonce: .zero)).encoded(), .protocolError),
            (DeviceFrame.foreground(ForegroundFrame(lastSeq: .zero)).encoded(), .protocolError),
        ]
        for (bytes, code) in faults {
            let device = try await RawDevice(world)
            try await device.login(identity)
            #expect(try await device.push().seq == push.seq)
            try await device.socket.send(bytes)
            #expect(try await device.closeCode() == code, "\(bytes)")
        }
    }

    @Test(arguments: shardCounts)
    func `a client that does not read is cut off and loses nothing`(shards: Int) async throws {
        let world = try await World(
            shards: shards,
            [
                "payloadCharacters": 65_536, "windowBytes": 1 << 29, "windowDefault": 1_024, "highWaterBytes": 65_536,
                "slowDeadlineMs": 400, "ackDeadlineMs": 600_000, "progressDeadlineMs": 3_600_000, "byteCap": 1 << 30,
                "reattachGraceMs": 0,
            ])
        let neighbour = try await Neighbour(world)
        let slow = try await RawDevice(world, hasSmallBuffer: true)
        let identity = try await slow.register()
        slow.socket.stopReading()
        let texts = (0..<200).map { "\($0) " + String(repeating: "x", count: 60_000) }
        try await neighbour.backend.push(identity.cid, all: texts)
        try await neighbour.check()
        try await neighbour.backend.waitUntil(identity.cid, isOnline: false)
        try await neighbour.check()
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.take(200).map(\.text) == texts)
        #expect(try await again.settled().isEmpty)
    }
}
