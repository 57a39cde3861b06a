private import FerryCore
private import FerryIO
private import FerryWire
private import Foundation
internal import Testing

/// A backend's link, against a real gateway.
@Suite struct LinkTests {
    @Test(arguments: shardCounts)
    func `what a link pushes is answered cumulatively, and comes in its order under the backend's names`(
        shards: Int
    ) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let link = try await RawLink(world)
        let texts = (0..<200).map { "message \($0)" }
        let ids = texts.map { _ in RawLink.freshID() }
        let last = try await link.push(identity.cid, all: texts, ids: ids)
        #expect(try await link.answers(upTo: last).isEmpty)
        let pushes = try await device.take(200)
        #expect(pushes.map(\.text) == texts)
        #expect(pushes.map(\.messageID.value) == ids)
        #expect(pushes.allSatisfy { !$0.isOffLine })
        #expect(Set(pushes.map(\.taskID)).count == 200)
    }

    @Test(arguments: shardCounts)
    func `any bytes travel, and a frame may be cut at every byte`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let link = try await RawLink(world, opens: false)
        link.socket.sendsSingleBytes = true
        try await link.open()
        let binary = (0..<512).map { UInt8(truncatingIfNeeded: $0) }
        try await link.push(LinkPushFrame(id: RawLink.freshID(), cid: identity.cid, payload: binary))
        link.socket.sendsSingleBytes = false
        let large = [UInt8](repeating: 0xff, count: Limits.payloadBytes)
        let last = try await link.push(LinkPushFrame(id: RawLink.freshID(), cid: identity.cid, payload: large))
        #expect(try await link.answers(upTo: last).isEmpty)
        #expect(try await device.take(2).map(\.payload) == [binary, large])
    }

    @Test(arguments: shardCounts)
    func `refusals in the middle of a stream are told by number, and hold nothing up`(shards: Int) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let other = try await RawDevice(world, app: .second).register()
        let link = try await RawLink(world)
        let stranger = CID(RawLink.freshID())
        let alert = Array(#"{"aps":{"alert":"x"}}"#.utf8)
        func frame(_ text: String, _ change: (inout LinkPushFrame) -> Void = { _ in }) -> LinkPushFrame {
            var frame = LinkPushFrame(id: RawLink.freshID(), cid: identity.cid, payload: Array(text.utf8))
            change(&frame)
            return frame
        }
        let frames = [
            frame("1"), frame("no such device") { $0.cid = stranger }, frame("2"),
            frame("another app's device") { $0.cid = other.cid }, frame(""),
            frame("a ttl too long") { $0.ttl = UInt64(Limits.timeToLiveMilliseconds) + 1 },
            frame("no JSON") { $0.alert = Array("{".utf8) }, frame("no object") { $0.alert = Array("[1]".utf8) },
            frame("no aps") { $0.alert = Array("{}".utf8) },
            frame("a bad collapse id") { ($0.alert, $0.collapseID) = (alert, " x") },
            frame("a collapse id alone") { $0.collapseID = "x" },
            frame("3") { ($0.alert, $0.collapseID) = (alert, "x") },
        ]
        for frame in frames { try await link.push(frame) }
        let refusals = try await link.answers(upTo: UInt64(frames.count))
        #expect(refusals.map(\.number) == [2, 4, 5, 6, 7, 8, 9, 10, 11])
        #expect(refusals.allSatisfy { $0.code == 20_001 })
        #expect(refusals[0].text.contains(stranger.description))
        #expect(refusals[2].text == "payload can not be empty")
        #expect(refusals[3].text.hasPrefix("ttl is invalid"))
        #expect(try await device.take(3).map(\.text) == ["1", "2", "3"])
    }

    @Test(arguments: shardCounts)
    func `a repeat counts as accepted and delivers nothing, with other content it is refused`(
        shards: Int
    ) async throws {
        let world = try await World(shards: shards)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        var link = try await RawLink(world)
        let id = RawLink.freshID()
        let frame = LinkPushFrame(id: id, cid: identity.cid, payload: Array("once".utf8))
        var changed = frame
        changed.payload = Array("twice".utf8)
        // While the first is on its way, and after it.
        for push in [frame, frame, changed] { try await link.push(push) }
        var refusals = try await link.answers(upTo: 3)
        try await link.push(frame)
        refusals += try await link.answers(upTo: 4)
        try await world.restartAfterKill()
        link = try await RawLink(world)
        for push in [frame, changed] { try await link.push(push) }
        refusals += try await link.answers(upTo: 2)
        #expect(refusals.map(\.number) == [3, 2])
        #expect(refusals.allSatisfy { $0.text.contains(id.hex) && $0.text.contains("repeat") })
        let again = try await RawDevice(world)
        #expect(try await again.login(identity).keptMessages == 1)
        #expect(try await again.take(1).map(\.text) == ["once"])
        #expect(try await again.settled().isEmpty)
    }

    @Test func `ids that a counter made name different pushes, and two apps may use the same`() async throws {
        let world = try await World(shards: 1)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let other = try await RawDevice(world, app: .second)
        let otherIdentity = try await other.register()
        let ids = (0..<300).map { Identifier128(high: 0, low: UInt64($0)) }
        let link = try await RawLink(world)
        try await link.push(identity.cid, all: ids.map { _ in "same" }, ids: ids)
        #expect(try await link.answers(upTo: 300).isEmpty)
        #expect(try await device.take(300).count == 300)
        let otherLink = try await RawLink(world, app: .second)
        try await otherLink.push(otherIdentity.cid, all: ids.map { "\($0.low)" }, ids: ids)
        #expect(try await otherLink.answers(upTo: 300).isEmpty)
        #expect(try await other.take(300).map(\.text) == (0..<300).map { "\($0)" })
    }

    @Test func `what happened to a push is told under its id`() async throws {
        let world = try await World(shards: 2)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let link = try await RawLink(world)
        let id = RawLink.freshID()
        try await link.push(identity.cid, all: ["one", "two"], ids: [RawLink.freshID(), id])
        #expect(try await link.answers(upTo: 2).isEmpty)
        #expect(try await device.take(2).count == 2)
        #expect(try await device.settled().isEmpty)
        let told = try await Child.run(
            [
                "explain", "--http", "http://\(world.backends)", "--app", TestApp.first.id, "--app-key",
                TestApp.first.key, "--master-secret", TestApp.first.masterSecret, "--cid", identity.cid.description,
                "--msgid", id.hex, "--json",
            ])
        #expect(told.status == 0)
        #expect(told.lines.joined().contains(id.hex) && told.lines.joined().contains("accepted"), "\(told)")
    }

    @Test func `an unknown app and a wrong secret are told the same`() async throws {
        let world = try await World(shards: 1)
        for (app, secret) in [("shop", "wrong"), ("nobody", TestApp.first.masterSecret), ("nobody", "")] {
            let link = try await RawLink(world, opens: false)
            try await link.sayHello()
            try await link.send(.login(try link.login(appID: app, secret: secret)))
            #expect(try await link.close().code == .linkRefused)
        }
    }

    @Test func `nothing is taken before the welcome, and a login that was recorded is worthless`() async throws {
        let world = try await World(shards: 1)
        let push = LinkPushFrame(id: RawLink.freshID(), cid: CID(RawLink.freshID()), payload: [1])
        let early = try await RawLink(world, opens: false)
        try await early.send(.push(push))
        #expect(try await early.close().code == .protocolError)
        let second = try await RawLink(world, opens: false)
        try await second.sayHello()
        try await second.send(.push(push))
        #expect(try await second.close().code == .protocolError)
        let recorded = try await RawLink(world, opens: false)
        try await recorded.sayHello()
        let login = try recorded.login()
        let replaying = try await RawLink(world, opens: false)
        try await replaying.sayHello()
        try await replaying.send(.login(login))
        #expect(try await replaying.close().code == .linkRefused)
        // A frame that only a link in session may send is too large before.
        let large = try await RawLink(world, opens: false)
        try await large.socket.send([FrameType.linkPush.rawValue, 0x81, 0x20])
        #expect(try await large.close().code == .frameTooLarge)
    }

    @Test func `hostile bytes end the link with the code that names them, and what was accepted stays`() async throws {
        let world = try await World(shards: 2)
        let device = try await RawDevice(world)
        let identity = try await device.register()
        let good = LinkPushFrame(id: RawLink.freshID(), cid: identity.cid, payload: [7])
        let body = good.body()
        let cases: [(bytes: [UInt8], code: CloseCode)] = [
            ([FrameType.linkPush.rawValue, 3, 1, 2, 3], .protocolError), ([0xff, 0], .protocolError),
            ([FrameType.ack.rawValue, 1, 1], .protocolError),
            ([FrameType.linkAnswer.rawValue, 2, 1, 0], .protocolError),
            ([FrameType.linkPush.rawValue, 0x81, 0xa8, 0x04], .frameTooLarge),
            ([FrameType.linkPush.rawValue, 0x80, 0x80, 0x80, 0x80], .protocolError),
            // The payload's length beyond its limit.
            ([FrameType.linkPush.rawValue, 39] + body.prefix(36) + [0x81, 0x80, 0x04], .fieldOutOfRange),
        ]
        for (bytes, code) in cases {
            let link = try await RawLink(world)
            try await link.push(LinkPushFrame(id: RawLink.freshID(), cid: identity.cid, payload: [7]))
            try await link.socket.send(bytes)
            #expect(try await link.close().code == code, "\(bytes)")
        }
        #expect(try await device.take(cases.count).map(\.payload) == cases.map { _ in [7] })
        let link = try await RawLink(world)
        for byte: UInt8 in [0x00, 0x20, 0x3f, 0x7f] { try await link.socket.send([byte, 2, 0xff, 0xff]) }
        try await link.send(.ping)
        #expect(try await link.next() == .pong)
    }
}
