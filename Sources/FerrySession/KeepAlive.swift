package import FerryCore

/// Silence on one connection: how long it may last, when to probe, and what its end is called. Any byte from the device is a
/// sign of life; acknowledgements are progress.
package struct KeepAlive: Hashable, Sendable, BitwiseCopyable {
    package enum Verdict: Hashable, Sendable {
        case fine
        /// Ask for a sign of life.
        case probe
        /// No byte for one and a half keep-alive intervals.
        case keepAliveExpired
        /// No byte for the ack deadline although messages are in flight.
        case ackDeadlineExpired
        /// Signs of life, but no acknowledgement for too long.
        case nothingAcknowledged
    }

    private var lastHeard: Instant
    /// What the welcome granted, in milliseconds.
    private let interval: UInt32
    /// Since when something is in flight without progress. This and the next count while `isWaiting`, and are read near
    /// `lastHeard`: silence ends a connection long before they could be mistaken.
    private var waitingSince: LowInstant
    private var lastProgress: LowInstant
    /// Something is in flight.
    private var isWaiting = false
    private var isProbed = false

    /// What all connections share, the policy, is passed in where it is needed: it costs no memory here.
    package init(interval: Duration, now: Instant) {
        // What is longer than the type holds, 49 days, is cut to that.
        self.interval = UInt32(clamping: max(1, interval.inMilliseconds))
        lastHeard = now
        waitingSince = LowInstant(.distantPast)
        lastProgress = LowInstant(.distantPast)
    }

    /// The last sign of life.
    var reference: Instant { lastHeard }

    /// Answers whether the deadline may have come closer: only in that case must it be looked at anew.
    @discardableResult
    package mutating func heard(now: Instant) -> Bool {
        // A probe is asked for sooner after a sign of life than patience ends after the one before.
        defer { isProbed = false }
        lastHeard = now
        if isWaiting { waitingSince = LowInstant(now) }
        return isProbed
    }

    /// Something was sent that wants an acknowledgement. Answers as `heard` does.
    @discardableResult
    package mutating func sent(now: Instant) -> Bool {
        guard !isWaiting else { return false }
        isWaiting = true
        waitingSince = LowInstant(now)
        lastProgress = LowInstant(now)
        return true
    }

    /// Something was acknowledged; `isEmpty` when nothing is in flight any more. Answers as `heard` does.
    @discardableResult
    package mutating func progressed(isEmpty: Bool, now: Instant) -> Bool {
        guard !isEmpty else {
            stopWaiting()
            return false
        }
        let hastens = !isWaiting || isProbed
        isWaiting = true
        waitingSince = LowInstant(now)
        lastProgress = LowInstant(now)
        isProbed = false
        return hastens
    }

    /// Nothing is waited for any more: all is acknowledged, or the session ended and its connection did not.
    package mutating func stopWaiting() {
        isWaiting = false
        isProbed = false
        // What does not count is not told apart.
        waitingSince = LowInstant(.distantPast)
        lastProgress = LowInstant(.distantPast)
    }

    package mutating func check(now: Instant, policy: SessionPolicy) -> Verdict {
        if isWaiting {
            let since = waitingSince.nearest(to: lastHeard)
            let patience = Self.ackDeadline(policy)
            if now >= since.advanced(byMilliseconds: patience) { return .ackDeadlineExpired }
            if now >= progressEnd(policy) { return .nothingAcknowledged }
            if !isProbed && now >= since.advanced(byMilliseconds: patience / 2) {
                isProbed = true
                return .probe
            }
        }
        return now >= keepAliveEnd ? .keepAliveExpired : .fine
    }

    /// When `check` can first say anything but `.fine`.
    package func deadline(_ policy: SessionPolicy) -> Instant {
        guard isWaiting else { return keepAliveEnd }
        let patience = Self.ackDeadline(policy)
        let silence = waitingSince.nearest(to: lastHeard)
            .advanced(byMilliseconds: isProbed ? patience : patience / 2)
        return min(min(silence, progressEnd(policy)), keepAliveEnd)
    }

    /// In milliseconds.
    private static func ackDeadline(_ policy: SessionPolicy) -> Int64 { max(2, policy.ackDeadlineMilliseconds) }

    private func progressEnd(_ policy: SessionPolicy) -> Instant {
        lastProgress.nearest(to: lastHeard).advanced(byMilliseconds: max(2, policy.progressDeadlineMilliseconds))
    }

    private var keepAliveEnd: Instant {
        lastHeard.advanced(byMilliseconds: Int64(interval) + Int64(interval) / 2)
    }
}
