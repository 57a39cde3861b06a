private import FerryCore
private import FerrySession
internal import FerryTestSupport
internal import Testing

/// All that can happen to a session, millisecond by millisecond, against the promises of its machine.
struct SessionReachabilityTests {
    @Test func `Every reachable state of a session keeps every promise`() {
        let search = ReachabilitySearch<SessionWorld, SessionWorld.Step>(
            events: { $0.steps(until: 15) }, step: { (world, step) throws(Violation) in try world.perform(step) })
        let report = search.run(from: SessionWorld(), limit: Effort.scaled(15_000))
        #expect(report.violation == nil, "\(report)")
        #expect(report.states > 1_000, "\(report)")
    }

    @Test(arguments: Effort.seeds(50))
    func `A session keeps every promise through a long life`(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var world = SessionWorld()
        var path: [SessionWorld.Step] = []
        for round in 0..<300 where world.state != .closed {
            // What ends a session comes late, so that lives are long.
            let steps = world.steps(until: .max).filter { round > 200 || !Self.isFatal($0, in: world.state) }
            guard let step = steps.randomElement(using: &random) else { return }
            path.append(step)
            do {
                try world.perform(step)
            } catch {
                Issue.record("seed \(seed): \(error)\n after\n\(path.map { "  \($0)" }.joined(separator: "\n"))")
                return
            }
        }
        #expect(path.count > 3)
    }

    private static func isFatal(_ step: SessionWorld.Step, in state: SessionStateMachine.State) -> Bool {
        guard case .event(let event) = step else { return false }
        switch event {
        case .unexpectedFrameReceived, .takenOver, .connectionLost, .byeReceived: return true
        case .foregroundReceived: return state == .foreground
        case .bytesReceived, .pingReceived, .pongReceived, .acknowledged, .backgroundReceived,
            .entrySent, .outputBlocked, .timePassed:
            return false
        }
    }
}
