private import FerryCore
private import FerryRouting
private import FerryTestSupport
internal import Testing

/// A window of 2 messages and 5 bytes over a stream of five entries of 0, 2, 3 and 9 bytes.
struct AckWindowReachabilityTests {
    private enum Step: Hashable, CustomStringConvertible {
        case send(bytes: UInt32)
        case acknowledge(UInt64)
        case reattach(sameConnection: Bool)

        var description: String {
            switch self {
            case .send(let bytes): "send \(bytes)"
            case .acknowledge(let seq): "ack \(seq)"
            case .reattach(let same): same ? "new session, same connection" : "new connection"
            }
        }
    }

    private struct World: Hashable {
        var window = AckWindow(messageLimit: 2, byteLimit: 5, acknowledged: .zero)
        var inFlight: [UInt64: UInt32] = [:]
        var sent: UInt64 = 0
        var acknowledged: UInt64 = 0
        /// Highest that the connection was ever sent.
        var told: UInt64 = 0
    }

    private static func steps(_ world: World) -> [Step] {
        guard world.sent < 5 else { return (0...6).map { .acknowledge($0) } + [.reattach(sameConnection: false)] }
        return [0, 2, 3, 9].map { .send(bytes: $0) } + (0...6).map { .acknowledge($0) }
            + [.reattach(sameConnection: true), .reattach(sameConnection: false)]
    }

    private static func perform(_ step: Step, _ world: inout World) throws(Violation) {
        switch step {
        case .send(let bytes):
            let total = world.inFlight.values.reduce(0, +) + bytes
            let fits = world.inFlight.isEmpty || (world.inFlight.count < 2 && total <= 5)
            try Violation.unless(world.window.hasRoom(for: bytes) == fits, "room for \(bytes): \(!fits)")
            guard fits else { return }
            world.sent += 1
            world.told = max(world.told, world.sent)
            world.inFlight[world.sent] = bytes
            world.window.didSend(Seq(world.sent), bytes: bytes)
        case .acknowledge(let seq):
            let expected: AckWindow.Verdict =
                seq > world.told ? .beyondSent : seq > world.acknowledged ? .fresh : .stale
            let verdict = world.window.verdict(on: Seq(seq))
            try Violation.unless(verdict == expected, "ack \(seq) is \(verdict), not \(expected)")
            guard verdict == .fresh else { return }
            for (sent, bytes) in world.inFlight where sent <= seq {
                world.window.release(bytes: bytes)
                world.inFlight[sent] = nil
            }
            world.acknowledged = seq
            world.sent = max(world.sent, seq)
            world.window.didAcknowledge(Seq(seq))
        case .reattach(let isSame):
            world.inFlight = [:]
            world.sent = world.acknowledged
            if !isSame { world.told = world.acknowledged }
            world.window = AckWindow(
                messageLimit: 2, byteLimit: 5, acknowledged: world.window.acknowledged,
                ackBound: isSame ? world.window.ackBound : .zero)
        }
        let window = world.window
        try Violation.unless(Int(window.inFlight) == world.inFlight.count, "\(window.inFlight) in flight")
        try Violation.unless(
            window.inFlightBytes == Int32(world.inFlight.values.reduce(0, +)), "\(window.inFlightBytes) bytes in flight"
        )
        try Violation.unless(
            window.sent == Seq(world.sent) && window.acknowledged == Seq(world.acknowledged), "cursors")
    }

    @Test func `A window knows what is in flight in every reachable state`() {
        let search = ReachabilitySearch<World, Step>(
            events: Self.steps, step: { world, step throws(Violation) in try Self.perform(step, &world) })
        let report = search.run(from: World(), limit: 50_000)
        #expect(report.violation == nil, "\(report)")
        #expect(report.isComplete && report.states > 70)
    }

    @Test func `A window says in each state what the table says`() {
        var table = MatrixTable(title: "AckWindow: 2 messages, 5 bytes")
        let states: [(name: String, steps: [Step])] = [
            ("empty", []),
            ("one of 2 bytes", [.send(bytes: 2)]),
            ("one of 9 bytes", [.send(bytes: 9)]),
            ("two", [.send(bytes: 2), .send(bytes: 3)]),
            ("two, one acknowledged", [.send(bytes: 2), .send(bytes: 3), .acknowledge(1)]),
            ("after background and foreground", [.send(bytes: 2), .send(bytes: 3), .reattach(sameConnection: true)]),
            ("after a new connection", [.send(bytes: 2), .send(bytes: 3), .reattach(sameConnection: false)]),
        ]
        for state in states {
            table.begin(state: state.name, detail: "")
            var world = World()
            for step in state.steps { try? Self.perform(step, &world) }
            for bytes in [0, 2, 3, 9] as [UInt32] {
                let answer = world.window.hasRoom(for: bytes) ? "room" : "no room"
                table.add(event: "entry of \(bytes) bytes", actions: [answer], next: nil)
            }
            for seq in 0...3 as ClosedRange<UInt64> {
                table.add(event: "ack \(seq)", actions: ["\(world.window.verdict(on: Seq(seq)))"], next: nil)
            }
        }
        let differences = table.differences(name: "ack-window")
        #expect(differences.isEmpty, "\(differences)")
    }
}
