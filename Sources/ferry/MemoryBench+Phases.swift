internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import Foundation

/// What a bench in memory measures, and the lines of JSON that tell it.
extension MemoryBench {
    /// Between two of these is what the gateway used for a stretch.
    private struct Mark {
        let nanoseconds = BenchClock.nanoseconds
        let gateway: Double
        let turns: Double
        let tally: BenchTally
    }

    private static let handshakesAtOnce = 512
    static let tick: UInt64 = 16_000_000

    private var mark: Mark { Mark(gateway: gatewaySeconds, turns: turnSeconds, tally: tally) }

    mutating func run() throws(BenchFailure) {
        try openBackend()
        for step in settings.steps where !isStopped {
            var report = BenchReport()
            report.set("mode", "memory")
            report.set("sessions", UInt64(step))
            // Messages of the step before left request ids, which are no session's.
            let (before, bytes) = (attached, ownBytes)
            let registering = mark
            try attach(before..<step)
            tell(registering, &report, "registering", per: step - before)
            try rest()
            report.set("ownBytes", ownBytes, digits: 0)
            report.set("ownBytesPerSession", (ownBytes - bytes) / Double(step - before), digits: 1)
            try messages(step, &report)
            try time(step, &report)
            if step == settings.sessions {
                try storm(step, &report)
                try broadcasts(step, &report)
                try away(step, &report)
            }
            try tellProblems(&report)
            CommandOutput.line(report.finish())
        }
    }

    private func tell(_ before: Mark, _ report: inout BenchReport, _ name: String, per count: Int) {
        let after = mark
        let seconds = Double(after.nanoseconds - before.nanoseconds) / 1e9
        report.begin(name)
        report.set("count", UInt64(count))
        report.set("seconds", seconds)
        report.set("perSecond", Double(count) / seconds, digits: 1)
        report.set("gatewayCpuSecondsPerMillion", (after.gateway - before.gateway) * 1e6 / Double(count), digits: 2)
        report.set("shardCpuSecondsPerMillion", (after.turns - before.turns) * 1e6 / Double(count), digits: 2)
        report.end()
    }

    private func tellProblems(_ report: inout BenchReport) throws(BenchFailure) {
        if tally.refused > 0 || tally.repeats > 0 || problems.failedDevices > 0 {
            throw BenchFailure(sentence: "the run went wrong and measured nothing" + problems.sentence)
        }
    }

    // MARK: - Phases

    /// Brings devices in, a bounded number in their handshakes at once.
    private mutating func attach(_ range: Range<Int>) throws(BenchFailure) {
        var next = range.lowerBound
        let wanted = attached + range.count
        while attached < wanted && !isStopped {
            while next < range.upperBound, handshakes.count < Self.handshakesAtOnce {
                connect(next)
                next += 1
            }
            try turn(wait: 1)
            keepAlives(among: attached)
        }
    }

    /// Lets the store and the timeline finish what they have.
    mutating func rest() throws(BenchFailure) {
        let end = BenchClock.nanoseconds + 300_000_000
        while BenchClock.nanoseconds < end && !isStopped {
            lastMove = BenchClock.nanoseconds
            try turn(wait: 5)
            keepAlives(among: attached)
        }
    }

    private mutating func messages(_ step: Int, _ report: inout BenchReport) throws(BenchFailure) {
        try publishAll(UInt64(settings.messages / 10), step)
        deliveries.reset()
        let before = mark
        try publishAll(UInt64(settings.messages), step)
        tell(before, &report, "messages", per: settings.messages)
        report.latency("latency", deliveries)
    }

    private mutating func publishAll(_ count: UInt64, _ step: Int) throws(BenchFailure) {
        let limit = tally.published + count
        while tally.delivered + tally.refused < limit && !isStopped {
            publish(upTo: limit, among: step)
            try turn(wait: 1)
            keepAlives(among: step)
        }
    }

    /// Time passes faster than it does: first nobody says anything, so that all that is to be done is to look at timers; then
    /// everybody keeps the session alive.
    private mutating func time(_ step: Int, _ report: inout BenchReport) throws(BenchFailure) {
        try pass(seconds: 70, step, speaking: false, &report, "silent")
        try pass(seconds: 130, step, speaking: true, &report, "speaking")
    }

    private mutating func pass(
        seconds: Int, _ step: Int, speaking: Bool, _ report: inout BenchReport, _ name: String
    ) throws(BenchFailure) {
        let before = mark
        var spoken = 0
        longestTurn = 0
        for _ in 0..<(UInt64(seconds) * 1_000_000_000 / Self.tick) where !isStopped {
            clock.skip(nanoseconds: Self.tick)
            if speaking { spoken += keepAlives(among: step) } else { spokenUntil = clock.nanoseconds }
            repeat { try turn(follows: false) } while network.mayHaveEvents(for: 0)
        }
        let after = mark
        report.begin(name)
        report.set("seconds", UInt64(seconds))
        report.set("keepAlives", UInt64(spoken))
        report.set("shardCpuMillisecondsPerSecond", (after.turns - before.turns) * 1e3 / Double(seconds), digits: 4)
        report.set("longestTurnMilliseconds", Double(longestTurn) / 1e6)
        report.end()
        lastMove = BenchClock.nanoseconds
    }

    /// All lose their connections in one moment and come back at once.
    private mutating func storm(_ step: Int, _ report: inout BenchReport) throws(BenchFailure) {
        let losing = mark
        for index in 0..<step { leave(index) }
        while gateway.snapshot.sessions > 0 && !isStopped {
            lastMove = BenchClock.nanoseconds
            try turn()
        }
        tell(losing, &report, "losing", per: step)
        let before = mark
        try attach(0..<step)
        tell(before, &report, "logins", per: step)
    }

    /// A broadcast leaves when the last device has the one before. Nothing is told where the gateway knows none.
    private mutating func broadcasts(_ step: Int, _ report: inout BenchReport) throws(BenchFailure) {
        guard settings.broadcasts > 0 else { return }
        let token = try authenticate()
        try rest()
        let before = mark
        var slowest = 0.0
        for number in 0..<settings.broadcasts where !isStopped {
            let began = BenchClock.nanoseconds
            let wanted = tally.delivered + UInt64(step)
            let filler = String(repeating: "x", count: settings.payloadBytes - BenchStamp.bytes)
            let stamp = BenchStamp.text(began)
            let body =
                "{\"request_id\":\"broadcast-\(number)\",\"audience\":\"all\",\"push_message\":{\"transmission\":\"\(stamp)\(filler)\"}}"
            let answer = try call("/v2/\(settings.app.id)/push/all", token: token, body: Array(body.utf8))
            guard answer.status == 200 else {
                problems.note(
                    "broadcast: HTTP \(answer.status) \(String(decoding: answer.body.prefix(160), as: UTF8.self))")
                if number == 0, answer.status == 404 { return }
                throw BenchFailure(sentence: "a broadcast was refused" + problems.sentence)
            }
            while tally.delivered < wanted && !isStopped {
                try turn(wait: 1)
                keepAlives(among: step)
            }
            slowest = max(slowest, Double(BenchClock.nanoseconds - began) / 1e9)
        }
        tell(before, &report, "broadcasts", per: settings.broadcasts * step)
        report.set("slowestBroadcastSeconds", slowest)
    }

    mutating func authenticate() throws(BenchFailure) -> String {
        let timestamp = String(clock.now.milliseconds)
        let signed = Array((settings.app.key + timestamp + settings.app.masterSecret).utf8)
        let sign = Hexadecimal.encode(Cryptography.sha256(signed))
        let body = "{\"sign\":\"\(sign)\",\"timestamp\":\"\(timestamp)\",\"appkey\":\"\(settings.app.key)\"}"
        let answer = try call("/v2/\(settings.app.id)/auth", token: nil, body: Array(body.utf8))
        let object = try? JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        guard let token = (object?["data"] as? [String: Any])?["token"] as? String else {
            throw BenchFailure(sentence: "the gateway gave the backend no token: HTTP \(answer.status)")
        }
        return token
    }
}

extension MemoryBench {
    /// The whole run, with a folder of its own.
    static func measure(_ settings: MemoryBenchSettings, _ signals: ProcessSignals) throws -> Int32 {
        EventLog.silence()
        let parent = settings.folder.map { URL(fileURLWithPath: $0) } ?? FileManager.default.temporaryDirectory
        let folder = parent.appendingPathComponent("ferry-bench-memory-\(ProcessInfo.processInfo.processIdentifier)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var bench = try MemoryBench(settings, folder: folder.appendingPathComponent("data").path, signals: signals)
        defer { bench.gateway.close() }
        try bench.run()
        return bench.isStopped ? 130 : 0
    }
}
