private import FerryCore
private import FerryIO
private import FerryWire
internal import Testing

/// Compressed payloads between the real gateway and devices that take them, or do not.
@Suite struct CompressionTests {
    private static let long = (0..<60).map { #"{"id":\#($0),"text":"see you at eight, 你好"},"# }.joined()

    private func unpacked(_ push: PushFrame) throws -> PushFrame {
        try push.unpacked(isAgreed: true, inflate: Inflation.inflate)
    }

    private func login(
        _ world: World, _ identity: TestIdentity, capabilities: AttachWishes.Capabilities
    ) async throws -> RawDevice {
        let device = try await RawDevice(world)
        try await device.login(identity, capabilities: capabilities)
        return device
    }

    @Test(arguments: shardCounts)
    func `who asks for it gets long payloads compressed and short ones as they are`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        #expect(device.welcome?.compressesPayloads == false)
        let backend = try await Backend(world)
        // Without asking, as ever.
        try await backend.push(identity.cid, Self.long)
        let plain = try await device.push()
        #expect(plain.text == Self.long && !plain.flags.contains(.compressed))
        try await device.sayBye()

        // It was not acknowledged, and comes again from what is kept; marked, as the device was away.
        let asking = try await login(world, identity, capabilities: .compressedPayloads)
        #expect(asking.welcome?.compressesPayloads == true)
        let again = try await asking.push()
        #expect(again.flags == [.compressed, .offLine])
        #expect(again.payload.count * 10 <= Self.long.utf8.count * 9)
        #expect(try unpacked(again).text == Self.long)
        try await asking.ack(again.seq)
        try await backend.push(identity.cid, "short")
        let short = try await asking.push()
        #expect(short.text == "short" && short.flags.isEmpty)
        try await asking.ack(short.seq)
        try await backend.push(identity.cid, Self.long)
        #expect(try await asking.push().flags == .compressed)

        // The next session of the same device is free to want it otherwise.
        let other = try await login(world, identity, capabilities: [])
        #expect(other.welcome?.compressesPayloads == false)
        #expect(try await other.push().text == Self.long)
        try await world.stop()
    }

    @Test func `a gateway that was told not to compress promises nothing and does nothing`() async throws {
        let world = try await World(shards: 1, ["compressionBytes": "off"])
        let registering = try await RawDevice(world)
        let identity = try await registering.register()
        let device = try await login(world, identity, capabilities: .compressedPayloads)
        #expect(device.welcome?.compressesPayloads == false)
        try await Backend(world).push(identity.cid, Self.long)
        let push = try await device.push()
        #expect(push.text == Self.long && push.flags.isEmpty)
        try await world.stop()
    }

    @Test func `what does not shrink travels as it is`() async throws {
        let world = try await World(shards: 1)
        let registering = try await RawDevice(world)
        let identity = try await registering.register()
        let device = try await login(world, identity, capabilities: .compressedPayloads)
        let link = try await RawLink(world)
        let noise = Cryptography.random(4_000)
        try await link.push(LinkPushFrame(id: RawLink.freshID(), cid: identity.cid, payload: noise))
        let push = try await device.push()
        #expect(push.payload == noise && push.flags.isEmpty)
        try await world.stop()
    }

    @Test(arguments: [true, false])
    func `ferry listen prints the original, and says when it was compressed`(takes: Bool) async throws {
        let world = try await World(shards: 1)
        let device = try ListenProcess(world, takes ? [] : ["--no-compression"])
        let cid = try await device.online()
        try await Backend(world).push(cid, Self.long)
        let event = try await device.event("payload")
        #expect(event.payload == Self.long)
        #expect(event.fields["compressed"] as? Bool == (takes ? true : nil))
        #expect(try await device.stop() == 0)
        try await world.stop()
    }
}
