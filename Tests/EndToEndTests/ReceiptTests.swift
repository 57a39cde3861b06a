private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// What backends are told by HTTP of their messages and devices.
@Suite struct ReceiptTests {
    /// A gateway whose first app has its receipts sent to `endpoint`.
    private static func world(
        _ shards: Int, _ endpoint: ReceiptEndpoint, _ more: [String: Any] = [:], _ configuration: [String: Any] = [:]
    ) async throws -> World {
        let world = try await World(shards: shards, configuration, starts: false)
        try world.configureApps(receipts: ["url": endpoint.url].merging(more) { $1 })
        try await world.start()
        return world
    }

    @Test(arguments: shardCounts)
    func `each end of a message is told once, signed, with what it was`(shards: Int) async throws {
        let endpoint = try await ReceiptEndpoint()
        let world = try await Self.world(shards, endpoint)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let delivered = try await backend.push(identity.cid, "hello")
        let push = try await device.push()
        try await device.ack(push.seq)
        let first = try await endpoint.taken(1)[0]
        #expect(first.code == 200 && first.task == delivered.taskID && first.cid == identity.cid.description)
        #expect(first.fields["appid"] as? String == "shop" && first.fields["reason"] as? String == "acknowledged")
        let message = try #require(first.fields["msgid"] as? String)
        let signed = "shop\(identity.cid)\(delivered.taskID)\(message)master-of-shop"
        #expect(first.fields["sign"] as? String == Cryptography.md5(Array(signed.utf8)).map { Hexadecimal.encode($0) })
        // One that nobody is there for.
        try await device.sayBye()
        let expired = try await backend.push(identity.cid, "live only", ttl: 0)
        let second = try await endpoint.taken(1)[0]
        #expect(second.code == 402 && second.task == expired.taskID)
        #expect(second.fields["desc"] as? String == "expired")
        #expect(second.fields["reason"] as? String == "no_live_session")
        // Of the app that named no endpoint nothing is told, and nothing is told twice.
        let other = try await RawDevice(world, app: .second)
        let stranger = try await other.register()
        try await Backend(world, app: .second).push(stranger.cid, "not told")
        try await other.ack(try await other.push().seq)
        try await world.stop()
        try await endpoint.answer("status 200")
        #expect(endpoint.requests == 2)
    }

    @Test(arguments: shardCounts)
    func `what the sender wanted to read comes back, after a restart too`(shards: Int) async throws {
        let endpoint = try await ReceiptEndpoint()
        let world = try await Self.world(shards, endpoint)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let backend = try await Backend(world)
        let body = try Backend.json([
            "request_id": Backend.freshRequestID(), "audience": ["cid": [identity.cid.description]],
            "settings": ["custom_callback": "order-7"], "push_message": ["transmission": "hello"],
        ])
        let answer = try await backend.call(
            "POST", "/v2/shop/push/single/cid", headers: ["token: \(backend.token)"], body: body)
        #expect(answer.status == 200)
        try await world.restartAfterKill()
        let again = try await RawDevice(world)
        try await again.login(identity)
        try await again.ack(try await again.push().seq)
        #expect(try await endpoint.taken(1)[0].fields["custom_callback"] as? String == "order-7")
    }

    /// The content, which has it too, is not read at a start.
    @Test(arguments: shardCounts)
    func `what the sender of a list wanted to read comes back for all of its devices, after a restart too`(
        shards: Int
    ) async throws {
        let endpoint = try await ReceiptEndpoint()
        let world = try await Self.world(shards, endpoint)
        var identities: [TestIdentity] = []
        for _ in 0..<4 {
            let device = try await RawDevice(world)
            identities.append(try await device.register())
            try await device.sayBye()
        }
        let backend = try await Backend(world)
        let body = try Backend.json([
            "request_id": Backend.freshRequestID(), "audience": "all",
            "settings": ["custom_callback": "order-8"], "push_message": ["transmission": "hello"],
        ])
        let content = try await backend.call(
            "POST", "/v2/shop/push/list/message", headers: ["token: \(backend.token)"], body: body)
        let task = try #require((try content.object()["data"] as? [String: String])?["taskid"], "\(content.text)")
        let targets = try Backend.json([
            "taskid": task, "audience": ["cid": identities.map(\.cid.description)], "is_async": false,
        ])
        let answer = try await backend.call(
            "POST", "/v2/shop/push/list/cid", headers: ["token: \(backend.token)"], body: targets)
        #expect(answer.status == 200, "\(answer.text)")
        for turn in 0..<2 {
            for identity in identities[(2 * turn)..<(2 * turn + 2)] {
                let device = try await RawDevice(world)
                try await device.login(identity)
                try await device.ack(try await device.push().seq)
            }
            for line in try await endpoint.taken(2) {
                #expect(line.task == task && line.fields["custom_callback"] as? String == "order-8")
            }
            if turn == 0 { try await world.restartAfterKill() }
        }
    }

    @Test(arguments: shardCounts)
    func `what was noted while the endpoint is down survives a kill, and comes when it is back`(
        shards: Int
    ) async throws {
        let endpoint = try await ReceiptEndpoint()
        try await endpoint.answer("hangup")
        let world = try await Self.world(shards, endpoint, [:], ["receiptPauseMs": 50])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let tasks = try await backend.push(identity.cid, all: (0..<60).map { "message \($0)" }).map(\.taskID)
        let last = try await device.pushes(60)[59].seq
        try await device.ack(last)
        // Tried once at least: whatever was tried was on disk.
        _ = try await endpoint.next()
        try await world.restartAfterKill()
        // Of what the kill took with it the client says again that it has it.
        let again = try await RawDevice(world)
        try await again.login(
            identity, at: StreamPlace(epoch: try #require(device.welcome).epoch, lastSeq: last))
        try await world.restartAfterKill()
        try await endpoint.answer("status 200")
        var told: Set<String> = []
        while told.count < 60 {
            let line = try await endpoint.taken(1)[0]
            #expect(line.code == 200)
            told.insert(line.task ?? "")
        }
        #expect(told == Set(tasks))
    }

    @Test func `an endpoint that is slow or says no does not delay another's`() async throws {
        let (slow, quick) = (try await ReceiptEndpoint(), try await ReceiptEndpoint())
        try await slow.answer("hang")
        let world = try await World(shards: 2, starts: false)
        try world.configureApps(receipts: ["url": slow.url], second: ["url": quick.url])
        try await world.start()
        for app in [TestApp.first, .second] {
            let device = try await RawDevice(world, app: app)
            let identity = try await device.register()
            let backend = try await Backend(world, app: app)
            for number in 0..<20 {
                try await backend.push(identity.cid, "\(number)")
                try await device.ack(try await device.push().seq)
            }
        }
        #expect(try await quick.taken(20).allSatisfy { $0.fields["appid"] as? String == "news" })
        #expect(try await slow.next().answer == "hang")
    }

    @Test(arguments: ["status 500", "status 429", "garbage", "hangup"])
    func `an endpoint that cannot take receipts now gets them again`(mode: String) async throws {
        let endpoint = try await ReceiptEndpoint()
        try await endpoint.answer(mode)
        let world = try await Self.world(1, endpoint, [:], ["receiptPauseMs": 20])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let task = try await Backend(world).push(identity.cid, "again").taskID
        try await device.ack(try await device.push().seq)
        for _ in 0..<3 { #expect(try await endpoint.next().answer == mode) }
        _ = try await world.log(with: ["receipts are not taken"])
        try await endpoint.answer("status 200")
        #expect(try await endpoint.taken(1)[0].task == task)
        _ = try await world.log(with: ["receipts are taken again"])
    }

    @Test(arguments: ["status 404", "status 302", "redirect"])
    func `any other answer counts as told, and a redirect is not followed`(mode: String) async throws {
        let (endpoint, elsewhere) = (try await ReceiptEndpoint(), try await ReceiptEndpoint())
        try await endpoint.answer(mode == "redirect" ? "redirect \(elsewhere.url)" : mode)
        let world = try await Self.world(1, endpoint)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        for number in 0..<2 {
            try await backend.push(identity.cid, "\(number)")
            try await device.ack(try await device.push().seq)
            _ = try await endpoint.next()
        }
        _ = try await world.log(with: ["an endpoint refused receipts"])
        try await world.stop()
        #expect(endpoint.requests == 2)
        try await elsewhere.answer("status 200")
        #expect(elsewhere.requests == 0)
    }

    /// The body is nobody's concern: these were sent again and again until they were too old.
    @Test(arguments: ["body", "drip"])
    func `an answer whose body never ends is an answer`(mode: String) async throws {
        let endpoint = try await ReceiptEndpoint()
        try await endpoint.answer(mode)
        let world = try await Self.world(1, endpoint, [:], ["receiptDeadlineMs": 200])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        for number in 0..<3 {
            let task = try await backend.push(identity.cid, "\(number)").taskID
            try await device.ack(try await device.push().seq)
            #expect(try await endpoint.next().task == task)
        }
        try await world.stop()
        #expect(endpoint.requests == 3)
    }

    @Test func `an answer whose head never ends is none, and costs no memory`() async throws {
        let (endless, quick) = (try await ReceiptEndpoint(), try await ReceiptEndpoint())
        try await endless.answer("head")
        let world = try await World(shards: 1, ["receiptPauseMs": 20], starts: false)
        try world.configureApps(receipts: ["url": endless.url], second: ["url": quick.url])
        try await world.start()
        var tasks: [String] = []
        for app in [TestApp.first, .second] {
            let device = try await RawDevice(world, app: app)
            let identity = try await device.register()
            tasks.append(try await Backend(world, app: app).push(identity.cid, "hello").taskID)
            try await device.ack(try await device.push().seq)
        }
        #expect(try await quick.taken(1)[0].task == tasks[1])
        for _ in 0..<3 { #expect(try await endless.next().task == tasks[0]) }
        try await endless.answer("status 200")
        #expect(try await endless.taken(1)[0].task == tasks[0])
    }

    @Test func `with retries switched off, whatever is answered is the end of it`() async throws {
        let endpoint = try await ReceiptEndpoint()
        try await endpoint.answer("status 500")
        let world = try await Self.world(1, endpoint, ["retryOn5xx": false])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let tasks = try await [backend.push(identity.cid, "1"), backend.push(identity.cid, "2")].map(\.taskID)
        var told: [String?] = []
        for _ in 0..<2 {
            try await device.ack(try await device.push().seq)
            told.append(try await endpoint.next().task)
        }
        #expect(told == tasks)
    }

    @Test func `over TLS the endpoint's certificate must be one that is trusted`() async throws {
        let folder = NSTemporaryDirectory() + "ferry-tls-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let certificate = try ReceiptEndpoint.certificate(in: folder)
        let endpoint = try await ReceiptEndpoint(certificate: certificate)
        let world = try await Self.world(1, endpoint, [:], ["receiptPauseMs": 20])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let task = try await Backend(world).push(identity.cid, "secret").taskID
        try await device.ack(try await device.push().seq)
        _ = try await world.log(with: ["receipts are not taken", "certificate"])
        try await world.stop()
        #expect(endpoint.requests == 0)
        try world.configureApps(receipts: ["url": endpoint.url, "caFile": certificate.file])
        try await world.start()
        #expect(try await endpoint.taken(1)[0].task == task)
    }

    @Test(arguments: shardCounts)
    func `where it is wanted, devices that come and go are told`(shards: Int) async throws {
        let endpoint = try await ReceiptEndpoint()
        let world = try await Self.world(shards, endpoint, ["presence": true], ["reattachGraceMs": 50])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let came = try await endpoint.taken(1)[0]
        #expect(came.event == "online" && came.cid == identity.cid.description)
        #expect((came.fields["session"] as? String)?.count == 16)
        device.close()
        let went = try await endpoint.taken(1)[0]
        #expect(went.event == "offline" && went.cid == identity.cid.description)
        let times = [came, went].compactMap { $0.fields["time"] as? Int }
        #expect(times.count == 2 && times[0] <= times[1])
    }

    @Test(arguments: shardCounts)
    func `a push to all is told of each device that took it`(shards: Int) async throws {
        let endpoint = try await ReceiptEndpoint()
        let world = try await Self.world(shards, endpoint)
        var cids: Set<String> = []
        var devices: [RawDevice] = []
        for _ in 0..<5 {
            let device = try await RawDevice(world)
            cids.insert(try await device.register().cid.description)
            devices.append(device)
        }
        let backend = try await Backend(world)
        let body = try Backend.json([
            "request_id": Backend.freshRequestID(), "audience": "all", "push_message": ["transmission": "all of you"],
        ])
        let answer = try await backend.call(
            "POST", "/v2/shop/push/all", headers: ["token: \(backend.token)"], body: body)
        #expect(answer.status == 200)
        for device in devices { try await device.ack(try await device.push().seq) }
        let told = try await endpoint.taken(5)
        #expect(Set(told.compactMap(\.cid)) == cids)
        #expect(Set(told.compactMap(\.task)).count == 1 && told.allSatisfy { $0.code == 200 })
    }

    @Test(arguments: shardCounts)
    func `what was kept for a device that is erased is told, after a kill right behind the answer too`(
        shards: Int
    ) async throws {
        let endpoint = try await ReceiptEndpoint()
        let world = try await Self.world(shards, endpoint)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let backend = try await Backend(world)
        let kept = Set(try await backend.push(identity.cid, all: ["one", "two", "three"]).map(\.taskID))
        // What the endpoint does not take now must be on disk.
        try await endpoint.answer("status 503")
        #expect(try await backend.user("DELETE", "devices/\(identity.cid)", version: "v1").code == 0)
        try await world.restartAfterKill()
        try await endpoint.answer("status 200")
        var told: Set<String> = []
        while told != kept {
            let line = try await endpoint.taken(1)[0]
            #expect(line.code == 401 && line.cid == identity.cid.description)
            guard let task = line.task, kept.contains(task) else { throw Unexpected("told of another message") }
            told.insert(task)
        }
    }

    @Test func `an address that is none keeps the gateway from starting, by name`() async throws {
        let world = try await World(shards: 1, starts: false)
        try world.configureApps(receipts: ["url": "ftp://somewhere"])
        let run = try await Child.run(world.arguments)
        #expect(run.status == 1)
        #expect(run.errors.contains("receipts.url must begin with http:// or https://"))
    }
}
