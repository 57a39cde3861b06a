private import FerryCore
private import FerrySession
private import FerryTestSupport
internal import Testing

/// Silence under short times: keep-alive 6 ms (so 9 until its end), ack deadline 4 ms (probe at 2), progress 7 ms.
struct KeepAliveReachabilityTests {
    private enum Step: String, CaseIterable {
        case heard, sent, progressed, emptied, stopped, wait
    }

    /// The machine beside what it stands for, in plain words.
    private struct World: Hashable {
        var machine: KeepAlive
        var now: Int64 = 0
        var heard: Int64 = 0
        var inFlightSince: Int64?
        var progress: Int64?
        var isProbed = false
        var isOver = false
    }

    private static var policy: SessionPolicy {
        var policy = SessionPolicy()
        policy.ackDeadline = .milliseconds(4)
        policy.progressDeadline = .milliseconds(7)
        return policy
    }

    private static func fresh() -> KeepAlive {
        KeepAlive(interval: .milliseconds(6), now: Instant(milliseconds: 0))
    }

    /// What silence means now, told from the plain facts.
    private static func expected(_ world: World) -> KeepAlive.Verdict {
        if let since = world.inFlightSince, let progress = world.progress {
            if world.now >= max(since, world.heard) + 4 { return .ackDeadlineExpired }
            if world.now >= progress + 7 { return .nothingAcknowledged }
            if !world.isProbed && world.now >= max(since, world.heard) + 2 { return .probe }
        }
        return world.now >= world.heard + 9 ? .keepAliveExpired : .fine
    }

    /// A driver sets no timer where the machine says that its deadline came no closer; a wrong word would be a silent peer that
    /// nobody looks at.
    private static func checkingHaste(
        _ machine: inout KeepAlive, _ change: (inout KeepAlive) -> Bool
    ) throws(Violation) {
        let before = machine.deadline(policy)
        let mayBeCloser = change(&machine)
        try Violation.unless(
            mayBeCloser || machine.deadline(policy) >= before,
            "the deadline came closer than \(before), and nobody was told")
    }

    @Test func `Silence is judged by the last byte and the last progress in every reachable state`() {
        let search = ReachabilitySearch<World, Step>(
            events: { $0.isOver || $0.now > 24 ? [] : Step.allCases },
            step: { world, step throws(Violation) in
                let now = Instant(milliseconds: world.now)
                switch step {
                case .heard:
                    try Self.checkingHaste(&world.machine) { $0.heard(now: now) }
                    (world.heard, world.isProbed) = (world.now, false)
                case .sent:
                    try Self.checkingHaste(&world.machine) { $0.sent(now: now) }
                    if world.inFlightSince == nil { (world.inFlightSince, world.progress) = (world.now, world.now) }
                case .progressed, .emptied:
                    // An ack is a byte too.
                    try Self.checkingHaste(&world.machine) { $0.heard(now: now) }
                    try Self.checkingHaste(&world.machine) { $0.progressed(isEmpty: step == .emptied, now: now) }
                    (world.heard, world.isProbed) = (world.now, false)
                    world.progress = step == .emptied ? nil : world.now
                    world.inFlightSince = step == .emptied ? nil : world.inFlightSince ?? world.now
                case .stopped:
                    world.machine.stopWaiting()
                    (world.inFlightSince, world.progress, world.isProbed) = (nil, nil, false)
                case .wait: world.now += 1
                }
                let expected = Self.expected(world)
                let deadline = world.machine.deadline(Self.policy)
                let verdict = world.machine.check(now: Instant(milliseconds: world.now), policy: Self.policy)
                try Violation.unless(verdict == expected, "\(verdict) instead of \(expected) at \(world.now)")
                try Violation.unless(
                    verdict == .fine || deadline.milliseconds <= world.now, "the deadline \(deadline) came too late")
                if verdict == .probe { world.isProbed = true }
                world.isOver = verdict != .fine && verdict != .probe
            })
        let report = search.run(from: World(machine: Self.fresh()), limit: 20_000)
        #expect(report.violation == nil, "\(report)")
        #expect(report.states > 1_000)
    }

    @Test func `Silence means at each time what the table says`() {
        var table = MatrixTable(title: "KeepAlive: interval 6 ms, ack deadline 4 ms, progress deadline 7 ms")
        let states: [(name: String, steps: [(Int64, Step)])] = [
            ("idle", []),
            ("heard at 2", [(2, .heard)]),
            ("sent at 0", [(0, .sent)]),
            ("sent at 0, heard at 3", [(0, .sent), (3, .heard)]),
            ("sent at 0, heard at 3 and 6", [(0, .sent), (3, .heard), (6, .heard)]),
            ("sent at 0, progress at 3", [(0, .sent), (3, .heard), (3, .progressed)]),
            ("sent at 0, all acknowledged at 3", [(0, .sent), (3, .heard), (3, .emptied)]),
            ("sent at 0, background at 1", [(0, .sent), (1, .stopped)]),
        ]
        for state in states {
            table.begin(state: state.name, detail: "")
            for time in 0...16 as ClosedRange<Int64> where time >= state.steps.last?.0 ?? 0 {
                var machine = Self.fresh()
                for (at, step) in state.steps {
                    let now = Instant(milliseconds: at)
                    switch step {
                    case .heard: machine.heard(now: now)
                    case .sent: machine.sent(now: now)
                    case .progressed: machine.progressed(isEmpty: false, now: now)
                    case .emptied: machine.progressed(isEmpty: true, now: now)
                    case .stopped: machine.stopWaiting()
                    case .wait: break
                    }
                }
                let first = machine.check(now: Instant(milliseconds: time), policy: Self.policy)
                let second = machine.check(now: Instant(milliseconds: time), policy: Self.policy)
                table.add(event: "at \(time) ms", actions: ["\(first)", "again \(second)"], next: nil)
            }
        }
        let differences = table.differences(name: "keep-alive")
        #expect(differences.isEmpty, "\(differences)")
    }
}
