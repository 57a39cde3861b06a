private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// What a link does when its peer or its gateway does not do as it should.
@Suite struct LinkFaultTests {
    @Test func `more than the window without an answer ends the link, and what was accepted stays`() async throws {
        let world = try await World(shards: 1, ["linkWindow": 4])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let link = try await RawLink(world)
        #expect(link.welcome?.window == 4)
        // All in one read of the gateway: none can be answered before the fifth is read.
        try await link.push(identity.cid, all: ["1", "2", "3", "4", "5"])
        let close = try await link.close()
        #expect(close.code == .protocolError)
        #expect(try await device.take(4).map(\.text) == ["1", "2", "3", "4"])
        #expect(try await device.settled().isEmpty)
    }

    @Test func `a backend that does not read its answers is not read on, and holds up nobody`() async throws {
        let world = try await World(shards: 1, ["highWaterBytes": 4_096, "slowDeadlineMs": 200])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let greedy = try await RawLink(world, hasSmallBuffer: true)
        greedy.socket.stopReading()
        // Each is refused in a few hundred bytes; 600,000 of them would be answered in 100 MB.
        let stranger = LinkPushFrame(id: RawLink.freshID(), cid: CID(RawLink.freshID()), payload: [1]).encoded()
        let before = try world.residentBytes()
        let flood = Array(repeatElement(stranger, count: 1_000).joined())
        var sent = 0
        let deadline = ContinuousClock.now + .seconds(10)
        while sent < 600, ContinuousClock.now < deadline {
            var rest = flood[...]
            while !rest.isEmpty, greedy.socket.sendSome(&rest) {}
            if !rest.isEmpty { break }
            sent += 1
        }
        #expect(sent < 600)
        let good = try await RawLink(world)
        try await good.push(identity.cid, all: ["1", "2", "3"])
        #expect(try await good.answers(upTo: 3).isEmpty)
        #expect(try await device.take(3).map(\.text) == ["1", "2", "3"])
        #expect(try world.residentBytes() - before < 50_000_000)
    }

    @Test func `a silent link is closed, one that pings is not`() async throws {
        let world = try await World(shards: 1, ["linkKeepAliveSeconds": 1])
        let silent = try await RawLink(world)
        let alive = try await RawLink(world)
        var last: LinkGatewayFrame?
        var rounds = 0
        while last == nil, rounds < 100 {
            rounds += 1
            try await alive.send(.ping)
            #expect(try await alive.next() == .pong)
            last = try? await silent.next(within: .milliseconds(300))
        }
        #expect(last == .close(CloseFrame(code: .keepAliveExpired)))
        #expect(rounds > 3)
        try await alive.send(.ping)
        #expect(try await alive.next() == .pong)
    }

    @Test(arguments: shardCounts)
    func `a gateway that stops answers what it took, says so, and leaves the rest to the next life`(
        shards: Int
    ) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let link = try await RawLink(world)
        let texts = (0..<400).map { "message \($0)" }
        let ids = texts.map { _ in RawLink.freshID() }
        try await link.push(identity.cid, all: texts, ids: ids)
        #expect(try await world.stop().status == 0)
        let close = try await link.close()
        #expect(close.code == .stopping)
        #expect(close.retryAfter >= 500)
        try await world.start()
        // As a backend does: what has no answer comes again, under the same ids.
        let again = try await RawLink(world)
        let first = Int(close.answered)
        if first < texts.count {
            let last = try await again.push(identity.cid, all: Array(texts[first...]), ids: Array(ids[first...]))
            #expect(try await again.answers(upTo: last).isEmpty)
        }
        let returned = try await RawDevice(world)
        #expect(try await returned.login(identity).keptMessages == 400)
        #expect(try await returned.take(400).map(\.text) == texts)
    }

    @Test(arguments: shardCounts)
    func `through kill after kill, what a stream sends is delivered once and in order`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        try await device.sayBye()
        let texts = (0..<900).map { "message \($0)" }
        let ids = texts.map { _ in RawLink.freshID() }
        var answered = 0
        var lives = 0
        while answered < texts.count {
            let link = try await RawLink(world)
            try await link.push(identity.cid, all: Array(texts[answered...]), ids: Array(ids[answered...]))
            let start = answered
            while answered < texts.count {
                guard case .answer(let answer)? = try await link.next() else { throw Unexpected("no answer") }
                #expect(answer.refusals.isEmpty)
                answered = start + Int(answer.upTo)
                if lives < 4, answered >= (lives + 1) * 30 { break }
            }
            guard lives < 4 else { continue }
            lives += 1
            try await world.restartAfterKill()
        }
        let returned = try await RawDevice(world)
        #expect(try await returned.login(identity).keptMessages == 900)
        #expect(try await returned.take(900).map(\.text) == texts)
    }
}
