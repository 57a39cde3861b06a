private import FerryCore
private import FerrySession
private import FerryTestSupport
private import FerryWire
internal import Testing

struct LinkMatrixTests {
    private static let start = Instant(milliseconds: 0)

    private static func received(_ frame: LinkBackendFrame) -> LinkEvent {
        .frameReceived(frame, body: Array(frame.encoded().dropFirst(2)))
    }

    private static let hello = received(.hello(HelloFrame(nonce: Sample.deviceNonce)))
    private static let login = AppID("app").map { received(.login(LinkLoginFrame(appID: $0))) } ?? .timePassed
    private static let push = received(
        .push(LinkPushFrame(id: Identifier128(high: 1, low: 2), cid: CID(Identifier128(high: 3, low: 4)), payload: [1]))
    )
    private static let opening = [hello, login, .proofChecked(isRight: true)]

    private static let events: [(name: String, later: Duration, event: LinkEvent)] = [
        ("hello", .zero, hello),
        ("hello, version 0", .zero, received(.hello(HelloFrame(version: 0, nonce: .zero)))),
        ("login", .zero, login), ("push", .zero, push), ("ping", .zero, received(.ping)),
        ("pong", .zero, received(.pong)),
        ("unknown frame", .zero, .frameReceived(.unknownSkippable(0x3f), body: [])),
        ("malformed", .zero, .malformedReceived(WireError(.fieldOutOfRange, ""))),
        ("proof right", .zero, .proofChecked(isRight: true)), ("proof wrong", .zero, .proofChecked(isRight: false)),
        ("1 accepted", .zero, .settled(1, .accepted)),
        ("1 refused", .zero, .settled(1, .refused(code: 20_001, text: "no"))),
        ("1 refused, busy", .zero, .settled(1, .refused(code: 30_019, text: "busy"))),
        ("turn ended", .zero, .turnEnded), ("output held", .zero, .outputHeld(true)),
        ("output free", .zero, .outputHeld(false)), ("stop", .zero, .stopRequested),
        ("time, handshake", .seconds(10), .timePassed), ("time, held", .seconds(30), .timePassed),
        ("time, silence", .seconds(45), .timePassed),
    ]

    private static let states: [(detail: String, events: [LinkEvent])] = [
        ("connected", []), ("hello came", [hello]), ("login came", [hello, login]), ("open", opening),
        ("one push open", opening + [push]), ("one push accepted", opening + [push, .settled(1, .accepted)]),
        ("two pushes, the second accepted", opening + [push, push, .settled(2, .accepted)]),
        ("window full", opening + [push, push, push]), ("held", opening + [.outputHeld(true)]),
        ("stopping", opening + [push, .stopRequested]),
        ("stopping, held", opening + [push, .outputHeld(true), .stopRequested]),
        ("stopping, accepted", opening + [push, .stopRequested, .settled(1, .accepted)]),
        ("closed", [.malformedReceived(WireError(.protocolError, ""))]),
    ]

    private static func name(_ state: LinkStateMachine.State) -> String {
        switch state {
        case .awaitingHello: "awaitingHello"
        case .awaitingLogin: "awaitingLogin"
        case .checking: "checking"
        case .streaming: "streaming"
        case .stopping: "stopping"
        case .closed: "closed"
        }
    }

    private static func text(_ action: LinkAction) -> String {
        switch action {
        case .send(.challenge): "send challenge"
        case .send(.answer(let answer)):
            "answer \(answer.upTo)" + answer.refusals.map { ", \($0.number) refused with \($0.code)" }.joined()
        case .send(let frame): "send \(frame)"
        case .check: "check proof"
        case .welcome: "welcome"
        case .take(let number): "take \(number)"
        case .pauseReading: "pause reading"
        case .resumeReading: "resume reading"
        case .close(let code): "close \(code.rawValue)"
        }
    }

    @Test func `A link does in every state at every event what the table says`() {
        var policy = LinkPolicy()
        policy.window = 3
        var table = MatrixTable(title: "LinkStateMachine, window of 3")
        for (detail, events) in Self.states {
            var machine = LinkStateMachine(nonce: Sample.nonce, policy: policy, now: Self.start)
            var ignored: [LinkAction] = []
            for event in events { machine.handle(event, now: Self.start, actions: &ignored) }
            table.begin(state: Self.name(machine.state), detail: detail)
            for (name, later, event) in Self.events {
                var next = machine
                var actions: [LinkAction] = []
                next.handle(event, now: Self.start + later, actions: &actions)
                let state = Self.name(next.state)
                table.add(
                    event: name, actions: actions.map(Self.text), next: state == Self.name(machine.state) ? nil : state)
            }
        }
        let differences = table.differences(name: "link")
        #expect(differences.isEmpty, "\(differences.map(\.description).joined(separator: "\n"))")
    }
}
