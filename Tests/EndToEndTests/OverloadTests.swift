private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// Bounds on what one peer, or all of them, can make the gateway hold (P7).
@Suite struct OverloadTests {
    @Test(arguments: shardCounts)
    func `beyond its limit of connections the gateway says so`(shards: Int) async throws {
        let world = try await World(shards: shards, ["connectionLimit": 8])
        var devices: [RawDevice] = []
        for _ in 0..<7 {
            let device = try await RawDevice(world)
            try await device.register()
            devices.append(device)
        }
        let backend = try await Backend(world)
        let refused = try await RawDevice(world)
        guard case .close(let close)? = try await refused.next() else { throw Unexpected("no close") }
        #expect(close.code == .tooManyConnections && close.retryAfter > 0)
        let busy = try await Backend(world, authenticates: false)
        let answer = try await busy.answer()
        #expect(answer.status == 403 && answer.code == 30019)
        #expect(answer.headers["retry-after"] != nil)
        #expect(try await busy.isHungUp())
        // A place that is given back is there for the next.
        try await devices.removeLast().sayBye()
        let deadline = ContinuousClock.now + patience
        while (try? await RawDevice(world).register()) == nil {
            try #require(ContinuousClock.now < deadline, "no place in time")
        }
        #expect(try await backend.call("GET", "/healthz").status == 200)
    }

    @Test(arguments: shardCounts)
    func `when the disk does not keep up, pushes are busy, and none is lost`(shards: Int) async throws {
        let world = try await World(shards: shards, ["unsyncedBytes": 1_024, "payloadCharacters": 4_096])
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let backend = try await Backend(world)
        let count = 64
        let bodies = try (0..<count).map {
            try Backend.pushBody(
                identity.cid, "\($0) " + String(repeating: "x", count: 2_000), requestID: "busy-request-\($0)")
        }
        var open = Array(bodies.indices)
        var refusals = 0
        while !open.isEmpty {
            try await backend.socket.send(open.flatMap { backend.pushRequest(bodies[$0]) })
            var left: [Int] = []
            for index in open {
                let answer = try await backend.answer()
                if answer.code == 0 { continue }
                #expect(answer.status == 403 && answer.code == 30019)
                #expect(answer.headers["retry-after"] != nil)
                refusals += 1
                left.append(index)
            }
            open = left
        }
        #expect(refusals > 0)
        let numbers = try await device.take(count).map { $0.text.prefix { $0 != " " } }
        #expect(Set(numbers).count == count)
        #expect(try await device.settled().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `a backend that does not read its answers holds up nobody`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let cid = try await device.register().cid
        let path = "/" + String(repeating: "a", count: 30)
        let flood = (0..<20_000).flatMap { _ in Backend.request("GET", path) }
        let deaf = try await ByteSocket(to: world.backends, hasSmallBuffer: true)
        deaf.stopReading()
        let backend = try await Backend(world)
        var rest = flood[...]
        for number in 0..<60 {
            // As much as the gateway takes; its answers have nowhere to go.
            while deaf.sendSome(&rest) { if rest.isEmpty { rest = flood[...] } }
            try await backend.push(cid, "\(number)")
            #expect(try await device.take(1).map(\.text) == ["\(number)"])
        }
        #expect(try world.residentBytes() < 300 << 20)
        deaf.close()
        #expect(try await world.stop().status == 0)
    }
}
