private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// What the gateway remembers of a device.
@Suite struct DeviceRecordTests {
    @Test(arguments: shardCounts)
    func `a device and its token are on disk before it is told so`(shards: Int) async throws {
        let world = try await World(shards: shards, ["reattachGraceMs": 50])
        for _ in 0..<5 {
            let identity = try await RawDevice(world).register(token: StubTests.token)
            try await world.restartAfterKill()
            let device = try await RawDevice(world)
            try await device.login(identity)
            try await device.sayBye()
            try await Backend(world).push(identity.cid, "wake up")
            // A stub of the round before may come again: its answer may not have been on disk.
            var count = 1
            while try await world.stubs(count: count)[count - 1].collapseID != "ferry-\(identity.cid)" { count += 1 }
        }
    }

    @Test(arguments: shardCounts)
    func `a cleared token gets no stub`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register(token: StubTests.token)
        try await device.send(.deviceToken(DeviceTokenFrame(change: .clear)))
        #expect(try await device.next() == .tokenSaved(TokenSavedFrame(environment: nil)))
        try await device.sayBye()
        try await Backend(world).push(identity.cid, "quiet")
        try await world.stop()
        #expect(try world.stubs().isEmpty)
    }

    @Test(arguments: shardCounts)
    func `registrations with one key at once make one device`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let key = try #require(Bytes32(Cryptography.random(32)))
        var devices: [RawDevice] = []
        for _ in 0..<8 {
            let device = try await RawDevice(world)
            try await device.sayHello()
            devices.append(device)
        }
        for device in devices { try await device.send(.register(try device.registration(key: key))) }
        var identities: Set<CID> = []
        for device in devices {
            guard case .registered(let registered)? = try await device.next() else {
                throw Unexpected("not registered")
            }
            identities.insert(registered.cid)
            guard case .welcome? = try await device.next() else { throw Unexpected("no welcome") }
        }
        #expect(identities.count == 1)
        let cid = try #require(identities.first)
        try await Backend(world).push(cid, "once")
        #expect(try await RawDevice(world).register(key: key).cid == cid)
    }
}
