internal import FerryClientCore
internal import FerryCore
internal import FerryWire

/// Always answers the same number, so that a random wait is a known one: the greatest for `.max`.
struct FixedRandom: RandomNumberGenerator {
    var value: UInt64
    /// Leads to no wait. (0 itself would be drawn again for ever, as one of the numbers that do not divide evenly.)
    static let least = FixedRandom(value: 1 << 40)
    mutating func next() -> UInt64 { value }
}

enum Fixtures {
    struct Missing: Error {}

    static func appID() throws -> AppID {
        guard let appID = AppID("demo") else { throw Missing() }
        return appID
    }

    static let epoch = Epoch(7)
    static let cid = CID(Identifier128(high: 1, low: 2))
    static let identity = DeviceIdentity(cid: cid, generation: 1, secret: .zero)
    static let start = Instant(milliseconds: 1_000_000)

    static func machine(hasIdentity: Bool, acknowledges: Bool = true) throws -> ClientStateMachine {
        let record =
            hasIdentity
            ? ClientRecord(identity: identity, installationKey: .zero, epoch: epoch, lastSeq: Seq(1)) : ClientRecord()
        let configuration = ClientConfiguration(appID: try appID(), acknowledges: acknowledges)
        return ClientStateMachine(configuration: configuration, record: record)
    }

    static let challenge = ClientEvent.frameReceived(.challenge(ChallengeFrame(nonce: .zero)), isProven: false)

    static func registered(isProven: Bool = true) -> ClientEvent {
        .frameReceived(.registered(RegisteredFrame(cid: cid, generation: 1, secret: .zero)), isProven: isProven)
    }

    static func welcome(isResumed: Bool, isProven: Bool = true, window: UInt64 = 64) -> ClientEvent {
        let frame = WelcomeFrame(
            sessionID: SessionID(rawValue: 1), epoch: epoch, isResumed: isResumed, keepAlive: 240, window: window)
        return .frameReceived(.welcome(frame), isProven: isProven)
    }

    static func push(_ seq: UInt64, bytes: Int = 1) -> ClientEvent {
        let frame = PushFrame(
            seq: Seq(seq), messageID: MessageID(Identifier128(high: 0, low: seq)), taskID: "t",
            payload: [UInt8](repeating: 0x61, count: bytes))
        return .frameReceived(.push(frame), isProven: false)
    }

    static func gap(_ seq: UInt64) -> ClientEvent {
        .frameReceived(.gap(GapFrame(seq: Seq(seq), upTo: Seq(seq), count: 1, expired: 1)), isProven: false)
    }

    static func resumed(_ isResumed: Bool) -> ClientEvent {
        .frameReceived(.resumed(ResumedFrame(sessionID: SessionID(rawValue: 2), isResumed: isResumed)), isProven: false)
    }

    static func close(_ code: CloseCode, retryAfter: UInt64 = 0) -> ClientEvent {
        .frameReceived(.close(CloseFrame(code: code, retryAfter: retryAfter)), isProven: false)
    }
}

/// A machine with a clock, played by a test.
struct Player {
    var machine: ClientStateMachine
    var now = Fixtures.start
    var random = FixedRandom(value: .max)

    init(_ machine: ClientStateMachine) { self.machine = machine }

    /// What the machine answers.
    @discardableResult
    mutating func play(_ event: ClientEvent) -> [ClientAction] {
        machine.handle(event, now: now, using: &random)
    }

    /// Plays several, and answers the last one's actions.
    @discardableResult
    mutating func play(_ events: [ClientEvent]) -> [ClientAction] {
        var actions: [ClientAction] = []
        for event in events { actions = play(event) }
        return actions
    }

    /// Lets time pass to the machine's next deadline and tells it.
    @discardableResult
    mutating func playTimer() -> [ClientAction] {
        if let deadline = machine.deadline { now = max(now, deadline) }
        return play(.timerFired)
    }

    static func online(acknowledges: Bool = true, window: UInt64 = 64) throws -> Player {
        var player = Player(try Fixtures.machine(hasIdentity: true, acknowledges: acknowledges))
        player.play([
            .started, .connected, Fixtures.challenge, Fixtures.welcome(isResumed: true, window: window),
        ])
        return player
    }
}
