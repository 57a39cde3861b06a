private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Who may do what: backends by token, devices by proof.
@Suite struct IdentityTests {
    @Test(arguments: shardCounts)
    func `an authentication with a wrong secret is 20001, and never 10001`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let backend = try await Backend(world, authenticates: false)
        let refused = [
            try await backend.authenticate(masterSecret: "wrong"),
            try await backend.authenticate(masterSecret: TestApp.second.masterSecret),
            try await backend.authenticate(key: "wrong"),
            try await backend.authenticate(timestamp: WallClock().now.milliseconds - 3_600_000),
            try await backend.authenticate(timestamp: 0),
        ]
        for answer in refused {
            #expect(answer.status == 400 && answer.code == 20001)
            #expect(!answer.text.contains("master-of-shop"))
        }
        #expect(refused[0].message == refused[2].message)
        #expect(refused[3].message.contains("timestamp"))
        #expect(try await backend.authenticate().token().isEmpty == false)
        let unknown = try await backend.call("POST", "/v2/unknown-app/auth", body: Array("{}".utf8))
        #expect(unknown.code == 20001)
        #expect(unknown.message.contains("unknown-app"))
    }

    @Test(arguments: shardCounts)
    func `only a live token of the app opens the API`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let other = try await Backend(world, app: .second)
        let body = try Backend.pushBody(identity.cid, "hello")
        var flipped = Array(backend.token)
        flipped[40] = flipped[40] == "0" ? "1" : "0"
        let bad: [[String]] = [
            [], ["token: "], ["token: nonsense"], ["token: \(other.token)"], ["token: \(String(flipped))"],
            ["token: \(backend.token)00"],
        ]
        for headers in bad {
            let answer = try await backend.call("POST", "/v2/shop/push/single/cid", headers: headers, body: body)
            #expect(answer.status == 401 && answer.code == 10001, "\(headers)")
            let status = try await backend.call("GET", "/v2/shop/user/status/\(identity.cid)", headers: headers)
            #expect(status.status == 401 && status.code == 10001, "\(headers)")
        }
        // Another app's backend cannot reach the device, nor see that it is there.
        let foreign = try await other.send(identity.cid, "intruder")
        #expect(foreign.code == 20001 && foreign.message.contains("target user is invalid"))
        #expect(try await device.settled().isEmpty)
        let status = try await other.call(
            "GET", "/v2/news/user/status/\(identity.cid)", headers: ["token: \(other.token)"])
        #expect(status.code == 0 && !status.text.contains(identity.cid.description))
    }

    /// A revocation was answered before the other shards knew of it: one of them served the token a moment longer.
    @Test(arguments: shardCounts)
    func `a revoked token is worthless from the answer on, on every shard`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let cid = try await RawDevice(world).register().cid
        var others: [Backend] = []
        for _ in 0..<8 { others.append(try await Backend(world)) }
        for _ in 0..<25 {
            let backend = try await Backend(world)
            let request = Backend.request(
                "GET", "/v2/shop/user/status/\(cid)", headers: ["token: \(backend.token)"])
            #expect(try await backend.call("DELETE", "/v2/shop/auth/\(backend.token)").code == 0)
            for other in others { try await other.socket.send(request) }
            for other in others { #expect(try await other.answer().code == 10001) }
        }
    }

    @Test(arguments: shardCounts)
    func `a revoked token stays revoked, on every shard and after a kill`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let identity = try await RawDevice(world).register()
        let backend = try await Backend(world)
        let other = try await Backend(world)
        let revoked = try await backend.call("DELETE", "/v2/shop/auth/\(backend.token)")
        #expect(revoked.status == 200 && revoked.code == 0)
        for isRestarted in [false, true] {
            if isRestarted { try await world.restartAfterKill() }
            for _ in 0..<12 {
                let connection = try await Backend(world, authenticates: false)
                // Tokens are hex, which has two spellings.
                for token in [backend.token, backend.token.uppercased()] {
                    let answer = try await connection.call(
                        "GET", "/v2/shop/user/status/\(identity.cid)", headers: ["token: \(token)"])
                    #expect(answer.status == 401 && answer.code == 10001)
                }
                let fine = try await connection.call(
                    "GET", "/v2/shop/user/status/\(identity.cid)", headers: ["token: \(other.token)"])
                #expect(fine.code == 0)
            }
        }
        let again = try await Backend(world).call("DELETE", "/v2/shop/auth/nonsense")
        #expect(again.code == 10001)
    }

    @Test(arguments: shardCounts)
    func `registration wants the app's secret, and is idempotent`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let wrong = try await RawDevice(world)
        try await wrong.sayHello()
        try await wrong.send(.register(try wrong.registration(secret: TestApp.second.secret)))
        #expect(try await wrong.closeCode() == .wrongAppSecret)

        let unknown = try await RawDevice(world)
        try await unknown.sayHello()
        try await unknown.send(.register(try unknown.registration(appID: "no-such-app")))
        #expect(try await unknown.closeCode() == .unknownApp)

        let first = try await RawDevice(world).register()
        #expect(try await RawDevice(world).register(key: first.installationKey) == first)
        try await world.restartAfterKill()
        #expect(try await RawDevice(world).register(key: first.installationKey) == first)
        let foreign = try await RawDevice(world, app: .second).register(key: first.installationKey)
        #expect(foreign.cid != first.cid && foreign.secret != first.secret)
    }

    @Test(arguments: shardCounts)
    func `nobody logs in as a device without its secret`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let victim = try await RawDevice(world)
        let identity = try await victim.register()
        let other = try await RawDevice(world).register()
        var forgeries: [TestIdentity] = []
        func forge(_ change: (inout TestIdentity) -> Void) {
            var forged = identity
            change(&forged)
            forgeries.append(forged)
        }
        forge { $0.secret = Array(TestApp.first.secret.utf8) }
        forge { $0.secret = other.secret }
        forge { $0.secret = [] }
        forge { $0.generation = 2 }
        forge { $0.generation = .max }
        forge { $0.cid = CID(Identifier128(high: 1, low: 2)) }
        for forged in forgeries {
            let device = try await RawDevice(world)
            try await device.sayHello()
            try await device.send(.login(try device.loginFrame(forged)))
            #expect(try await device.closeCode() == .wrongDeviceProof)
        }
        // A device of one app is none of another.
        let elsewhere = try await RawDevice(world, app: .second)
        try await elsewhere.sayHello()
        try await elsewhere.send(.login(try elsewhere.loginFrame(identity)))
        #expect(try await elsewhere.closeCode() == .wrongDeviceProof)
        #expect(try await victim.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `a recorded login is worthless`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let again = try await RawDevice(world)
        try await again.sayHello()
        let recorded = DeviceFrame.login(try again.loginFrame(identity)).encoded()
        let hello = again.helloBytes
        try await again.socket.send(recorded)
        guard case .welcome? = try await again.next() else { throw Unexpected("no welcome") }
        for sendsRecordedHello in [true, false] {
            let thief = try await RawDevice(world)
            if sendsRecordedHello {
                try await thief.socket.send(hello)
                guard case .challenge? = try await thief.next() else { throw Unexpected("no challenge") }
            } else {
                try await thief.sayHello()
            }
            try await thief.socket.send(recorded)
            #expect(try await thief.closeCode() == .wrongDeviceProof)
        }
        #expect(try await again.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `a device that the gateway does not know any more must register anew`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let listener = try ListenProcess(world, state: "device")
        let first = try await listener.online()
        let identity = try await RawDevice(world).register()
        try await world.stop()
        // The key is kept apart from the data, so the proof is right and only the record is gone.
        try FileManager.default.removeItem(atPath: world.data)
        try await world.start()
        let device = try await RawDevice(world)
        try await device.sayHello()
        try await device.send(.login(try device.loginFrame(identity)))
        #expect(try await device.closeCode() == .unknownDevice)
        let second = try await listener.event("registered").cid
        #expect(second != nil && second != first)
        #expect(try await listener.online() == second)
    }

    @Test(arguments: shardCounts)
    func `the handshake keeps its order`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let identity = try await RawDevice(world).register()
        func code(
            hello: Bool, _ first: (RawDevice) throws -> [UInt8]
        ) async throws -> CloseCode {
            let device = try await RawDevice(world)
            if hello { try await device.sayHello() }
            try await device.socket.send(try first(device))
            return try await device.closeCode()
        }
        #expect(
            try await code(hello: false) { DeviceFrame.login(try $0.loginFrame(identity)).encoded() } == .protocolError)
        #expect(try await code(hello: false) { _ in DeviceFrame.ping.encoded() } == .protocolError)
        #expect(try await code(hello: true) { _ in DeviceFrame.ack(AckFrame(seq: Seq(1))).encoded() } == .protocolError)
        #expect(
            try await code(hello: false) { _ in DeviceFrame.hello(HelloFrame(version: 0, nonce: .zero)).encoded() }
                == .unsupportedVersion)
        // Bytes behind a login, in its packet or alone, cannot follow the connection to its owner.
        #expect(
            try await code(hello: true) { DeviceFrame.login(try $0.loginFrame(identity)).encoded() + [5, 0] }
                == .protocolError)
        #expect(
            try await code(hello: true) { DeviceFrame.login(try $0.loginFrame(identity)).encoded() + [5] }
                == .protocolError)
        #expect(
            try await code(hello: true) { DeviceFrame.register(try $0.registration()).encoded() + [5, 0] }
                == .protocolError)
        // A newer client is told the version that both speak.
        let newer = try await RawDevice(world)
        try await newer.send(.hello(HelloFrame(version: 9, nonce: .zero)))
        guard case .challenge(let challenge)? = try await newer.next() else { throw Unexpected("no challenge") }
        #expect(challenge.version == 1)
    }
}
