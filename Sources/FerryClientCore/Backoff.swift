package import FerryCore

/// When to come back after a connection was lost or closed: a random part of a span that doubles from 1 s to 5 min ("full
/// jitter": many clients that were cut off together do not come back together), after what the gateway asked for.
package struct Backoff: Hashable, Sendable {
    /// Attempts since the last session that lasted; the span stops growing long before this could overflow.
    package private(set) var failures: Int = 0
    /// When a close last sent the client back at once.
    private var lastAtOnce: Instant?

    package init() {}

    /// The wait after one more failure.
    package mutating func next(
        retryAfter: Duration, using random: inout some RandomNumberGenerator
    ) -> Duration {
        let doublings = min(failures, 9)
        failures = min(failures + 1, 10)
        let span = min(ClientLimits.backoffFirst * (1 << doublings), ClientLimits.backoffMaximum)
        let jitter = Int64.random(in: 0...span.inMilliseconds, using: &random)
        return Self.bounded(retryAfter) + .milliseconds(jitter)
    }

    /// The wait after a close whose duty is "at once": none beyond `retryAfter`, but a second time within a minute as
    /// after any failure.
    package mutating func atOnce(
        now: Instant, retryAfter: Duration, using random: inout some RandomNumberGenerator
    ) -> Duration {
        if let lastAtOnce, now - lastAtOnce < ClientLimits.atOnceAgain {
            return next(retryAfter: retryAfter, using: &random)
        }
        lastAtOnce = now
        return Self.bounded(retryAfter)
    }

    /// A session ended that began at `begin`.
    package mutating func sessionEnded(begin: Instant, now: Instant) {
        if now - begin >= ClientLimits.backoffReset { failures = 0 }
    }

    /// What a gateway asks for, so that none can send its clients away for good.
    package static func bounded(_ retryAfter: Duration) -> Duration {
        min(max(retryAfter, .zero), ClientLimits.retryAfterMaximum)
    }
}
