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
    /// Since when something is in flight without progress; `.distantFuture` when nothing is in flight.
    private var waitingSince = Instant.distantFuture
    private var lastProgress = Instant.distantFuture
    /// What the welcome granted, in milliseconds, as the next two: small, since there is one for each connection.
    private let interval: UInt32
    private let ackDeadline: UInt32
    private let progressDeadline: UInt32
    private var isProbed = false

    package init(interval: Duration, policy: SessionPolicy, now: Instant) {
        // What is longer than the type holds, 49 days, is cut to that.
        self.interval = UInt32(clamping: max(1, interval.inMilliseconds))
        ackDeadline = UInt32(clamping: max(2, policy.ackDeadline.inMilliseconds))
        progressDeadline = UInt32(clamping: max(2, policy.progressDeadline.inMilliseconds))
        lastHeard = now
    }

    package mutating func heard(now: Instant) {
        lastHeard = now
        isProbed = false
        if waitingSince != .distantFuture { waitingSince = now }
    }

    /// Something was sent that wants an acknowledgement.
    package mutating func sent(now: Instant) {
        if waitingSince == .distantFuture {
            waitingSince = now
            lastProgress = now
        }
    }

    /// Something was acknowledged; `isEmpty` when nothing is in flight any more.
    package mutating func progressed(isEmpty: Bool, now: Instant) {
        waitingSince = isEmpty ? .distantFuture : now
        lastProgress = isEmpty ? .distantFuture : now
        isProbed = false
    }

    /// Nothing is waited for any more: the session ended, its connection did not.
    package mutating func stopWaiting() {
        waitingSince = .distantFuture
        lastProgress = .distantFuture
        isProbed = false
    }

    package mutating func check(now: Instant) -> Verdict {
        if waitingSince != .distantFuture {
            if now >= waitingSince + .milliseconds(ackDeadline) { return .ackDeadlineExpired }
            if now >= lastProgress + .milliseconds(progressDeadline) { return .nothingAcknowledged }
            if !isProbed && now >= waitingSince + .milliseconds(ackDeadline / 2) {
                isProbed = true
                return .probe
            }
        }
        return now >= keepAliveEnd ? .keepAliveExpired : .fine
    }

    /// When `check` can first say anything but `.fine`.
    package var deadline: Instant {
        guard waitingSince != .distantFuture else { return keepAliveEnd }
        let silence = waitingSince + .milliseconds(isProbed ? ackDeadline : ackDeadline / 2)
        return min(min(silence, lastProgress + .milliseconds(progressDeadline)), keepAliveEnd)
    }

    private var keepAliveEnd: Instant { lastHeard + .milliseconds(Int64(interval) + Int64(interval) / 2) }
}
