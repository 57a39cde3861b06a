private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// What happens at each budget: pushes are refused before anything grows, and all that makes room goes on (P7).
@Suite struct BudgetTests {
    private func expectBusy(_ answer: HTTPAnswer) {
        #expect(answer.status == 403 && answer.code == 30019, "\(answer.text)")
        #expect(answer.headers["retry-after"] != nil)
    }

    /// Pushes until a push that comes alone is refused; answers the texts that were taken.
    private func fill(_ backend: Backend, _ cid: CID, _ payload: String, limit: Int) async throws -> [String] {
        var taken: [String] = []
        var number = 0
        var slice = 32
        while taken.count < limit {
            let texts = (0..<slice).map { "\(number + $0) \(payload)" }
            number += slice
            try await backend.socket.send(try texts.flatMap { backend.pushRequest(try Backend.pushBody(cid, $0)) })
            var isBusy = false
            for text in texts {
                let answer = try await backend.answer()
                if answer.code == 0 {
                    taken.append(text)
                } else {
                    expectBusy(answer)
                    isBusy = true
                }
            }
            // What is on its way to the disk takes memory too, and gives it back: a push alone tells.
            if isBusy, slice == 1 { return taken }
            if isBusy { slice = 1 }
        }
        throw Unexpected("\(taken.count) pushes were taken, and none was refused")
    }

    /// Repeats a push until it is taken.
    private func pushWhenPossible(_ backend: Backend, _ cid: CID, _ text: String) async throws {
        let deadline = ContinuousClock.now + patience
        let requestID = Backend.freshRequestID()
        while true {
            let answer = try await backend.send(cid, text, requestID: requestID)
            if answer.code == 0 { return }
            expectBusy(answer)
            guard ContinuousClock.now < deadline else { throw Unexpected("never taken: \(answer.text)") }
        }
    }

    @Test(arguments: shardCounts)
    func `at the budget of stored bytes pushes are busy, and taken again after a delivery`(shards: Int) async throws {
        let world = try await World(shards: shards, ["storeBytes": 20_000])
        let away = try await RawDevice(world).register()
        let online = try await RawDevice(world)
        let identity = try await online.register()
        let backend = try await Backend(world)
        let payload = String(repeating: "x", count: 1_000)
        let taken = try await fill(backend, away.cid, payload, limit: 100)
        // As many as fit, to the last one.
        #expect(taken.count == 19)
        // Nobody else has room either, and nobody loses a connection.
        expectBusy(try await backend.send(identity.cid, payload))
        #expect(try await online.settled().isEmpty)
        _ = try await world.log(with: ["a budget is used up to 80 %", "a budget is used up:", "storeBytes"])
        let back = try await RawDevice(world)
        try await back.login(away)
        #expect(try await back.take(taken.count).map(\.text) == taken)
        try await pushWhenPossible(backend, identity.cid, payload)
        #expect(try await online.take(1).map(\.text) == [payload])
        // The budget counts what a restart finds.
        try await back.sayBye()
        _ = try await fill(backend, away.cid, payload, limit: 100)
        try await world.restartAfterKill()
        expectBusy(try await Backend(world).send(away.cid, payload))
    }

    @Test(arguments: shardCounts)
    func `at the budget of memory pushes are busy, and taken again after a delivery`(shards: Int) async throws {
        let world = try await World(
            shards: shards, ["memoryBytes": 400_000, "messageCap": "unlimited", "byteCap": "unlimited"])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let backend = try await Backend(world)
        var taken = try await fill(backend, identity.cid, "x", limit: 10_000)
        #expect(taken.count > 1_000)
        _ = try await world.log(with: ["a budget is used up:", "memoryBytes"])
        let before = try world.residentBytes()
        var more: [String] = []
        for turn in 0..<20 {
            let texts = (0..<64).map { "more \(turn) \($0)" }
            try await backend.socket.send(
                try texts.flatMap { backend.pushRequest(try Backend.pushBody(identity.cid, $0)) })
            for text in texts {
                let answer = try await backend.answer()
                if answer.code == 0 { more.append(text) } else { expectBusy(answer) }
            }
        }
        // What connections give back between two requests may let a few in.
        #expect(more.count < 40)
        taken += more
        #expect(try world.residentBytes() < before + 4 << 20)
        // A device that comes for what is kept gets all of it, and makes room.
        let back = try await RawDevice(world)
        #expect(try await back.login(identity).keptMessages == UInt64(taken.count))
        #expect(try await back.take(taken.count).map(\.text) == taken)
        try await pushWhenPossible(backend, identity.cid, "again")
        #expect(try await back.take(1).map(\.text) == ["again"])
    }

    @Test(arguments: shardCounts)
    func `connections that use up memory are refused at last, and who is there stays`(shards: Int) async throws {
        let world = try await World(shards: shards, ["memoryBytes": 65_536])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        try await backend.push(identity.cid, "before")
        var idle: [RawDevice] = []
        var code: CloseCode?
        while code == nil {
            try #require(idle.count < 150, "never refused")
            let next = try await RawDevice(world)
            idle.append(next)
            // Who is taken in hears nothing but the challenge.
            do { try await next.sayHello() } catch { code = .tooManyConnections }
        }
        #expect(idle.count > 50)
        let refused = try await RawDevice(world)
        #expect(try await refused.closeCode() == .tooManyConnections)
        expectBusy(try await backend.send(identity.cid, "during"))
        let question = "/v2/\(backend.app.id)/user/status/\(identity.cid)"
        expectBusy(try await backend.call("GET", question, headers: ["token: \(backend.token)"]))
        #expect(try await device.take(1).map(\.text) == ["before"])
        #expect(try await device.settled().isEmpty)
        for connection in idle { connection.close() }
        try await pushWhenPossible(backend, identity.cid, "after")
        #expect(try await device.take(1).map(\.text) == ["after"])
    }

    @Test(arguments: shardCounts)
    func `where the policy says so, a device at its cap refuses by name and drops nothing`(shards: Int) async throws {
        for (key, cap) in [("messageCap", 3), ("byteCap", 20)] {
            let world = try await World(shards: shards, [key: cap, "capPolicy": "refuse"])
            let device = try await RawDevice(world)
            let identity = try await device.register()
            let other = try await RawDevice(world)
            let otherIdentity = try await other.register()
            try await device.sayBye()
            let backend = try await Backend(world)
            // At once, so that what is on its way to the disk has to be counted.
            let bodies = try (0..<12).map {
                try Backend.pushBody(identity.cid, "text \($0)", requestID: "request-id-\($0)")
            }
            try await backend.socket.send(bodies.flatMap { backend.pushRequest($0) })
            var codes: [Int?] = []
            for _ in bodies {
                let answer = try await backend.answer()
                codes.append(answer.code)
                guard answer.code != 0 else { continue }
                expectBusy(answer)
                #expect(answer.message.contains(identity.cid.description) && answer.message.contains(key))
                #expect(answer.message.contains("\(cap)"))
            }
            #expect(codes == [0, 0, 0] + [Int?](repeating: 30019, count: 9))
            // Its neighbour is not full.
            try await backend.push(otherIdentity.cid, "elsewhere")
            #expect(try await other.take(1).map(\.text) == ["elsewhere"])
            let back = try await RawDevice(world)
            try await back.login(identity)
            #expect(try await back.take(3).map(\.text) == ["text 0", "text 1", "text 2"])
            #expect(try await back.settled().isEmpty)
            // A refused call left its request id free.
            try await backend.push(identity.cid, "text 11", requestID: "request-id-11")
            #expect(try await back.take(1).map(\.text) == ["text 11"])
        }
    }

    @Test func `0 is no limit that can be set, and the word for none is named`() async throws {
        let world = try await World(
            shards: 1, ["messageCap": 0, "byteCap": 0, "storeBytes": 0, "memoryBytes": 0], starts: false)
        let refused = try await Child.run(
            world.arguments + ["--device-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
        #expect(refused.status == 1 && refused.lines.isEmpty)
        for key in ["messageCap", "byteCap", "storeBytes", "memoryBytes"] {
            #expect(refused.errors.contains(key), "\(refused.errors)")
        }
        #expect(refused.errors.contains("\"unlimited\""))
    }
}
