package import FerryCore

/// When an app's endpoint is asked, and what its answers mean: one request at a time, in the order of offers, with a growing
/// pause while it fails. A lane whose batch failed goes behind the others, so that a batch that the endpoint cannot digest
/// holds up its own lane only.
package struct ReceiptEndpoint: Hashable, Sendable {
    /// A batch, as far as this needs to know it.
    package struct Offer: Hashable, Sendable {
        package var id: UInt64
        /// Of its latest receipt.
        package var at: Instant
        package var failures: UInt8
        package var notBefore: Instant

        package init(id: UInt64, at: Instant, failures: UInt8 = 0, notBefore: Instant = .distantPast) {
            self.id = id
            self.at = at
            self.failures = failures
            self.notBefore = notBefore
        }
    }

    package enum Event: Hashable, Sendable {
        case offered(Offer)
        /// The status, 100...999, and the seconds of its Retry-After, 0 where it has none.
        case answered(status: Int, retryAfter: Int64)
        /// There was no answer.
        case failed
        case timePassed
    }

    package enum Action: Hashable, Sendable {
        case post(UInt64)
        case tell(UInt64, ReceiptProgress)
    }

    private enum State: Hashable {
        case idle
        case posting
        case pausing(until: Instant)
    }

    private var state = State.idle
    /// The first is under way while posting.
    private var offers: [Offer] = []
    package private(set) var failures: UInt8 = 0
    private let retriesServerErrors: Bool

    package init(retriesServerErrors: Bool) { self.retriesServerErrors = retriesServerErrors }

    /// When `timePassed` is to be told; nil: there is nothing to wait for.
    package var deadline: Instant? {
        if case .pausing(let until) = state { until } else { nil }
    }

    package var isPosting: Bool { state == .posting }

    /// `random` decides how much a pause is shortened.
    package mutating func handle(
        _ event: Event, now: Instant, policy: ReceiptPolicy, random: UInt64, actions: inout [Action]
    ) {
        switch (event, state) {
        case (.offered(let offer), .idle):
            offers.append(offer)
            if failures == 0, offer.failures > 0 {
                // From a life before. A time that is too far away is none of this gateway's.
                failures = offer.failures
                let until = min(offer.notBefore, now + policy.longestPause)
                if until > now {
                    state = .pausing(until: until)
                    return
                }
            }
            postNext(now, policy, &actions)
        case (.offered(let offer), .posting):
            offers.append(offer)
            failures = max(failures, offer.failures)
        case (.offered(let offer), .pausing(let until)):
            offers.append(offer)
            failures = max(failures, offer.failures)
            // What a life before knew of one lane holds for all.
            state = .pausing(until: max(until, min(offer.notBefore, now + policy.longestPause)))
        case (.answered(let status, let retryAfter), .posting):
            switch verdict(status) {
            case .again: pause(now, policy, random, atLeast: retryAfter, &actions)
            case .told(let progress):
                failures = 0
                finish(progress, &actions)
                postNext(now, policy, &actions)
            }
        case (.failed, .posting): pause(now, policy, random, atLeast: 0, &actions)
        case (.timePassed, .pausing(let until)) where now >= until: postNext(now, policy, &actions)
        // An answer that nobody waits for is none; and time passes for all.
        case (.answered, .idle), (.answered, .pausing), (.failed, .idle), (.failed, .pausing), (.timePassed, .idle),
            (.timePassed, .posting), (.timePassed, .pausing):
            return
        }
    }

    private enum Verdict {
        case told(ReceiptProgress)
        case again
    }

    private func verdict(_ status: Int) -> Verdict {
        switch status {
        case 200...299: .told(.taken)
        case 408, 429, 500...: retriesServerErrors ? .again : .told(.refused(status: status))
        default: .told(.refused(status: status))
        }
    }

    private mutating func finish(_ progress: ReceiptProgress, _ actions: inout [Action]) {
        actions.append(.tell(offers.removeFirst().id, progress))
        state = .idle
    }

    private mutating func postNext(_ now: Instant, _ policy: ReceiptPolicy, _ actions: inout [Action]) {
        state = .idle
        while let next = offers.first {
            guard next.at + policy.age < now else {
                state = .posting
                actions.append(.post(next.id))
                return
            }
            finish(.tooOld, &actions)
        }
    }

    private static let longestRetryAfter: Int64 = 86_400

    private mutating func pause(
        _ now: Instant, _ policy: ReceiptPolicy, _ random: UInt64, atLeast seconds: Int64, _ actions: inout [Action]
    ) {
        failures = failures == .max ? .max : failures + 1
        let first = max(1, policy.firstPause.inMilliseconds)
        let longest = max(first, policy.longestPause.inMilliseconds)
        let doublings = min(Int64(failures) - 1, 40)
        let whole = first > longest >> doublings ? longest : first << doublings
        let shortened = whole - Int64(random % UInt64(whole / 2 + 1))
        let wait = max(shortened, min(longest, min(max(0, seconds), Self.longestRetryAfter) * 1_000))
        let until = now.advanced(byMilliseconds: wait)
        state = .pausing(until: until)
        let failed = offers.removeFirst()
        offers.append(failed)
        actions.append(.tell(failed.id, .delayed(failures: failures, until: until)))
    }
}
