package import FerryCore
package import FerryWire

/// A backend that wants to open a link, with what the proofs are made over: bodies as they travelled.
package struct LinkAttempt: Hashable, Sendable {
    package let login: LinkLoginFrame
    package let hello: [UInt8]
    package let challenge: [UInt8]
    package let loginBody: [UInt8]
}

/// What happened to a link.
package enum LinkEvent: Hashable, Sendable {
    /// Any bytes.
    case bytesReceived
    /// A whole frame, with its body as it travelled.
    case frameReceived(LinkBackendFrame, body: [UInt8])
    /// Bytes that are no frame.
    case malformedReceived(WireError)
    /// The app is known, and the proof was made with its master secret.
    case proofChecked(isRight: Bool)
    /// A push that was taken has its outcome.
    case settled(UInt64, AnswerWindow.Outcome)
    /// Whether more answers wait to be read by the backend than the gateway likes.
    case outputHeld(Bool)
    /// What happened in this turn is complete: answers may leave.
    case turnEnded
    /// The gateway stops.
    case stopRequested
    case timePassed
}

/// What the driver must do, in order.
package enum LinkAction: Hashable, Sendable {
    case send(LinkGatewayFrame)
    /// Compare the proof with HMAC-SHA-256 over `transcript` (key: the app's master secret), then tell `.proofChecked`.
    case check(LinkAttempt, transcript: [UInt8])
    /// Send the welcome, whose proof is made over the attempt.
    case welcome(LinkAttempt)
    /// The push that was just received has this number: take it in, and tell `.settled` once its outcome is known.
    case take(UInt64)
    /// Read no more for now / read on.
    case pauseReading
    case resumeReading
    case close(CloseCode)
}

/// The gateway's side of a backend's link, from its first byte to its end.
///
/// It promises: nothing is taken before a right proof; each push that is taken is settled by exactly one answer or by none,
/// and answers are in order; there is always a deadline; after `.close` nothing more.
///
/// - awaitingHello → awaitingLogin on hello; → closed on anything else
/// - awaitingLogin → checking on link-login; → closed on anything else
/// - checking → streaming on a right proof; → closed on a wrong one
/// - streaming → stopping when the gateway stops; → closed on a fault, on silence, on answers that nobody reads
/// - stopping → closed once what was taken is settled
package struct LinkStateMachine: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case awaitingHello
        case awaitingLogin(hello: [UInt8], challenge: [UInt8])
        case checking(LinkAttempt)
        case streaming
        case stopping
        case closed
    }

    package private(set) var state = State.awaitingHello
    package private(set) var window: AnswerWindow
    private let policy: LinkPolicy
    private let nonce: Bytes32
    private let handshakeEnds: Instant
    private var heardAt: Instant
    /// Since when too many answers wait to be read.
    private var heldSince: Instant?

    /// `nonce` is fresh randomness: it is what makes an old login worthless.
    package init(nonce: Bytes32, policy: LinkPolicy, now: Instant) {
        self.nonce = nonce
        self.policy = policy
        window = AnswerWindow(messages: policy.window, bytes: policy.windowBytes)
        handshakeEnds = now + policy.handshakeDeadline
        heardAt = now
    }

    package var isStreaming: Bool {
        if case .streaming = state { true } else { false }
    }

    /// Pushes that were taken and whose outcome the link will still tell.
    package var openPushes: Int {
        if case .closed = state { 0 } else { window.open }
    }

    /// When `.timePassed` may end the link.
    package var deadline: Instant {
        switch state {
        case .awaitingHello, .awaitingLogin, .checking: handshakeEnds
        case .streaming, .stopping:
            // While nothing is read, nothing can be heard.
            heldSince.map { $0 + policy.slowDeadline } ?? heardAt + policy.keepAlive * 3 / 2
        case .closed: .distantFuture
        }
    }

    package mutating func handle(_ event: LinkEvent, now: Instant, actions: inout [LinkAction]) {
        if case .closed = state { return }
        switch event {
        case .bytesReceived: heardAt = max(heardAt, now)
        case .frameReceived(let frame, let body): received(frame, body: body, &actions)
        case .malformedReceived(let error): close(error.code, &actions)
        case .proofChecked(let isRight): checked(isRight, &actions)
        case .settled(let number, let outcome): settle(number, outcome)
        case .outputHeld(let isHeld): hold(isHeld, now: now, &actions)
        case .turnEnded: answer(&actions)
        case .stopRequested: stop(&actions)
        case .timePassed: if now >= deadline { timeOut(&actions) }
        }
    }

    /// The way of every push, without an event that would copy it: the number of the push that has just come, whose body
    /// has `bytes`; nil when it is not to be taken.
    package mutating func take(bytes: Int, actions: inout [LinkAction]) -> UInt64? {
        switch state {
        case .streaming:
            if let number = window.take(bytes: bytes) { return number }
            close(.protocolError, &actions)
            return nil
        case .stopping, .closed: return nil
        case .awaitingHello, .awaitingLogin, .checking:
            close(.protocolError, &actions)
            return nil
        }
    }

    /// The same without an event for an outcome. While the gateway stops, what it was too busy for is for its next life.
    package mutating func settle(_ number: UInt64, _ outcome: AnswerWindow.Outcome) {
        if case .closed = state { return }
        if case .stopping = state, case .refused(code: Self.busy, _) = outcome {
            window.settle(number, .unanswered)
        } else {
            window.settle(number, outcome)
        }
    }

    /// The same for many that are on disk.
    package mutating func accept(_ numbers: [UInt64]) {
        if case .closed = state { return }
        for number in numbers { window.settle(number) }
    }

    /// The API's code for "too busy, later".
    private static let busy: UInt64 = 30_019

    private mutating func received(_ frame: LinkBackendFrame, body: [UInt8], _ actions: inout [LinkAction]) {
        switch (state, frame) {
        case (.awaitingHello, .hello(let hello)): challenge(hello, body: body, &actions)
        case (.awaitingLogin(let hello, let challenge), .login(let login)):
            let attempt = LinkAttempt(login: login, hello: hello, challenge: challenge, loginBody: body)
            state = .checking(attempt)
            let transcript = Transcript.linkLogin(
                hello: hello, challenge: challenge, signedPart: body.dropLast(WireLimits.proofBytes))
            actions.append(.check(attempt, transcript: transcript))
        case (.streaming, .push), (.stopping, .push):
            if let number = take(bytes: body.count, actions: &actions) { actions.append(.take(number)) }
        case (.streaming, .ping), (.stopping, .ping):
            // Whoever asks without reading the answers is not owed more of them.
            if heldSince == nil { actions.append(.send(.pong)) }
        case (.streaming, .pong), (.streaming, .unknownSkippable), (.stopping, .pong), (.stopping, .unknownSkippable):
            break
        case (.awaitingHello, _), (.awaitingLogin, _), (.checking, _), (.streaming, .hello), (.streaming, .login),
            (.stopping, .hello), (.stopping, .login):
            close(.protocolError, &actions)
        case (.closed, _): break
        }
    }

    private mutating func challenge(_ hello: HelloFrame, body: [UInt8], _ actions: inout [LinkAction]) {
        guard hello.version >= WireLimits.version else { return close(.unsupportedVersion, &actions) }
        let challenge = ChallengeFrame(nonce: nonce)
        state = .awaitingLogin(hello: body, challenge: challenge.body())
        actions.append(.send(.challenge(challenge)))
    }

    private mutating func checked(_ isRight: Bool, _ actions: inout [LinkAction]) {
        guard case .checking(let attempt) = state else { return }
        guard isRight else { return close(.linkRefused, &actions) }
        state = .streaming
        actions.append(.welcome(attempt))
    }

    private mutating func hold(_ isHeld: Bool, now: Instant, _ actions: inout [LinkAction]) {
        guard isHeld != (heldSince != nil) else { return }
        heldSince = isHeld ? now : nil
        // What came meanwhile is heard now.
        if !isHeld { heardAt = max(heardAt, now) }
        actions.append(isHeld ? .pauseReading : .resumeReading)
    }

    private mutating func answer(_ actions: inout [LinkAction]) {
        while let answer = window.nextAnswer() { actions.append(.send(.answer(answer))) }
        if state == .stopping, window.open == 0 { close(.stopping, &actions) }
    }

    private mutating func stop(_ actions: inout [LinkAction]) {
        switch state {
        case .awaitingHello, .awaitingLogin, .checking: close(.stopping, &actions)
        case .streaming:
            state = .stopping
            answer(&actions)
        case .stopping, .closed: break
        }
    }

    private mutating func timeOut(_ actions: inout [LinkAction]) {
        switch state {
        case .awaitingHello, .awaitingLogin, .checking: close(.handshakeTooLong, &actions)
        case .streaming, .stopping: close(heldSince == nil ? .keepAliveExpired : .tooSlow, &actions)
        case .closed: break
        }
    }

    private mutating func close(_ code: CloseCode, _ actions: inout [LinkAction]) {
        state = .closed
        actions.append(.close(code))
    }
}
