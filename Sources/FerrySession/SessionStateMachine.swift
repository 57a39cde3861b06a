package import FerryCore

/// What happened on a connection after its login.
package enum SessionEvent: Hashable, Sendable {
    /// Any bytes came, before their frames are told.
    case bytesReceived
    case pingReceived
    case pongReceived
    /// An ack that moved the device's stream on; `isEmpty` when nothing is in flight any more.
    case acknowledged(isEmpty: Bool)
    case backgroundReceived
    case foregroundReceived(lastSeq: Seq)
    case byeReceived
    /// A frame that this state does not allow.
    case unexpectedFrameReceived
    /// An entry that wants an ack was handed to the connection.
    case entrySent
    /// Unsent bytes passed the high-water mark, or fell below it.
    case outputBlocked(Bool)
    /// A newer session of the device took over.
    case takenOver
    case timePassed
    /// The socket broke or the peer closed it.
    case connectionLost
}

/// What the driver must do, in order.
package enum SessionAction: Hashable, Sendable {
    case sendPing
    case sendPong
    /// Start a new session of the device on this connection.
    case startSession(lastSeq: Seq)
    /// Tell the device's owner that the session is over.
    case endSession(SessionEnding)
    /// Send the close frame, then close.
    case close(SessionCloseReason)
    /// Close without a word.
    case disconnect
}

/// How a session ends, for presence.
package enum SessionEnding: UInt8, Hashable, Sendable, CaseIterable {
    case lost
    case background
    case bye
}

/// Why the gateway closes a connection; each has its close code on the wire.
package enum SessionCloseReason: UInt8, Hashable, Sendable, CaseIterable {
    case keepAliveExpired
    case ackDeadlineExpired
    case nothingAcknowledged
    case tooSlow
    case takenOver
    case protocolError
}

/// One connection after login: in the foreground, in the background, or closed.
///
/// It promises: a session that started ends exactly once; after `.close` or `.disconnect` there is no further action; in the
/// background nothing is waited for but a sign of life, and that the device takes what was sent before.
/// It does not know messages, windows or bytes: those are the device's (`FerryRouting`) and the codec's.
///
/// - foreground → background on `background`; → closed on bye, loss, silence, slowness, takeover, a wrong frame
/// - background → foreground on `foreground`; → closed on bye, loss, silence, slowness, takeover, a wrong frame
/// - closed: stays
package struct SessionStateMachine: Hashable, Sendable, BitwiseCopyable {
    package enum State: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
        case foreground
        case background
        case closed
    }

    private var keepAlive: KeepAlive
    package private(set) var state = State.foreground
    /// Unsent bytes are above the high-water mark.
    package private(set) var isBlocked = false
    /// Counts while `isBlocked`, and is read near the last sign of life.
    private var blockedSince = LowInstant(.distantPast)

    /// A session begins in the foreground. The policy, which all share, is passed in at each event: it costs no memory here.
    package init(keepAlive interval: Duration, now: Instant) {
        keepAlive = KeepAlive(interval: interval, now: now)
    }

    /// When `.timePassed` is wanted next.
    package func deadline(_ policy: SessionPolicy) -> Instant {
        guard state != .closed else { return .distantFuture }
        return min(keepAlive.deadline(policy), slowEnd(policy))
    }

    private func slowEnd(_ policy: SessionPolicy) -> Instant {
        guard isBlocked else { return .distantFuture }
        return blockedSince.nearest(to: keepAlive.reference)
            .advanced(byMilliseconds: max(1, policy.slowDeadline.inMilliseconds))
    }

    /// Handles one event; at most three actions, appended in order.
    package mutating func handle(
        _ event: SessionEvent, now: Instant, policy: SessionPolicy, actions: inout [SessionAction]
    ) {
        guard state != .closed else { return }
        switch event {
        case .bytesReceived: heard(now: now)
        case .pingReceived: actions.append(.sendPong)
        case .pongReceived: break
        case .acknowledged(let isEmpty): progressed(isEmpty: isEmpty, now: now)
        case .entrySent: entrySent(now: now)
        case .backgroundReceived: enterBackground(&actions)
        case .foregroundReceived(let lastSeq): enterForeground(lastSeq, &actions)
        case .outputBlocked(let isBlocked): outputBlocked(isBlocked, now: now)
        case .byeReceived: end(.bye, with: .disconnect, &actions)
        case .connectionLost: end(.lost, with: .disconnect, &actions)
        case .unexpectedFrameReceived: end(.lost, with: .close(.protocolError), &actions)
        case .takenOver:
            // The newer session has the device already: nothing to tell its owner.
            state = .closed
            actions.append(.close(.takenOver))
        case .timePassed: timePassed(now: now, policy, &actions)
        }
    }

    // MARK: - Without actions

    // These happen for each message and cause no action. Each is what `handle` does at its event; the answer is whether the
    // deadline may have come closer.

    /// `.bytesReceived`.
    @discardableResult
    package mutating func heard(now: Instant) -> Bool { state != .closed && keepAlive.heard(now: now) }

    /// `.acknowledged`.
    @discardableResult
    package mutating func progressed(isEmpty: Bool, now: Instant) -> Bool {
        state == .foreground && keepAlive.progressed(isEmpty: isEmpty, now: now)
    }

    /// `.entrySent`.
    @discardableResult
    package mutating func entrySent(now: Instant) -> Bool { state == .foreground && keepAlive.sent(now: now) }

    private mutating func enterBackground(_ actions: inout [SessionAction]) {
        guard state == .foreground else {
            end(.lost, with: .close(.protocolError), &actions)
            return
        }
        state = .background
        keepAlive.stopWaiting()
        actions.append(.endSession(.background))
    }

    private mutating func enterForeground(_ lastSeq: Seq, _ actions: inout [SessionAction]) {
        guard state == .background else {
            end(.lost, with: .close(.protocolError), &actions)
            return
        }
        state = .foreground
        actions.append(.startSession(lastSeq: lastSeq))
    }

    private mutating func outputBlocked(_ isBlocked: Bool, now: Instant) {
        guard isBlocked != self.isBlocked else { return }
        self.isBlocked = isBlocked
        blockedSince = LowInstant(isBlocked ? now : .distantPast)
    }

    private mutating func timePassed(now: Instant, _ policy: SessionPolicy, _ actions: inout [SessionAction]) {
        if now >= slowEnd(policy) {
            end(.lost, with: .close(.tooSlow), &actions)
            return
        }
        switch keepAlive.check(now: now, policy: policy) {
        case .fine: break
        case .probe: actions.append(.sendPing)
        case .keepAliveExpired: end(.lost, with: .close(.keepAliveExpired), &actions)
        case .ackDeadlineExpired: end(.lost, with: .close(.ackDeadlineExpired), &actions)
        case .nothingAcknowledged: end(.lost, with: .close(.nothingAcknowledged), &actions)
        }
    }

    private mutating func end(_ ending: SessionEnding, with last: SessionAction, _ actions: inout [SessionAction]) {
        if state == .foreground { actions.append(.endSession(ending)) }
        state = .closed
        actions.append(last)
    }
}

extension SessionStateMachine {
    /// A connection that has no session and will have none: what a slot holds before its welcome.
    package static let closed: SessionStateMachine = {
        var machine = SessionStateMachine(keepAlive: .seconds(1), now: .distantPast)
        machine.state = .closed
        return machine
    }()
}
