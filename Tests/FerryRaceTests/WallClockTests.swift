internal import FerryAPNS
internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import Testing

/// Times that others are told, after a step of the machine's clock that the gateway does not follow yet.
struct WallClockTests {
    private static let step = 7_200_000

    /// A stub's expiry once was two hours in the past, and APNs sent it only to phones that were reachable at once.
    @Test(arguments: [nil, "hello"])
    func `A stub expires when its message does, by the clock of those who read it`(alert: String?) throws {
        let world = try RaceWorld()
        let device = try RaceDevice(world)
        let backend = try RaceBackend(world)
        world.clock.step(Self.step)
        backend.post("a", to: device, ttl: 60_000, alert: alert)
        world.settle()
        let headers = try #require(world.wake.stubs.first).headers
        let expiration = headers.first { $0.name == "apns-expiration" }?.value
        #expect(expiration == String((world.clock.wall.milliseconds + 60_000) / 1_000))
        try world.checkEnd(kept: 1)
    }

    @Test func `An API token expires a day from now, by the clock of the backend`() throws {
        let world = try RaceWorld()
        let peer = try world.connect(backend: true)
        world.clock.step(Self.step)
        let time = String(world.clock.wall.milliseconds)
        let sign = Hexadecimal.encode(Cryptography.sha256(Array("key\(time)master".utf8)))
        let body = #"{"sign":"\#(sign)","timestamp":"\#(time)","appkey":"key"}"#
        let head = "POST /v2/\(world.app.text)/auth HTTP/1.1\r\nHost: g\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        peer.send(Array((head + body).utf8))
        world.settle()
        let answer = String(decoding: peer.received(), as: UTF8.self)
        #expect(answer.contains(#""expire_time":"\#(world.clock.wall.milliseconds + 86_400_000)""#), "\(answer)")
        try world.checkEnd(kept: 0)
    }
}
