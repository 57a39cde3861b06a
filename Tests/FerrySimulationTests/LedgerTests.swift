private import FerryCore
private import FerryIO
@testable private import FerrySimulation
private import FerryWire
internal import Testing

struct LedgerTests {
    /// Two sessions of one device began in one turn, and the link of the later was looked at first. The ledger took the older
    /// for the last, held the device for online within its grace, and called the stub for it, long in the background, a fault.
    @Test func `Of two sessions that began in one turn the one that was not taken over counts`() throws {
        var dice = Dice(seed: 1)
        let clock = VirtualClock()
        let trace = Trace(isTold: false)
        let ledger = Ledger(Scenario(&dice), GatewayClock(clock), trace)
        let later = try Self.link(1)
        let older = try Self.link(2)
        ledger.linkOpened(0)
        ledger.linkOpened(0)
        try ledger.left(Self.welcome, later)
        try ledger.left(Self.welcome, older)
        try ledger.left(.close(CloseFrame(code: .takenOver, retryAfter: 0)), older)
        #expect(ledger.devices[0].current == ObjectIdentifier(later))
        ledger.fed(.background, later)
        #expect(ledger.devices[0].current == nil)
        #expect(ledger.devices[0].graceUntil == .distantPast, "it may be woken at once")
    }

    /// A ledger with one post of long life that was answered with the task `T`.
    private static func ledgerOfOnePost() throws -> Ledger {
        var dice = Dice(seed: 1)
        let ledger = Ledger(Scenario(&dice), GatewayClock(VirtualClock()), Trace(isTold: false))
        ledger.posts = [Post(number: 0, device: 0, ttl: Post.longTTL, hasOwnAlert: false, payloadBytes: 10)]
        ledger.sent(0, connection: 1, place: 1)
        try ledger.accepted(0, taskID: "T", wasOnline: true)
        return ledger
    }

    private static func answer(_ state: String, _ reason: String) -> StoryAnswer {
        StoryAnswer(
            Array(
                #"{"verdict":"v","messages":[{"taskid":"T","state":"\#(state)","reason":"\#(reason)","verdict":"x"}],"#
                    .utf8)
                + Array(#""events":[],"more":false}"#.utf8))
    }

    @Test func `A story is compared with what was seen to become of a message`() throws {
        let delivered = Self.answer("delivered", "acknowledged")
        #expect(delivered.messages == ["T": StoryAnswer.Message(state: "delivered", reason: "acknowledged")])
        let wrong = [
            delivered, Self.answer("expired", "ttl"), Self.answer("expired", "no_live_session"),
            Self.answer("unknown", ""), Self.answer("kept", ""), StoryAnswer(Array(#"{"more":false}"#.utf8)),
        ]
        for answer in wrong {
            let ledger = try Self.ledgerOfOnePost()
            #expect(throws: Violation.self, "\(answer)") { try ledger.told(answer, of: 0, post: nil) }
        }
        let ledger = try Self.ledgerOfOnePost()
        ledger.posts[0].isSent = true
        try ledger.told(delivered, of: 0, post: nil)
        ledger.posts[0].isSent = false
        ledger.clock.raise(to: ledger.clock.now + .seconds(90_000))
        #expect(throws: Violation.self, "another state than before") {
            try ledger.told(Self.answer("expired", "ttl"), of: 0, post: 0)
        }
        ledger.stories = [:]
        try ledger.told(Self.answer("expired", "ttl"), of: 0, post: 0)
        ledger.everDelivered = [0]
        #expect(throws: Violation.self, "it was delivered") {
            try ledger.told(Self.answer("expired", "ttl"), of: 0, post: 0)
        }
    }

    private static func link(_ number: Int) throws -> Link {
        let (theirs, ours) = try Socket.pair()
        Socket.close(theirs)
        return Link(number: number, device: 0, descriptor: ours, gatewayDescriptor: theirs)
    }

    private static let welcome = GatewayFrame.welcome(
        WelcomeFrame(
            sessionID: SessionID(rawValue: 1), epoch: .none, isResumed: false, serverTime: 0, keepAlive: 60, window: 8,
            windowBytes: 1_000, keptMessages: 0, keptBytes: 0))
}
