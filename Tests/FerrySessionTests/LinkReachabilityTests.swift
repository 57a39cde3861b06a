private import FerryCore
private import FerrySession
private import FerryTestSupport
private import FerryWire
internal import Testing

struct LinkReachabilityTests {
    private static var policy: LinkPolicy {
        var policy = LinkPolicy()
        policy.handshakeDeadline = .milliseconds(4)
        policy.keepAlive = .milliseconds(2)
        policy.slowDeadline = .milliseconds(4)
        policy.window = 2
        policy.windowBytes = 3
        return policy
    }

    private enum Step: Hashable {
        case event(LinkEvent)
        case push
        case wait
    }

    /// The machine beside what a backend and an owner know of it.
    private struct World: Hashable {
        var machine: LinkStateMachine
        var now = Instant(milliseconds: 0)
        var isChecked = false
        var isWelcomed = false
        var isClosed = false
        var isStopping = false
        /// By number, from 1: nil is open, true accepted, false refused or not to be answered.
        var outcomes: [Bool?] = []
        var refusedNumbers: Set<UInt64> = []
        var busyFrom: UInt64?
        var answered: UInt64 = 0

        mutating func perform(_ step: Step) throws(Violation) {
            var actions: [LinkAction] = []
            switch step {
            case .wait: now.milliseconds += 1
            case .push:
                let number = machine.take(bytes: 1, actions: &actions)
                let open = UInt64(outcomes.count) - answered
                let mayTake = isWelcomed && !isClosed && !isStopping
                try Violation.unless((number != nil) == (mayTake && open < 2), "taken exactly when there is room")
                if let number {
                    try Violation.unless(number == UInt64(outcomes.count + 1), "numbers rise by one")
                    outcomes.append(nil)
                } else if mayTake {
                    try Violation.unless(actions == [.close(.protocolError)], "an overrun ends the link")
                }
            case .event(let event):
                if case .settled(let number, let outcome) = event, !isClosed, outcomes[Int(number) - 1] == nil {
                    outcomes[Int(number) - 1] = outcome == .accepted
                    if case .refused(let code, _) = outcome {
                        if isStopping && code == 30_019 {
                            busyFrom = min(busyFrom ?? .max, number)
                        } else {
                            refusedNumbers.insert(number)
                        }
                    }
                }
                if event == .stopRequested, isWelcomed, !isClosed { isStopping = true }
                machine.handle(event, now: now, actions: &actions)
                if case .proofChecked(true) = event, isChecked, !isClosed { isWelcomed = true }
            }
            try Violation.unless(actions.isEmpty || !isClosed, "an action after the close")
            for action in actions { try follow(action) }
            try check()
        }

        private mutating func follow(_ action: LinkAction) throws(Violation) {
            try Violation.unless(!isClosed, "an action after the close")
            switch action {
            case .send(.answer(let answer)):
                try Violation.unless(answer.upTo > answered, "an answer says something new")
                for number in answered + 1...answer.upTo {
                    let outcome = outcomes[Int(number) - 1]
                    try Violation.unless(outcome != nil, "only what is known is answered")
                    try Violation.unless(number < busyFrom ?? .max, "what a stop was too busy for is not answered")
                    let isRefused = answer.refusals.contains { $0.number == number }
                    try Violation.unless(isRefused == refusedNumbers.contains(number), "the outcome is told as it is")
                }
                answered = answer.upTo
            case .send(.challenge):
                try Violation.unless(!isChecked, "a second challenge")
            case .send(.pong): try Violation.unless(isWelcomed, "a pong before the welcome")
            case .send: throw Violation("a frame that is not the machine's")
            case .check:
                try Violation.unless(!isChecked, "a second proof")
                isChecked = true
            case .welcome: try Violation.unless(isWelcomed, "a welcome without a proof")
            case .take: throw Violation("pushes are taken without an event here")
            case .pauseReading, .resumeReading: try Violation.unless(!isClosed, "reading after the close")
            case .close(let code):
                if code == .stopping, isStopping {
                    let first = min(busyFrom ?? .max, UInt64(outcomes.count + 1))
                    try Violation.unless(answered == first - 1, "a stop answers what was taken")
                }
                isClosed = true
            }
        }

        private func check() throws(Violation) {
            try Violation.unless((machine.state == .closed) == isClosed, "closed is told exactly when it is so")
            guard !isClosed else { return }
            var last = machine
            var late: [LinkAction] = []
            last.handle(.timePassed, now: Instant(milliseconds: machine.deadline.milliseconds - 1), actions: &late)
            try Violation.unless(late.isEmpty, "closed before the deadline")
            last.handle(.timePassed, now: machine.deadline, actions: &late)
            guard case .close? = late.first, late.count == 1 else { throw Violation("a deadline that ends nothing") }
        }
    }

    private static func steps(_ world: World) -> [Step] {
        let hello = HelloFrame(nonce: Sample.deviceNonce)
        var steps: [Step] = [
            .event(.frameReceived(.hello(hello), body: hello.body())),
            .event(.frameReceived(.hello(HelloFrame(version: 0, nonce: .zero)), body: [0])),
            .event(.frameReceived(.ping, body: [])), .event(.frameReceived(.pong, body: [])),
            .event(.frameReceived(.unknownSkippable(0x3f), body: [])),
            .event(.malformedReceived(WireError(.frameTooLarge, ""))), .event(.proofChecked(isRight: true)),
            .event(.proofChecked(isRight: false)), .event(.outputHeld(true)), .event(.outputHeld(false)),
            .event(.bytesReceived), .event(.turnEnded), .event(.stopRequested), .event(.timePassed),
        ]
        if let app = AppID("app") {
            let login = LinkLoginFrame(appID: app)
            steps.append(.event(.frameReceived(.login(login), body: login.body())))
        }
        if world.outcomes.count < 4 { steps.append(.push) }
        for index in world.outcomes.indices where world.outcomes[index] == nil {
            steps += [.accepted, .refused(code: 20_001, text: ""), .refused(code: 30_019, text: "")].map {
                .event(.settled(UInt64(index + 1), $0))
            }
        }
        if world.now.milliseconds < 5 { steps.append(.wait) }
        return steps
    }

    @Test func `Every life of a link keeps every promise`() {
        let world = World(
            machine: LinkStateMachine(nonce: Sample.nonce, policy: Self.policy, now: Instant(milliseconds: 0)))
        let search = ReachabilitySearch<World, Step>(
            events: { Self.steps($0) }, step: { (world, step) throws(Violation) in try world.perform(step) })
        let report = search.run(from: world, limit: Effort.scaled(20_000))
        #expect(report.violation == nil, "\(report)")
        #expect(report.states > 5_000, "\(report)")
    }
}
