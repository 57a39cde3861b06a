private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Starting, refusing to start, and stopping.
@Suite struct LifecycleTests {
    @Test(arguments: shardCounts)
    func `TERM closes devices with a word, keeps everything, and ends with 0`(shards: Int) async throws {
        let world = try await World(shards: shards)
        var devices: [RawDevice] = []
        for _ in 0..<8 {
            let device = try await RawDevice(world)
            try await device.register()
            devices.append(device)
        }
        let identity = try #require(devices[0].identity)
        let handshaking = try await RawDevice(world)
        try await handshaking.sayHello()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "kept")
        #expect(try await devices[0].push().text == "kept")
        let began = ContinuousClock.now
        let ended = try await world.stop()
        #expect(ended.status == 0)
        #expect(ended.lines.isEmpty)
        #expect(ContinuousClock.now - began < .seconds(9))
        for device in devices + [handshaking] {
            guard case .close(let close)? = try await device.next() else { throw Unexpected("no close") }
            #expect(close.code == .stopping)
            #expect(close.retryAfter > 0)
        }
        try await world.start()
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.take(1).map(\.text) == ["kept"])
        #expect(try await world.stop().status == 0)
    }

    @Test(arguments: shardCounts)
    func `what is accepted while the gateway stops is kept`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let identity = try await RawDevice(world).register()
        let address = world.backends
        let accepted = Inbox<String>()
        async let pusher: Void = Self.pushUntilRefused(identity.cid, at: address, accepted)
        for _ in 0..<20 { _ = await accepted.next(within: patience) }
        let began = ContinuousClock.now
        #expect(try await world.stop().status == 0)
        #expect(ContinuousClock.now - began < .seconds(8))
        await pusher
        var texts = (0..<20).map { "\($0)" }
        while case .item(let text) = await accepted.next(within: patience) { texts.append(text) }
        try await world.start()
        let again = try await RawDevice(world)
        let welcome = try await again.login(identity)
        // One more may have been accepted whose answer did not arrive.
        #expect((texts.count...texts.count + 1).contains(Int(welcome.keptMessages)))
        #expect(try await again.take(texts.count).map(\.text) == texts)
    }

    private static func pushUntilRefused(_ cid: CID, at address: SocketAddress, _ accepted: Inbox<String>) async {
        var number = 0
        while let backend = try? await Backend(at: address), (try? await backend.push(cid, "\(number)")) != nil {
            accepted.put("\(number)")
            number += 1
        }
        accepted.end()
    }

    @Test(arguments: shardCounts)
    func `idle connections do not hold up a stop`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world)
        let half = try await Backend(world, authenticates: false)
        try await half.socket.send(Array("POST /v2/shop/auth HTTP/1.1\r\nHost: g\r\nContent-Le".utf8))
        let silent = try await ByteSocket(to: world.devices)
        #expect(try await backend.call("GET", "/healthz").status == 200)
        let began = ContinuousClock.now
        #expect(try await world.stop().status == 0)
        #expect(ContinuousClock.now - began < .seconds(5))
        #expect(try await backend.isHungUp())
        silent.close()
    }

    /// The outbox is a pipe that nobody reads, so that the thread that writes it waits for ever, as for a disk that hangs.
    @Test func `a stop ends while a file takes nothing, and keeps what was accepted`() async throws {
        let world = try await World(shards: 2, ["drainDeadlineMs": 100], starts: false)
        let pipe = try FullPipe(at: world.outboxPath)
        try await world.start()
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        try await device.sayBye()
        try await Backend(world).push(identity.cid, "kept")
        let began = ContinuousClock.now
        let ended = try await world.stop()
        #expect(ended.status == 3)
        #expect(ended.log.contains("the stop was given up"))
        #expect(ContinuousClock.now - began >= .seconds(5))
        try pipe.remove()
        try await world.start()
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.take(1).map(\.text) == ["kept"])
        #expect(try await world.stop().status == 0)
    }

    @Test func `a second gateway on the same folder is refused with a sentence`() async throws {
        let world = try await World(shards: 1)
        let second = try await Child.run(
            world.arguments + ["--device-listen", ":0", "--http-listen", ":0", "--insecure-plain"])
        #expect(second.status == 1)
        #expect(second.lines.isEmpty)
        #expect(second.errors.contains(world.data))
        #expect(second.errors.split(separator: "\n").count <= 2, "\(second.errors)")
        #expect(try await Backend(world).call("GET", "/healthz").status == 200)
    }

    @Test func `a port in use is named`() async throws {
        let world = try await World(shards: 1)
        let other = try await World(shards: 1, starts: false)
        for option in ["--device-listen", "--http-listen"] {
            let free = option == "--device-listen" ? "--http-listen" : "--device-listen"
            let taken = world.devices.description
            let refused = try await Child.run(other.arguments + [option, taken, free, "127.0.0.1:0"])
            #expect(refused.status == 1)
            #expect(refused.lines.isEmpty)
            #expect(refused.errors.contains(taken) && refused.errors.contains("in use"), "\(refused.errors)")
        }
        let link = try await Child.run(
            other.arguments + [
                "--device-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--backend-listen",
                world.links.description,
            ])
        #expect(link.status == 1)
        #expect(link.errors.contains(world.links.description) && link.errors.contains("in use"), "\(link.errors)")
        // Nothing was left behind that keeps it from starting.
        try await other.start()
    }

    @Test func `links can be switched off`() async throws {
        let world = try await World(shards: 1, starts: false)
        let child = try Child(
            world.arguments + [
                "--device-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--backend-listen", "none",
            ])
        let ready = try #require(try await child.line())
        #expect(ready.contains("ready") && !ready.contains("backend"))
        child.send(SIGTERM)
        #expect(try await child.status() == 0)
    }

    @Test func `beyond loopback, plain TCP must be asked for`() async throws {
        let world = try await World(shards: 1, starts: false)
        for (device, http) in [("0.0.0.0:0", "127.0.0.1:0"), ("127.0.0.1:0", ":0"), ("10.0.0.1:0", "127.0.0.1:0")] {
            let refused = try await Child.run(world.arguments + ["--device-listen", device, "--http-listen", http])
            #expect(refused.status == 1)
            #expect(refused.errors.contains("--insecure-plain"), "\(refused.errors)")
        }
        let link = try await Child.run(
            world.arguments + [
                "--device-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--backend-listen", "0.0.0.0:0",
            ])
        #expect(link.status == 1 && link.errors.contains("--backend-listen 0.0.0.0:0"), "\(link.errors)")
        let allowed = try Child(
            world.arguments + ["--device-listen", "0.0.0.0:0", "--http-listen", ":0", "--insecure-plain"])
        let ready = try #require(try await allowed.line())
        #expect(ready.contains("ready") && ready.contains("\"backend\":\"127.0.0.1:"))
        allowed.send(SIGINT)
        #expect(try await allowed.line() == nil)
        #expect(try await allowed.status() == 0)
    }

    @Test func `all that is wrong with apps and configuration is said at once`() async throws {
        let world = try await World(shards: 1, starts: false)
        func start(apps: String) async throws -> String {
            try Data(apps.utf8).write(to: URL(fileURLWithPath: world.folder + "/apps.json"))
            let refused = try await Child.run(
                world.arguments + ["--device-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
            #expect(refused.status == 1)
            #expect(refused.lines.isEmpty)
            return refused.errors
        }
        let good = #"{"appId":"good","appKey":"k","appSecret":"s","masterSecret":"secret-value"}"#
        let several = try await start(
            apps: """
                [\(good), {"appId":"a b","appKey":"k","appSecret":"s","masterSecret":"m"}, \(good),
                {"appId":"x","appKey":"","appSecret":"s","masterSecret":"m"},
                {"appId":"y","appKey":"k","appSecret":"s","masterSecret":"m","apns":{"environment":"moon"}}]
                """)
        for word in ["app 2", "app 3", "twice", "app 4", "appKey", "app 5", "environment"] {
            #expect(several.contains(word), "\(word) is not in \(several)")
        }
        #expect(!several.contains("secret-value"))
        #expect(try await start(apps: "[]").contains("no app"))
        #expect(try await start(apps: "{").contains("apps.json"))
        #expect(try await start(apps: #"[{"appId":"x"}]"#).contains("appKey"))

        try world.configure(["shards": 0, "reatachGraceMs": 5, "stubText": "", "windowBytes": "many"])
        let configuration = try await start(apps: "[\(good)]")
        for word in ["shards", "reattachGraceMs", "stubText", "windowBytes"] {
            #expect(configuration.contains(word), "\(word) is not in \(configuration)")
        }
    }

    @Test(arguments: shardCounts)
    func `a first start makes an app and its secrets, and says how to try it`(shards: Int) async throws {
        let world = try await World(shards: shards, starts: false)
        let arguments = [
            "serve", "--data", world.data, "--shards", "\(shards)", "--device-listen", "127.0.0.1:0", "--http-listen",
            "127.0.0.1:0", "--backend-listen", "127.0.0.1:0",
        ]
        let first = try Child(arguments)
        #expect(try await first.line()?.contains("ready") == true)
        _ = try await first.errorText(
            with: [" listen --server 127.0.0.1:", "curl ", " push --http http://127.0.0.1:"])
        for name in ["data.identity", "data.apps.json"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: world.folder + "/" + name)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
        first.send(SIGTERM)
        #expect(try await first.status() == 0)
        let apps = FileManager.default.contents(atPath: world.folder + "/data.apps.json")
        let second = try Child(arguments)
        #expect(try await second.line()?.contains("ready") == true)
        // What a first start says comes before this.
        #expect(try await second.errorText(with: [" ready "]).contains("curl ") == false)
        #expect(FileManager.default.contents(atPath: world.folder + "/data.apps.json") == apps)
        second.send(SIGINT)
        #expect(try await second.status() == 0)
    }

    @Test(arguments: shardCounts)
    func `the folder may be opened with another count of shards`(shards: Int) async throws {
        let world = try await World(shards: shards)
        var identities: [TestIdentity] = []
        let backend = try await Backend(world)
        for number in 0..<6 {
            let device = try await RawDevice(world)
            identities.append(try await device.register())
            try await device.sayBye()
            try await backend.push(identities[number].cid, "for \(number)", requestID: "request-\(number)-x")
        }
        try await world.stop()
        world.shards = shards == 1 ? 4 : 1
        try await world.start()
        let after = try await Backend(world)
        for (number, identity) in identities.enumerated() {
            try await after.push(identity.cid, "for \(number)", requestID: "request-\(number)-x")
            let device = try await RawDevice(world)
            try await device.login(identity)
            #expect(try await device.take(1).map(\.text) == ["for \(number)"])
            #expect(try await device.settled().isEmpty)
        }
    }

    @Test(arguments: shardCounts)
    func `in memory everything works, and nothing but wake-ups is written`(shards: Int) async throws {
        let world = try await World(shards: shards, ["store": "memory"])
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        try await device.sayBye()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, all: (0..<100).map { "\($0)" })
        let again = try await RawDevice(world)
        try await again.login(identity)
        #expect(try await again.take(100).map(\.text) == (0..<100).map { "\($0)" })
        #expect(try await world.stop().status == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: world.data) == ["outbox.jsonl"])
        #expect(try world.stubs().count == 1)
    }

    @Test(arguments: shardCounts)
    func `logs hold neither payloads nor secrets`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "payload-never-logged")
        _ = try await device.push()
        try await device.ack(Seq(.max))
        _ = try await device.closeCode()
        _ = try await backend.authenticate(masterSecret: "guess-never-logged")
        let log = try await world.log(with: ["session closed"])
        for secret in [
            "payload-never-logged", "guess-never-logged", "secret-of-shop", "master-of-shop", backend.token,
            StubTests.token, Hexadecimal.encode(identity.secret),
        ] { #expect(!log.contains(secret)) }
    }
}
