internal import FerryAPNS
internal import FerryCore
internal import FerryGateway
internal import FerryWire
internal import Testing

/// Strategies, kinds of content and windows, each against what may come between.
struct OptionRaces {
    private let world: RaceWorld
    private let device: RaceDevice
    private let backend: RaceBackend

    init() throws {
        world = try RaceWorld()
        device = try RaceDevice(world)
        backend = try RaceBackend(world)
    }

    private func post(
        _ text: String, strategy: Int? = nil, message: String? = nil, ttl: Int = 86_400_000, more: String = "",
        alert: String? = "Look", by other: RaceBackend? = nil
    ) {
        let id = "request-of-\(text)"
        let ios = alert.map { #","push_channel":{"ios":{"aps":{"alert":{"title":"\#($0)"}}}}"# } ?? ""
        let settings = strategy.map { #","strategy":{"default":\#($0)}"# } ?? ""
        let body =
            #"{"request_id":"\#(id)","audience":{"cid":["\#(device.cid)"]},"settings":{"ttl":\#(ttl)\#(settings)\#(more)},"#
            + #""push_message":\#(message ?? #"{"transmission":"\#(text)"}"#)\#(ios)}"#
        let head =
            "POST /v2/\(world.app.text)/push/single/cid HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        (other ?? backend).send(Array((head + body).utf8))
        world.settle()
    }

    private func texts(_ line: RaceLine) -> [String] {
        line.pushes().map { String(decoding: $0.payload, as: UTF8.self) }
    }

    private var bodies: [String] { world.wake.stubs.map { String(decoding: $0.body, as: UTF8.self) } }

    // MARK: - Strategy 2

    @Test(arguments: [true, false])
    func `by strategy 2 a message goes to APNs alone, whether the device is there or not`(isThere: Bool) throws {
        let line = isThere ? try device.attach() : nil
        post("number-1", strategy: 2)
        #expect(backend.answers().areOnline == [false])
        #expect(world.wake.count == 1)
        #expect(bodies[0].contains("Look") && !bodies[0].contains("number-1"))
        #expect(bodies[0].contains(#""_gmid_":"RASS_"#) && bodies[0].contains("\(device.cid)\""))
        if let line { #expect(texts(line).isEmpty) }
        world.wake.answerAll()
        world.settle()
        #expect(world.ended(.handed) == 1 && world.kept == 0)
        let later = try device.attach()
        world.settle()
        #expect(texts(later).isEmpty)
        try world.checkEnd(kept: 0)
    }

    @Test func `what APNs refuses has failed by strategy 2`() throws {
        post("number-1", strategy: 2)
        world.wake.answerAll(.refused("BadDeviceToken"))
        world.settle()
        #expect(world.ended(.failed) == 1)
        try world.checkEnd(kept: 0)
    }

    @Test func `a message that is with APNs is asked for again after a power cut, and ends once`() throws {
        post("number-1", strategy: 2)
        try #require(world.wake.count == 1)
        let first = try #require(world.wake.stubs.first)
        try world.cutPower()
        world.settle()
        #expect(world.wake.stubs == [first])
        world.wake.answerAll()
        world.settle()
        #expect(world.ended(.handed) == 1)
        try world.checkEnd(kept: 0)
    }

    @Test func `a message that nobody answers for fails in time, and nothing waits behind it longer`() throws {
        let line = try device.attach()
        post("number-1", strategy: 2)
        post("number-2")
        #expect(texts(line).isEmpty)
        world.pass(10_100)
        world.turn()
        world.settle()
        #expect(texts(line) == ["number-2"])
        #expect(world.ended(.failed) == 1)
        world.wake.answerAll()
        world.settle()
        #expect(world.ended(.handed) == 0)
    }

    @Test(arguments: [2, 4]) func `without a token there is nothing to hand over to`(strategy: Int) throws {
        let other = try RaceDevice(world, number: 2, hasToken: false)
        let body =
            #"{"request_id":"request-0001","audience":{"cid":["\#(other.cid)"]},"settings":{"strategy":{"default":\#(strategy)}},"#
            + #""push_message":{"transmission":"a"},"push_channel":{"ios":{"aps":{"alert":{"title":"t"}}}}}"#
        let head =
            "POST /v2/\(world.app.text)/push/single/cid HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        backend.send(Array((head + body).utf8))
        world.settle()
        #expect(backend.answers() == [.refused(20001)])
        // For ios alone it does not concern a device that never told a token.
        let mild = body.replacing(#"{"default":\#(strategy)}"#, with: #"{"ios":\#(strategy)}"#)
        backend.send(Array((head.replacing("\(body.utf8.count)", with: "\(mild.utf8.count)") + mild).utf8))
        world.settle()
        #expect(backend.answers().areOnline == [false])
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 1)
    }

    // MARK: - Strategy 3

    @Test func `by strategy 3 nobody is woken, and the message waits for the device`() throws {
        post("number-1", strategy: 3)
        world.pass(20_000)
        world.settle()
        #expect(world.wake.count == 0 && world.kept == 1)
        try world.cutPower()
        world.pass(60_000)
        world.settle()
        #expect(world.wake.count == 0)
        let line = try device.attach()
        world.settle()
        let push = try #require(line.pushes().first)
        #expect(push.flags == .offLine)
        line.ack(push.seq)
        try world.checkEnd(kept: 0)
    }

    @Test func `by strategy 3 nobody is woken when the device leaves without an ack`() throws {
        let line = try device.attach()
        post("number-1", strategy: 3)
        #expect(texts(line) == ["number-1"])
        line.send(.bye)
        world.settle()
        #expect(world.wake.count == 0)
        try world.checkEnd(kept: 1)
    }

    // MARK: - Strategy 4

    @Test func `by strategy 4 a message that APNs takes is over`() throws {
        let line = try device.attach()
        post("number-1", strategy: 4)
        #expect(texts(line).isEmpty && world.wake.count == 1)
        world.wake.answerAll()
        world.settle()
        #expect(texts(line).isEmpty && world.ended(.handed) == 1)
        try world.checkEnd(kept: 0)
    }

    @Test func `by strategy 4 a message that APNs refuses comes in its place of the stream`() throws {
        let line = try device.attach()
        post("number-1")
        post("number-2", strategy: 4)
        post("number-3")
        #expect(texts(line) == ["number-1"])
        world.wake.answerAll(.refused("Unregistered"))
        world.settle()
        let pushes = line.pushes()
        #expect(pushes.map { String(decoding: $0.payload, as: UTF8.self) } == ["number-2", "number-3"])
        // A wake-up was asked for it: the flag says so.
        #expect(pushes.map(\.flags) == [.offLine, []])
        line.ack(try #require(pushes.last).seq)
        world.settle()
        #expect(world.ended(.delivered) == 3)
        try world.checkEnd(kept: 0)
    }

    @Test func `by strategy 4 a refused message waits for a device that is away, and nobody is woken twice`() throws {
        post("number-1", strategy: 4)
        world.wake.answerAll(.refused("Unregistered"))
        world.settle()
        world.pass(20_000)
        world.settle()
        #expect(world.wake.count == 1 && world.kept == 1)
        let line = try device.attach()
        world.settle()
        #expect(texts(line) == ["number-1"])
    }

    // MARK: - Kinds

    private let notification = #"{"notification":{"title":"Tea","body":"at eight","click_type":"none"}}"#

    @Test func `a notification reaches a client that takes it, also after a power cut`() throws {
        let line = try device.attach(capabilities: .typedContents)
        post("number-1", message: notification)
        let push = try #require(line.pushes().first)
        #expect(push.flags.kind == .notification)
        let content = push.payload.withUnsafeBytes { NotificationContent(encoded: $0) }
        #expect(content.title == "Tea" && content.body == "at eight")
        try world.cutPower()
        let again = try device.attach(capabilities: .typedContents)
        world.settle()
        let repeated = try #require(again.pushes().first)
        #expect(repeated.flags.kind == .notification && repeated.payload == push.payload)
        again.ack(repeated.seq)
        try world.checkEnd(kept: 0)
    }

    @Test(arguments: [true, false])
    func `a client that takes transmissions only is sent no other kind, and all the rest`(isThere: Bool) throws {
        let early = isThere ? try device.attach() : nil
        post("number-1", message: notification)
        post("number-2")
        post("number-3", message: #"{"revoke":{"old_task_id":"RASS_1130_0"}}"#)
        post("number-4")
        let line = try early ?? device.attach()
        world.settle()
        let pushes = line.pushes()
        #expect(pushes.map { String(decoding: $0.payload, as: UTF8.self) } == ["number-2", "number-4"])
        line.ack(try #require(pushes.last).seq)
        world.settle()
        #expect(world.ended(.skipped) == 2 && world.ended(.delivered) == 2)
        try world.checkEnd(kept: 0)
    }

    // MARK: - Lists

    private func call(_ path: String, _ body: String) -> [RaceBackend.Answer] {
        let head =
            "POST /v2/\(world.app.text)/push/\(path) HTTP/1.1\r\nHost: gateway\r\ntoken: \(world.apiToken)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        backend.send(Array((head + body).utf8))
        world.settle()
        return backend.answers()
    }

    /// To a list of one device.
    private func list(_ id: String, _ content: String) throws -> [RaceBackend.Answer] {
        let task = try #require(call("list/message", #"{"request_id":"request-of-\#(id)",\#(content)}"#).first?.task)
        return call("list/cid", #"{"taskid":"\#(task)","audience":{"cid":["\#(device.cid)"]}}"#)
    }

    @Test func `the content of a list may be a notification, before and after a power cut`() throws {
        #expect(try list("number-1", #""push_message":\#(notification)"#).areOnline == [false])
        try world.cutPower()
        let line = try device.attach(capabilities: .typedContents)
        world.settle()
        let push = try #require(line.pushes().first)
        #expect(push.flags.kind == .notification && push.flags.contains(.offLine))
        line.ack(push.seq)
        try world.checkEnd(kept: 0)
    }

    @Test func `a list goes by its strategy, before and after a power cut`() throws {
        let content =
            #""settings":{"strategy":{"default":2}},"push_message":{"transmission":"x"},"#
            + #""push_channel":{"ios":{"aps":{"alert":{"title":"t"}}}}"#
        #expect(try list("number-1", content).areOnline == [false])
        #expect(world.wake.count == 1)
        try world.cutPower()
        world.settle()
        #expect(world.wake.count == 1)
        world.wake.answerAll()
        world.settle()
        #expect(world.ended(.handed) == 1)
        let line = try device.attach()
        world.settle()
        #expect(line.pushes().isEmpty)
        try world.checkEnd(kept: 0)
    }

    // MARK: - The window

    private func window(_ from: Int64, _ to: Int64) -> String {
        let now = world.clock.now.milliseconds
        return #"{"transmission":"x","duration":"\#(now + from)-\#(now + to)"}"#
    }

    @Test func `a message is not delivered after its window, and wakes nobody before it`() throws {
        post("number-1", message: window(60_000, 1_000_000), alert: nil)
        #expect(world.wake.count == 0 && world.kept == 1)
        post("number-2", message: window(-60_000, 1_000_000), alert: nil)
        #expect(world.wake.count == 1 && world.kept == 2)
        post("number-3", message: window(-1_000_000, 0), alert: nil)
        #expect(backend.answers().suffix(1) == [.refused(20001)])
        world.pass(1_000_000)
        world.turn()
        world.settle()
        #expect(world.ended(.expired) == 2)
    }

    // MARK: - The filter of activity

    @Test func `a device that the sender's filter passes over is told as ignored, and nothing is kept`() throws {
        post("number-1", more: #","activate_filter_day":1,"activate_filter_type":-1"#)
        #expect(world.kept == 0)
        post("number-2", more: #","activate_filter_day":1"#)
        #expect(world.kept == 1)
        world.pass(2 * 86_400_000)
        world.settle()
        // The first one has expired, and its connection was closed.
        let later = try RaceBackend(world)
        post("number-3", more: #","activate_filter_day":1"#, by: later)
        #expect(world.kept == 0)
        post("number-4", more: #","activate_filter_day":1,"activate_filter_type":-1"#, by: later)
        #expect(world.kept == 1)
    }
}
