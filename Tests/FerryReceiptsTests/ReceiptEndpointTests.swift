internal import FerryCore
internal import FerryReceipts
private import FerryTestSupport
internal import Testing

/// All that can happen to an endpoint, under small bounds.
@Suite struct ReceiptEndpointTests {
    private typealias Event = ReceiptEndpoint.Event

    private static let policy = {
        var policy = ReceiptPolicy()
        policy.age = .seconds(6)
        policy.firstPause = .seconds(1)
        policy.longestPause = .seconds(4)
        return policy
    }()

    private enum Step: Hashable, CustomStringConvertible {
        case event(Event)
        case second

        var description: String {
            switch self {
            case .event(let event): "\(event)"
            case .second: "a second passes"
            }
        }
    }

    /// What the world has seen of it.
    private struct World: Hashable {
        var endpoint: ReceiptEndpoint
        var now = Instant(milliseconds: 0)
        /// Of offers without a last word, the time of the latest receipt.
        var open: [UInt64: Instant] = [:]
        var offered: UInt64 = 0
        var posting: UInt64?
        var quietUntil = Instant.distantPast

        mutating func take(_ step: Step, isLenient: Bool) throws(Violation) {
            switch step {
            case .second: now = now + .seconds(1)
            case .event(let event): try take(event, isLenient: isLenient)
            }
        }

        private mutating func take(_ event: Event, isLenient: Bool) throws(Violation) {
            if case .offered(let offer) = event {
                offered = offer.id
                open[offer.id] = offer.at
            }
            let wasPosting = posting
            switch event {
            case .answered, .failed: posting = nil
            case .offered, .timePassed: break
            }
            var actions: [ReceiptEndpoint.Action] = []
            endpoint.handle(event, now: now, policy: policy, random: 0, actions: &actions)
            for action in actions {
                switch action {
                case .post(let id):
                    try Violation.unless(posting == nil, "\(id) is posted beside another")
                    try Violation.unless(open[id] != nil, "\(id) is posted after its last word")
                    try Violation.unless(now >= quietUntil, "\(id) is posted within the pause")
                    posting = id
                case .tell(let id, .delayed(let failures, let until)):
                    try Violation.unless(id == wasPosting, "\(id) is delayed without a try")
                    try Violation.unless(failures > 0 && until > now, "a pause that is none")
                    try Violation.unless(until <= now + .seconds(4), "a pause that is too long")
                    quietUntil = until
                case .tell(let id, let progress):
                    let at = open.removeValue(forKey: id)
                    try Violation.unless(at != nil, "\(id) has two last words")
                    if progress == .tooOld {
                        try Violation.unless(at.map { $0 + policy.age < now } ?? false, "\(id) is not too old")
                    } else {
                        try Violation.unless(id == wasPosting, "\(id) is told without a try")
                        try Violation.unless(
                            event.isEnd(isLenient: isLenient), "\(id) ends with \(progress) at \(event)")
                    }
                }
            }
            try Violation.unless(endpoint.isPosting == (posting != nil), "posting is forgotten")
            // Nothing may be left lying: who has something to do is posting, or knows when to go on.
            try Violation.unless(open.isEmpty || posting != nil || endpoint.deadline != nil, "nothing moves")
        }

        func next(_ statuses: [Int]) -> [Step] {
            var steps: [Step] =
                now < Instant(milliseconds: 12_000) ? [.second, .event(.timePassed)] : [.event(.timePassed)]
            if offered < 3 {
                steps.append(.event(.offered(ReceiptEndpoint.Offer(id: offered + 1, at: now))))
                steps.append(
                    .event(
                        .offered(
                            ReceiptEndpoint.Offer(id: offered + 1, at: now, failures: 2, notBefore: now + .seconds(2))))
                )
            }
            if posting != nil {
                steps.append(.event(.failed))
                for status in statuses { steps.append(.event(.answered(status: status, retryAfter: 0))) }
            }
            return steps
        }
    }

    @Test(arguments: [true, false])
    func `one request at a time, none within a pause, and one last word for each batch`(retries: Bool) {
        let search = ReachabilitySearch<World, Step>(
            events: { $0.next([200, 302, 404, 429, 500]) },
            step: { (world: inout World, step: Step) throws(Violation) in try world.take(step, isLenient: !retries) })
        let report = search.run(
            from: World(endpoint: ReceiptEndpoint(retriesServerErrors: retries)), limit: Effort.scaled(60_000))
        #expect(report.violation == nil, "\(report)")
        #expect(report.states > 1_000)
    }

    @Test func `pauses double up to the longest, and a good answer ends them`() {
        var endpoint = ReceiptEndpoint(retriesServerErrors: true)
        var now = Instant(milliseconds: 0)
        var policy = ReceiptPolicy()
        policy.longestPause = .seconds(8)
        var actions: [ReceiptEndpoint.Action] = []
        func tell(_ event: Event) {
            actions = []
            endpoint.handle(event, now: now, policy: policy, random: 0, actions: &actions)
        }
        tell(.offered(ReceiptEndpoint.Offer(id: 1, at: now)))
        var pauses: [Int64] = []
        for _ in 0..<6 {
            tell(.failed)
            guard let deadline = endpoint.deadline else { break }
            pauses.append((deadline - now).inMilliseconds)
            now = deadline
            tell(.timePassed)
            #expect(actions == [.post(1)])
        }
        #expect(pauses == [1_000, 2_000, 4_000, 8_000, 8_000, 8_000])
        tell(.answered(status: 200, retryAfter: 0))
        #expect(actions == [.tell(1, .taken)] && endpoint.failures == 0)
    }

    @Test(arguments: [0, 1, 77, UInt64.max]) func `chance shortens a pause to half at most`(random: UInt64) {
        var endpoint = ReceiptEndpoint(retriesServerErrors: true)
        var actions: [ReceiptEndpoint.Action] = []
        let now = Instant(milliseconds: 5)
        let policy = ReceiptPolicy()
        endpoint.handle(
            .offered(ReceiptEndpoint.Offer(id: 1, at: now)), now: now, policy: policy, random: random, actions: &actions
        )
        endpoint.handle(.failed, now: now, policy: policy, random: random, actions: &actions)
        let pause = endpoint.deadline.map { ($0 - now).inMilliseconds } ?? 0
        #expect((500...1_000).contains(pause))
    }

    @Test(arguments: [2, 400, Int64.max, -1]) func `the endpoint's own wish is honoured, up to the longest pause`(
        seconds: Int64
    ) {
        var endpoint = ReceiptEndpoint(retriesServerErrors: true)
        var actions: [ReceiptEndpoint.Action] = []
        let now = Instant(milliseconds: 5)
        let policy = ReceiptPolicy()
        endpoint.handle(
            .offered(ReceiptEndpoint.Offer(id: 1, at: now)), now: now, policy: policy, random: 0, actions: &actions)
        endpoint.handle(
            .answered(status: 503, retryAfter: seconds), now: now, policy: policy, random: 0, actions: &actions)
        let pause = endpoint.deadline.map { ($0 - now).inMilliseconds } ?? 0
        #expect(pause == min(max(1, seconds), 300) * 1_000)
    }

    @Test func `a batch that fails lets another lane's go first`() {
        var endpoint = ReceiptEndpoint(retriesServerErrors: true)
        var actions: [ReceiptEndpoint.Action] = []
        let policy = ReceiptPolicy()
        var now = Instant(milliseconds: 5)
        for id in 1...2 {
            endpoint.handle(
                .offered(ReceiptEndpoint.Offer(id: UInt64(id), at: now)), now: now, policy: policy, random: 0,
                actions: &actions)
        }
        endpoint.handle(.answered(status: 500, retryAfter: 0), now: now, policy: policy, random: 0, actions: &actions)
        now = endpoint.deadline ?? now
        actions = []
        endpoint.handle(.timePassed, now: now, policy: policy, random: 0, actions: &actions)
        #expect(actions == [.post(2)])
    }
}

extension ReceiptEndpoint.Event {
    /// Whether a batch may end here.
    fileprivate func isEnd(isLenient: Bool) -> Bool {
        switch self {
        case .answered(let status, _): isLenient || ![408, 429].contains(status) && status < 500
        case .failed, .offered, .timePassed: false
        }
    }
}
