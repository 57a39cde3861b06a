internal import FerryIO

/// The gateway goes, and comes back: every device wants in again at the same moment, harder than any client of ours would,
/// which waits a random time and longer after each try.
extension BenchLoad {
    /// From the first device that reached the new gateway to the last that was welcomed.
    struct Return {
        var seconds: Double
        /// Connections that were begun for it.
        var tries: UInt64
    }

    private static var gatewayAwayAtMost: UInt64 { 120_000_000_000 }
    private static var attachedWithin: UInt64 { 120_000_000_000 }
    private static var pause: UInt64 { 100_000_000 }

    /// Returns when no device has a connection any more.
    mutating func loseGateway() throws(BenchFailure) {
        phase = "waiting for the gateway to go"
        returning = []
        let end = BenchClock.nanoseconds + Self.gatewayAwayAtMost
        while openSockets > 0 && !isStopped {
            lastMove = now
            try step(milliseconds: 20)
            guard now < end else { throw BenchFailure(sentence: "the gateway was to be killed, and is still there") }
        }
    }

    /// Tries with one device until it reaches a gateway, then with all others at once, until all are welcomed.
    mutating func comeBack() throws(BenchFailure) -> Return {
        phase = "waiting for a gateway"
        plan = .stay
        settled = 0
        returning = []
        let end = BenchClock.nanoseconds + Self.gatewayAwayAtMost
        var tries: UInt64 = 0
        // A connection that is refused may look open at first; a challenge is a gateway's.
        while devices[0].phase != .asked && devices[0].phase != .online && !isStopped {
            lastMove = now
            if devices[0].phase == .away { try connect(0) }
            returning = []
            BenchClock.pause(nanoseconds: 5_000_000)
            try step(milliseconds: 0)
            guard now < end else { throw BenchFailure(sentence: "no gateway came back") }
        }
        phase = "coming back"
        setbacks = BenchProblems()
        let began = BenchClock.nanoseconds
        tries += UInt64(devices.count)
        for index in 1..<max(1, devices.count) {
            try connect(index)
            if index % 256 == 0 { try step(milliseconds: 0) }
        }
        // Whoever is refused tries again, all of them together.
        var nextTry = began + Self.pause
        while settled < devices.count && !isStopped {
            try step(milliseconds: 5)
            if now >= nextTry, let again = returning, !again.isEmpty {
                returning = []
                tries += UInt64(again.count)
                for index in again { try connect(index) }
                nextTry = now + Self.pause
            }
            guard now < began + Self.attachedWithin else {
                throw BenchFailure(
                    sentence:
                        "\(devices.count - settled) devices are not attached \(Self.attachedWithin / 1_000_000_000) "
                        + "seconds after the gateway came back" + problems.sentence)
            }
        }
        return Return(seconds: Double(BenchClock.nanoseconds - began) / 1e9, tries: tries)
    }

    /// Waits for what was kept. From now on a loss is a failure again.
    mutating func collect() throws(BenchFailure) {
        phase = "collecting"
        while tally.outstanding > 0 && !isStopped {
            try step(milliseconds: 20)
        }
        let isWithout = returning?.isEmpty == false
        returning = nil
        if isWithout { throw BenchFailure(sentence: "devices were lost again while they collected") }
    }
}
