private import FerryCore
internal import FerrySession
internal import FerryTestSupport
private import FerryWire
internal import Testing

/// All orders in which a connection can begin, against the promises of `HandshakeStateMachine`.
struct HandshakeReachabilityTests {
    private struct World: Hashable {
        var machine: HandshakeStateMachine
        var now = Instant(milliseconds: 0)
        var hello: [UInt8]?
        var challenge: [UInt8]?
        var isProofAsked = false
        var isProven = false
        var isOwnerAsked = false
        var isAdmitted = false
        var isClosed = false

        mutating func perform(_ step: Step) throws(Violation) {
            var actions: [HandshakeAction] = []
            switch step {
            case .wait: now.milliseconds += 5_000
            case .event(let event):
                machine.handle(event, now: now, actions: &actions)
                if isProofAsked, !isOwnerAsked, event == .proofChecked(.right), !isClosed { isProven = true }
            }
            try Violation.unless(actions.isEmpty || !isClosed, "an action after the close")
            try Violation.unless(actions.isEmpty || !isAdmitted, "an action after the welcome")
            try Violation.unless(actions.count <= 1, "more than one action")
            for action in actions { try follow(action, step) }
            if case .event(.ownerAnswered(.admitted)) = step, isOwnerAsked, !isClosed { isAdmitted = true }
            try checkState(step, actions)
        }

        private mutating func follow(_ action: HandshakeAction, _ step: Step) throws(Violation) {
            switch action {
            case .send(.challenge(let frame)):
                try Violation.unless(challenge == nil, "a second challenge")
                try Violation.unless(frame.nonce == Sample.nonce && frame.version == 1, "another challenge")
                guard case .event(.frameReceived(.hello, let body)) = step else { throw Violation("no hello") }
                hello = body
                challenge = Array(GatewayFrame.challenge(frame).encoded().dropFirst(2))
            case .send: throw Violation("a frame other than the challenge")
            case .checkLogin(let login, let transcript):
                guard case .event(.frameReceived(.login(login), let body)) = step else { throw Violation("no login") }
                try checkProofAsked(body) { Transcript.login(hello: $0, challenge: $1, signedPart: $2) == transcript }
            case .checkRegistration(let register, let transcript):
                guard case .event(.frameReceived(.register(register), let body)) = step else {
                    throw Violation("no registration")
                }
                try checkProofAsked(body) {
                    Transcript.register(hello: $0, challenge: $1, signedPart: $2) == transcript
                }
            case .admit(let admission):
                try Violation.unless(isProven, "the owner is asked before a right proof")
                try Violation.unless(!isOwnerAsked, "the owner is asked twice")
                try Violation.unless(
                    admission.hello == hello && admission.challenge == challenge, "proofs over other bodies")
                isOwnerAsked = true
            case .close: isClosed = true
            }
        }

        private mutating func checkProofAsked(
            _ body: [UInt8], _ matches: ([UInt8], [UInt8], [UInt8]) -> Bool
        ) throws(Violation) {
            guard let hello, let challenge else { throw Violation("a proof before the challenge") }
            try Violation.unless(!isProofAsked, "a second proof")
            try Violation.unless(matches(hello, challenge, body.dropLast(32)), "a proof over other bytes")
            isProofAsked = true
        }

        private func checkState(_ step: Step, _ actions: [HandshakeAction]) throws(Violation) {
            try Violation.unless((machine.state == .closed) == isClosed, "closed is told exactly when it is so")
            try Violation.unless((machine.state == .admitted) == isAdmitted, "admitted only by the owner")
            var last = machine
            var late: [HandshakeAction] = []
            last.handle(.timePassed, now: Instant(milliseconds: machine.deadline.milliseconds - 1), actions: &late)
            try Violation.unless(late.isEmpty, "closed before the deadline")
            last.handle(.timePassed, now: machine.deadline, actions: &late)
            let expected: [HandshakeAction] = isClosed || isAdmitted ? [] : [.close(.handshakeTooLong)]
            try Violation.unless(late == expected, "the deadline ends a handshake that has not ended")
        }
    }

    private enum Step: Hashable {
        case event(HandshakeEvent)
        case wait
    }

    private static func steps(_ world: World) -> [Step] {
        var frames: [DeviceFrame] = [
            Sample.hello(), Sample.hello(version: 0), Sample.hello(version: 9), .ping, .pong, .bye, .background,
            .ack(AckFrame(seq: Seq(1))), .unknownSkippable(0x70),
        ]
        frames += [Sample.login, Sample.register].compactMap { $0 }
        var steps = frames.map { Step.event(.frameReceived($0, body: Sample.body($0))) }
        steps += ProofVerdict.allCases.map { .event(.proofChecked($0)) }
        steps += OwnerAnswer.allCases.map { .event(.ownerAnswered($0)) }
        steps += [
            .event(.malformedReceived(WireError(.frameTooLarge, ""))), .event(.bytesReceivedEarly), .event(.timePassed),
        ]
        if world.now.milliseconds < 15_000 { steps.append(.wait) }
        return steps
    }

    @Test func `Every way into a session keeps every promise`() {
        let policy = SessionPolicy()
        let world = World(
            machine: HandshakeStateMachine(nonce: Sample.nonce, policy: policy, now: Instant(milliseconds: 0)))
        let search = ReachabilitySearch<World, Step>(
            events: { Self.steps($0) }, step: { (world, step) throws(Violation) in try world.perform(step) })
        let report = search.run(from: world, limit: 10_000)
        #expect(report.violation == nil, "\(report)")
        #expect(report.isComplete && report.states > 50, "\(report)")
    }
}
