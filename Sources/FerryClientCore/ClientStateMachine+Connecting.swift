internal import FerryCore
internal import FerryWire

/// Coming and going: attempts, their end, what the app's life and the gateway's close codes ask for.
extension ClientStateMachine {
    mutating func connect(now: Instant) -> [ClientAction] {
        phase = .connecting(until: now + ClientLimits.handshake)
        return save() + [.connect]
    }

    /// What to save before anything that follows, if there is news.
    mutating func save() -> [ClientAction] {
        guard isUnsaved else { return [] }
        isUnsaved = false
        return [.save(record)]
    }

    mutating func sleep() -> [ClientAction] {
        phase = .asleep
        return []
    }

    /// Ends a connection for a reason that is no close, and comes back with back-off.
    mutating func lose(
        _ reason: OfflineReason, now: Instant, using random: inout some RandomNumberGenerator, closing: Bool = true
    ) -> [ClientAction] {
        endSession(now: now)
        let close = closing ? [ClientAction.close(flushing: false)] : []
        return close + comeBack(reason, retryAfter: .zero, now: now, using: &random)
    }

    /// The gateway said `close`.
    mutating func closed(
        _ frame: CloseFrame, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        endSession(now: now)
        let reason = OfflineReason.closed(frame.code, text: frame.text)
        let asked = Duration.milliseconds(Int64(clamping: frame.retryAfter))
        let retryAfter = Backoff.bounded(asked)
        notBefore = now + retryAfter
        let close = [ClientAction.close(flushing: false)]
        switch frame.code.duty {
        case .reconnectWithBackoff: return close + comeBack(reason, retryAfter: retryAfter, now: now, using: &random)
        case .reconnectAtOnce: return close + comeBackAtOnce(reason, retryAfter: retryAfter, now: now, using: &random)
        case .registerAnew:
            // The installation key too: it would bring back the identity that was refused.
            record = ClientRecord()
            window = ReceiveWindow(lastSeq: .zero, policy: configuration.acknowledging)
            isUnsaved = true
            return close + save() + comeBackAtOnce(reason, retryAfter: retryAfter, now: now, using: &random)
        case .stopUntilForeground:
            phase = .asleep
            return close + [.tell(.offline(reason, next: .inForeground))]
        case .stop:
            phase = .stopped
            return close + [
                .tell(.offline(reason, next: .never)), .tell(.stopped(.closed(frame.code, text: frame.text))),
            ]
        }
    }

    private mutating func endSession(now: Instant) {
        if case .attached(let attachment) = phase { backoff.sessionEnded(begin: attachment.begin, now: now) }
    }

    private mutating func comeBack(
        _ reason: OfflineReason, retryAfter: Duration, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        wait(backoff.next(retryAfter: retryAfter, using: &random), reason, now: now)
    }

    private mutating func comeBackAtOnce(
        _ reason: OfflineReason, retryAfter: Duration, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        wait(backoff.atOnce(now: now, retryAfter: retryAfter, using: &random), reason, now: now)
    }

    private mutating func wait(_ delay: Duration, _ reason: OfflineReason, now: Instant) -> [ClientAction] {
        guard isInForeground else {
            phase = .asleep
            return [.tell(.offline(reason, next: .inForeground))]
        }
        phase = .waiting(until: now + delay)
        return [.tell(.offline(reason, next: .after(delay)))]
    }

    mutating func enterForeground(now: Instant) -> [ClientAction] {
        isInForeground = true
        switch phase {
        case .idle, .stopped, .connecting, .awaitingChallenge, .awaitingRegistered, .awaitingWelcome: return []
        case .waiting, .asleep:
            // A person is looking, so the rest of a random wait is not worth it; what a gateway asked for is.
            guard notBefore <= now else {
                phase = .waiting(until: notBefore)
                return []
            }
            return connect(now: now)
        case .attached(let attachment):
            guard attachment.isInBackground else { return [] }
            updateAttachment {
                $0.isInBackground = false
                $0.resumesAwaited += 1
            }
            // The number acknowledges, so it is saved first.
            return save() + send(.foreground(ForegroundFrame(lastSeq: record.lastSeq)), now: now, expectingLife: true)
        }
    }

    /// A session is for an app that can be seen. What is only on its way to one is given up.
    mutating func enterBackground(now: Instant) -> [ClientAction] {
        isInForeground = false
        switch phase {
        case .idle, .stopped, .asleep: return []
        case .waiting: return sleep()
        case .connecting, .awaitingChallenge, .awaitingRegistered, .awaitingWelcome:
            phase = .asleep
            return [.close(flushing: false)]
        case .attached(let attachment):
            guard !attachment.isInBackground else { return [] }
            let actions = acknowledge(now: now, atOnce: true)
            updateAttachment { $0.isInBackground = true }
            return actions + send(.background, now: now)
        }
    }

    /// Leaves for good: the last ack, then `bye`, so that the device counts as offline at once.
    mutating func stop() -> [ClientAction] {
        switch phase {
        case .stopped: return []
        case .idle, .waiting, .asleep:
            phase = .stopped
            return save() + [.tell(.stopped(.requested))]
        case .connecting, .awaitingChallenge, .awaitingRegistered, .awaitingWelcome:
            phase = .stopped
            return save() + [.close(flushing: false), .tell(.stopped(.requested))]
        case .attached(let attachment):
            let actions = acknowledge(now: attachment.lastSent, atOnce: true)
            phase = .stopped
            return actions + save() + [.send(.bye), .close(flushing: true), .tell(.stopped(.requested))]
        }
    }
}
