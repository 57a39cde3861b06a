private import FerryCore
private import FerrySession
private import FerryTestSupport
private import FerryWire
internal import Testing

struct MatrixTests {
    private static let start = Instant(milliseconds: 0)

    // MARK: - Handshake

    private static func received(_ frame: DeviceFrame?) -> HandshakeEvent? {
        frame.map { .frameReceived($0, body: Sample.body($0)) }
    }

    private static let handshakeEvents: [(name: String, later: Duration, event: HandshakeEvent?)] = [
        ("hello", .zero, received(Sample.hello())),
        ("hello, version 0", .zero, received(Sample.hello(version: 0))),
        ("hello, version 9", .zero, received(Sample.hello(version: 9))),
        ("login", .zero, received(Sample.login)),
        ("register", .zero, received(Sample.register)),
        ("ack", .zero, received(.ack(AckFrame(seq: Seq(1))))),
        ("ping", .zero, received(.ping)),
        ("bye", .zero, received(.bye)),
        ("unknown frame", .zero, received(.unknownSkippable(0x70))),
        ("malformed", .zero, .malformedReceived(WireError(.frameTooLarge, ""))),
        ("bytes too early", .zero, .bytesReceivedEarly),
        ("proof right", .zero, .proofChecked(.right)),
        ("proof wrong", .zero, .proofChecked(.wrong)),
        ("app unknown", .zero, .proofChecked(.unknownApp)),
        ("owner admits", .zero, .ownerAnswered(.admitted)),
        ("device unknown", .zero, .ownerAnswered(.unknownDevice)),
        ("generation retired", .zero, .ownerAnswered(.generationRetired)),
        ("store unavailable", .zero, .ownerAnswered(.storeUnavailable)),
        ("time, not yet", .milliseconds(9_999), .timePassed),
        ("time", .seconds(10), .timePassed),
    ]

    private static let handshakeStates: [(detail: String, events: [HandshakeEvent?])] = [
        ("connected", []),
        ("hello came", [received(Sample.hello())]),
        ("login came", [received(Sample.hello()), received(Sample.login)]),
        ("register came", [received(Sample.hello()), received(Sample.register)]),
        ("its proof is right", [received(Sample.hello()), received(Sample.login), .proofChecked(.right)]),
        (
            "the owner admitted it",
            [received(Sample.hello()), received(Sample.login), .proofChecked(.right), .ownerAnswered(.admitted)]
        ),
        ("too early", [.bytesReceivedEarly]),
    ]

    private static func name(_ state: HandshakeStateMachine.State) -> String {
        switch state {
        case .awaitingHello: "awaitingHello"
        case .awaitingProof: "awaitingProof"
        case .checking(let admission): "checking \(name(admission))"
        case .admitting(let admission): "admitting \(name(admission))"
        case .admitted: "admitted"
        case .closed: "closed"
        }
    }

    private static func name(_ admission: Admission) -> String {
        switch admission.request {
        case .login: "login"
        case .register: "registration"
        }
    }

    private static func name(_ action: HandshakeAction) -> String {
        switch action {
        case .send(.challenge): "send challenge"
        case .send: "send another frame"
        case .checkLogin: "check login"
        case .checkRegistration: "check registration"
        case .admit: "admit"
        case .close(let code): "close \(code.rawValue)"
        }
    }

    @Test func `A handshake does in each state at each event what the table says`() {
        var table = MatrixTable(title: "A connection before its welcome")
        for state in Self.handshakeStates {
            var machine = HandshakeStateMachine(nonce: Sample.nonce, policy: SessionPolicy(), now: Self.start)
            var actions: [HandshakeAction] = []
            for case let event? in state.events { machine.handle(event, now: Self.start, actions: &actions) }
            table.begin(state: Self.name(machine.state), detail: state.detail)
            for case (let name, let later, let event?) in Self.handshakeEvents {
                var next = machine
                actions = []
                next.handle(event, now: Self.start + later, actions: &actions)
                table.add(
                    event: name, actions: actions.map { Self.name($0) },
                    next: next == machine ? nil : Self.name(next.state))
            }
        }
        #expect(table.differences(name: "handshake") == [])
    }

    // MARK: - Session

    private static let sessionStates: [(name: String, detail: String, events: [SessionEvent])] = [
        ("foreground", "nothing in flight", []),
        ("foreground, in flight", "an entry was sent", [.entrySent]),
        ("foreground, blocked", "unsent bytes are above the mark", [.entrySent, .outputBlocked(true)]),
        ("background", "after an entry was sent", [.entrySent, .backgroundReceived]),
        ("closed", "by a wrong frame", [.unexpectedFrameReceived]),
    ]

    private static let sessionEvents: [(name: String, later: Duration, event: SessionEvent)] = [
        ("bytes", .seconds(1), .bytesReceived),
        ("ping", .zero, .pingReceived),
        ("pong", .zero, .pongReceived),
        ("acknowledged, more out", .seconds(1), .acknowledged(isEmpty: false)),
        ("acknowledged, all", .zero, .acknowledged(isEmpty: true)),
        ("background", .zero, .backgroundReceived),
        ("foreground", .zero, .foregroundReceived(lastSeq: Seq(4))),
        ("bye", .zero, .byeReceived),
        ("unexpected frame", .zero, .unexpectedFrameReceived),
        ("entry sent", .zero, .entrySent),
        ("output blocked", .seconds(1), .outputBlocked(true)),
        ("output free", .zero, .outputBlocked(false)),
        ("taken over", .zero, .takenOver),
        ("connection lost", .zero, .connectionLost),
        ("time, 4.999 s", .milliseconds(4_999), .timePassed),
        ("time, 5 s", .seconds(5), .timePassed),
        ("time, 10 s", .seconds(10), .timePassed),
        ("time, 30 s", .seconds(30), .timePassed),
        ("time, 359.999 s", .milliseconds(359_999), .timePassed),
        ("time, 360 s", .seconds(360), .timePassed),
    ]

    private static func text(_ machine: SessionStateMachine) -> String {
        let deadline = machine.deadline(SessionPolicy())
        return deadline == .distantFuture ? "\(machine.state)" : "\(machine.state), wakes at \(deadline.milliseconds)"
    }

    private static func text(_ action: SessionAction) -> String {
        switch action {
        case .sendPing: "ping"
        case .sendPong: "pong"
        case .startSession(let lastSeq): "start session, has \(lastSeq)"
        case .endSession(let ending): "end session \(ending)"
        case .close(let reason): "close \(reason)"
        case .disconnect: "disconnect"
        }
    }

    @Test func `A session does in each state at each event what the table says`() {
        var table = MatrixTable(title: "A connection after its welcome (times in ms since)")
        for state in Self.sessionStates {
            var machine = SessionStateMachine(keepAlive: .seconds(240), now: Self.start)
            var actions: [SessionAction] = []
            for event in state.events {
                machine.handle(event, now: Self.start, policy: SessionPolicy(), actions: &actions)
            }
            table.begin(state: state.name, detail: "\(state.detail): \(Self.text(machine))")
            for event in Self.sessionEvents {
                var next = machine
                actions = []
                next.handle(
                    event.event, now: Self.start + event.later, policy: SessionPolicy(), actions: &actions)
                table.add(
                    event: event.name, actions: actions.map { Self.text($0) },
                    next: next == machine ? nil : Self.text(next))
            }
        }
        #expect(table.differences(name: "session") == [])
    }
}
