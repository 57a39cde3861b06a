package import FerryCore
internal import FerryWire

/// All decisions of a backend's side of a link: when to connect, what to send, what to send again, when to give up. It holds
/// no socket, key computation or clock.
///
/// It promises: pushes are sent in the order in which they were queued, never more than the window without an answer; what
/// has no answer when a link ends is sent again on the next, first; each push is told once, as accepted or refused.
package struct LinkClientStateMachine: Hashable, Sendable {
    package enum Phase: Hashable, Sendable {
        case idle
        /// Comes back at this time.
        case waiting(until: Instant)
        /// Until this time, like the next two.
        case connecting(until: Instant)
        case awaitingChallenge(until: Instant)
        case awaitingWelcome(until: Instant)
        case open(Opening)
        /// Everything has its answer, or nothing will be tried any more.
        case ended
    }

    /// A link past its handshake.
    package struct Opening: Hashable, Sendable {
        let begin: Instant
        let keepAlive: Duration
        let window: UInt64
        let windowBytes: UInt64
        var lastSent: Instant
        /// Something is owed a sign of life since then.
        var askedAt: Instant?
        /// The number up to which this link's pushes are answered.
        var answered: UInt64 = 0
    }

    package let appID: AppID
    package private(set) var phase = Phase.idle
    private var queue: PushQueue
    private var isInputEnded = false
    private var backoff = Backoff()

    package init(appID: AppID, busy: BusyPolicy = BusyPolicy()) {
        self.appID = appID
        queue = PushQueue(policy: busy)
    }

    /// Pushes that have no answer, sent or not.
    package var unanswered: Int { queue.count }
    /// Of those, the ones that are out on the present link.
    package var sent: Int { queue.sent }
    /// And those that the gateway had no room for, with what waits behind them.
    package var heldBack: Int { queue.heldBack }

    /// Whether more pushes are of use now: enough of them that the window is full when an answer comes, not all there are.
    package var wantsPushes: Bool {
        guard phase != .ended, !isInputEnded else { return false }
        var (window, windowBytes) = (WireLimits.linkWindowDefault, WireLimits.linkWindowBytesDefault)
        if case .open(let opening) = phase { (window, windowBytes) = (opening.window, opening.windowBytes) }
        return UInt64(queue.count) / 2 < min(window, 65_536) && UInt64(queue.bytes) / 2 < min(windowBytes, 1 << 28)
    }

    /// Takes note of an event and answers what to do. Every event is allowed in every phase; one that means nothing there
    /// changes nothing.
    package mutating func handle(
        _ event: LinkClientEvent, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [LinkClientAction] {
        switch event {
        case .started: return phase == .idle ? connect(now: now) : []
        case .connected:
            guard case .connecting(let until) = phase else { return [] }
            phase = .awaitingChallenge(until: until)
            return [.send(.hello(HelloFrame(nonce: .random(using: &random))))]
        case .connectionLost(let text):
            return hasConnection ? lose(.lost(text), now: now, using: &random, closing: false) : []
        case .malformedReceived(let error):
            return hasConnection ? lose(.malformed(error), now: now, using: &random) : []
        case .bytesReceived:
            update { $0.askedAt = nil }
            return []
        case .frameReceived(let frame, let isProven):
            return hasConnection ? receive(frame, isProven: isProven, now: now, using: &random) : []
        case .queued(let pushes):
            guard phase != .ended else { return [] }
            queue.append(pushes)
            return sendMore(now: now)
        case .inputEnded:
            isInputEnded = true
            return finishIfDone()
        case .timerFired: return timerFired(now: now, using: &random)
        case .stopRequested: return stop(nil)
        }
    }

    /// When the driver must tell `timerFired` at the latest; nil: never.
    package var deadline: Instant? {
        switch phase {
        case .idle, .ended: nil
        case .waiting(let until), .connecting(let until), .awaitingChallenge(let until), .awaitingWelcome(let until):
            until
        case .open(let opening):
            min(
                opening.askedAt.map { $0 + ClientLimits.answer } ?? opening.lastSent + opening.keepAlive,
                hasRoom(opening) ? queue.nextTry ?? .distantFuture : .distantFuture)
        }
    }

    /// Whether the driver holds a connection, or is making one.
    package var hasConnection: Bool {
        switch phase {
        case .idle, .waiting, .ended: false
        case .connecting, .awaitingChallenge, .awaitingWelcome, .open: true
        }
    }

    private mutating func connect(now: Instant) -> [LinkClientAction] {
        phase = .connecting(until: now + ClientLimits.handshake)
        return [.connect]
    }

    private mutating func receive(
        _ frame: LinkGatewayFrame, isProven: Bool, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [LinkClientAction] {
        switch (phase, frame) {
        case (_, .close(let close)): return closed(close, now: now, using: &random)
        case (.awaitingChallenge(let until), .challenge(let challenge)):
            guard challenge.version == WireLimits.version else {
                return lose(.violated("it speaks another version"), now: now, using: &random)
            }
            phase = .awaitingWelcome(until: until)
            return [.prove(LinkLoginFrame(appID: appID))]
        case (.awaitingWelcome, .welcome(let welcome)):
            guard isProven else { return lose(.unproven, now: now, using: &random) }
            return open(welcome, now: now)
        case (.open(let opening), .answer(let answer)): return take(answer, opening, now: now, using: &random)
        case (.open, .ping):
            update { $0.lastSent = now }
            return [.send(.pong)]
        case (.open, .pong), (.open, .unknownSkippable): return []
        case (_, .challenge), (_, .welcome), (_, .answer), (_, .ping), (_, .pong), (_, .unknownSkippable):
            return lose(.violated("a frame came out of order"), now: now, using: &random)
        }
    }

    private mutating func open(_ welcome: LinkWelcomeFrame, now: Instant) -> [LinkClientAction] {
        let seconds = Int64(min(welcome.keepAlive, 86_400))
        phase = .open(
            Opening(
                begin: now, keepAlive: .seconds(seconds), window: welcome.window, windowBytes: welcome.windowBytes,
                lastSent: now))
        return [.tell(.opened(window: welcome.window))] + sendMore(now: now)
    }

    /// Whether one more push of any size could be sent. While none can, the next answer is what is waited for.
    private func hasRoom(_ opening: Opening) -> Bool {
        UInt64(queue.sent) < opening.window
            && UInt64(queue.sentBytes) + UInt64(Limits.linkFrameBytes) <= opening.windowBytes
    }

    private mutating func sendMore(now: Instant) -> [LinkClientAction] {
        guard case .open(let opening) = phase else { return [] }
        let actions = queue.next(window: opening.window, windowBytes: opening.windowBytes, now: now)
            .map { LinkClientAction.push($0.frame) }
        if !actions.isEmpty { update { $0.lastSent = now } }
        return actions
    }

    private mutating func take(
        _ answer: LinkAnswerFrame, _ opening: Opening, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [LinkClientAction] {
        guard answer.upTo > opening.answered, answer.upTo - opening.answered <= UInt64(queue.sent),
            answer.refusals.allSatisfy({ $0.number > opening.answered })
        else { return lose(.violated("it answered what was not asked"), now: now, using: &random) }
        update { $0.answered = answer.upTo }
        var actions: [LinkClientAction] = []
        var accepted = 0
        var refusals = answer.refusals[...]
        for number in opening.answered + 1...answer.upTo {
            if let refusal = refusals.first, refusal.number == number {
                refusals.removeFirst()
                if let push = queue.refused(code: refusal.code, now: now, using: &random) {
                    actions.append(.tell(.refused(push, code: refusal.code, text: refusal.text)))
                }
            } else if queue.accepted(now: now) {
                accepted += 1
            }
        }
        if accepted > 0 { actions.append(.tell(.accepted(accepted))) }
        return actions + sendMore(now: now) + finishIfDone()
    }

    private mutating func finishIfDone() -> [LinkClientAction] {
        guard isInputEnded, queue.count == 0, phase != .ended else { return [] }
        let close: [LinkClientAction] = hasConnection ? [.close] : []
        phase = .ended
        return close + [.tell(.finished)]
    }

    private mutating func closed(
        _ frame: CloseFrame, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [LinkClientAction] {
        let reason = OfflineReason.closed(frame.code, text: frame.text)
        switch frame.code.duty {
        case .reconnectWithBackoff, .reconnectAtOnce:
            let asked = Duration.milliseconds(Int64(clamping: frame.retryAfter))
            return lose(reason, retryAfter: asked, now: now, using: &random)
        // The duties of a device say nothing to a backend but that coming back is of no use.
        case .registerAnew, .stopUntilForeground, .stop: return stop(reason)
        }
    }

    /// Ends the link and comes back with back-off.
    private mutating func lose(
        _ reason: OfflineReason, retryAfter: Duration = .zero, now: Instant,
        using random: inout some RandomNumberGenerator, closing: Bool = true
    ) -> [LinkClientAction] {
        if case .open(let opening) = phase { backoff.sessionEnded(begin: opening.begin, now: now) }
        queue.rewind(now: now)
        let delay = backoff.next(retryAfter: retryAfter, using: &random)
        phase = .waiting(until: now + delay)
        return (closing ? [.close] : []) + [.tell(.lost(reason, again: delay))]
    }

    private mutating func stop(_ reason: OfflineReason?) -> [LinkClientAction] {
        guard phase != .ended else { return [] }
        let close: [LinkClientAction] = hasConnection ? [.close] : []
        phase = .ended
        return close + [.tell(.stopped(reason, unanswered: queue.all))]
    }

    private mutating func timerFired(
        now: Instant, using random: inout some RandomNumberGenerator
    ) -> [LinkClientAction] {
        guard let deadline, now >= deadline else { return [] }
        switch phase {
        case .idle, .ended: return []
        case .waiting: return connect(now: now)
        case .connecting, .awaitingChallenge, .awaitingWelcome: return lose(.noAnswer, now: now, using: &random)
        case .open(let opening):
            if let askedAt = opening.askedAt, now >= askedAt + ClientLimits.answer {
                return lose(.noAnswer, now: now, using: &random)
            }
            let actions = sendMore(now: now)
            guard actions.isEmpty, opening.askedAt == nil, now >= opening.lastSent + opening.keepAlive else {
                return actions
            }
            update {
                $0.lastSent = now
                $0.askedAt = now
            }
            return [.send(.ping)]
        }
    }

    private mutating func update(_ change: (inout Opening) -> Void) {
        guard case .open(var opening) = phase else { return }
        change(&opening)
        phase = .open(opening)
    }
}
