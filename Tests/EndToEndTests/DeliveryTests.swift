private import FerryCore
private import FerryIO
private import FerryWire
internal import Testing

/// What an online device gets (P2, P4).
@Suite struct DeliveryTests {
    @Test(arguments: shardCounts)
    func `an online device gets a payload at once, marked as live`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try ListenProcess(world, state: "device")
        let cid = try await device.online()
        let backend = try await Backend(world)
        let receipt = try await backend.push(cid, "Hello, 世界 👋🏽")
        #expect(receipt.wasOnline)
        #expect(receipt.cid == cid.description)
        let event = try await device.event("payload")
        #expect(event.payload == "Hello, 世界 👋🏽")
        #expect(event.isOffLine == false)
        #expect(event.fields["taskId"] as? String == receipt.taskID)
        #expect(event.fields["appId"] as? String == "shop")
        #expect(try await device.stop() == 0)
        try await world.stop()
        #expect(try world.stubs().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `many messages arrive in the order of their acceptance`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        let texts = (0..<600).map { "message \($0)" }
        let address = world.backends
        async let receipts = Backend.push(cid, all: texts, at: address)
        let pushes = try await device.take(texts.count)
        #expect(pushes.map(\.text) == texts)
        #expect(pushes.allSatisfy { !$0.isOffLine })
        #expect(zip(pushes, pushes.dropFirst()).allSatisfy { $0.seq < $1.seq })
        #expect(try await receipts.map(\.taskID) == pushes.map(\.taskID))
    }

    @Test(arguments: shardCounts)
    func `payloads are not touched, from one byte to the largest`(shards: Int) async throws {
        let world = try await World(shards: shards, ["payloadCharacters": 65_536])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let everyScalar = String(String.UnicodeScalarView((1..<0x800).compactMap { Unicode.Scalar($0) }))
        let texts = [
            "x", "\u{0}", "\"\\\u{7}\u{1b}\r\n\t/", everyScalar, "\u{10ffff}\u{fffe}\u{feff}e\u{301}",
            String(repeating: "a", count: 65_536), String(repeating: "語", count: 21_845),
        ]
        for text in texts { try await backend.push(identity.cid, text) }
        for text in texts {
            let push = try await device.push()
            #expect(push.payload == Array(text.utf8))
            try await device.ack(push.seq)
        }
        // Once more by way of the disk.
        try await device.sayBye()
        for text in texts { try await backend.push(identity.cid, text) }
        let again = try await RawDevice(world)
        try await again.login(identity)
        for text in texts {
            let push = try await again.push()
            #expect(push.payload == Array(text.utf8))
            try await again.ack(push.seq)
        }
        let tooLong = try await backend.send(identity.cid, String(repeating: "a", count: 65_537))
        #expect(tooLong.code == 20001)
        #expect(tooLong.message.contains("push_message.transmission"))
    }

    @Test(arguments: shardCounts)
    func `the two commands of the first steps work together`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try ListenProcess(world, ["--count", "2"])
        let cid = try await device.online()
        for payload in ["one", "two"] {
            let pushed = try await Child.run(
                [
                    "push", "--http", "http://\(world.backends)", "--app", "shop", "--cid", cid.description,
                    "--payload",
                    payload,
                ], environment: ["FERRY_APP_KEY": "key-of-shop", "FERRY_MASTER_SECRET": "master-of-shop"])
            #expect(pushed.status == 0)
            #expect(pushed.lines.first?.contains("successed_online") == true)
        }
        #expect(try await device.payloads(2).map(\.payload) == ["one", "two"])
        #expect(try await device.status() == 0)
        let backend = try await Backend(world)
        try await backend.waitUntil(cid, isOnline: false)
    }

    @Test(arguments: shardCounts)
    func `a message is not sent again once it is acknowledged`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "first")
        let first = try await device.push()
        try await backend.push(identity.cid, "second")
        _ = try await device.push()
        try await device.ack(first.seq)
        #expect(try await device.settled().isEmpty)
        device.close()
        let again = try await RawDevice(world)
        // No place named: the gateway alone must know what was acknowledged.
        let welcome = try await again.login(identity)
        #expect(welcome.keptMessages == 1)
        #expect(try await again.push().text == "second")
        #expect(try await again.settled().isEmpty)
    }
}

/// Every test of a gateway runs with one thread and with several.
let shardCounts = [1, 3]
