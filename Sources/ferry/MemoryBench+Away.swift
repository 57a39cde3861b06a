internal import FerryCore
internal import FerryGateway
internal import FerryIO

/// Most devices are away: a push to all is placed for all of them, wakes their owners as fast as it may, and is paced; messages
/// to single devices that are there go on meanwhile.
extension MemoryBench {
    mutating func away(_ step: Int, _ report: inout BenchReport) throws(BenchFailure) {
        guard let online = settings.online, online < step else { return }
        for index in online..<step { leave(index) }
        while gateway.snapshot.sessions > online && !isStopped {
            lastMove = BenchClock.nanoseconds
            try turn()
        }
        // The grace is over for all of them.
        for _ in 0..<500 where !isStopped {
            clock.skip(nanoseconds: Self.tick)
            repeat { try turn(follows: false) } while network.mayHaveEvents(for: 0)
        }
        try rest()
        timesSinglesOnly = true
        let token = try authenticate()
        report.set("online", UInt64(online))
        report.set("registered", UInt64(step))
        try stretch("singlesAlone", online, &report, call: nil)
        try stretch("besideOneThatWakes", online, &report) { (bench: inout MemoryBench) throws(BenchFailure) in
            try bench.pushAll("waking", token, #"{"ttl":86400000}"#)
        }
        try stretch("besideOneWithAPace", online, &report) { (bench: inout MemoryBench) throws(BenchFailure) in
            try bench.pushAll(
                "paced", token, #"{"ttl":86400000,"strategy":{"default":3},"speed":\#(bench.settings.speed)}"#)
        }
    }

    /// Singles at their rate for a while, beginning with what `call` does.
    private mutating func stretch(
        _ name: String, _ online: Int, _ report: inout BenchReport,
        call: ((inout MemoryBench) throws(BenchFailure) -> Void)?
    ) throws(BenchFailure) {
        deliveries.reset()
        let bytes = ownBytes
        let gateway = gatewaySeconds
        let broadcast = tally.broadcast
        let stubs = self.gateway.snapshot.stubsRequested
        let kept = self.gateway.snapshot.keptMessages
        longestTurn = 0
        let began = BenchClock.nanoseconds
        if let call { try call(&self) }
        let answered = BenchClock.nanoseconds
        let first = tally.published
        let end = began + UInt64(settings.seconds) * 1_000_000_000
        while BenchClock.nanoseconds < end && !isStopped {
            lastMove = BenchClock.nanoseconds
            let due = (BenchClock.nanoseconds - began) * UInt64(settings.rate) / 1_000_000_000
            publish(upTo: first + due, among: online)
            try turn(wait: 1)
            keepAlives(among: online)
        }
        let seconds = Double(BenchClock.nanoseconds - began) / 1e9
        report.begin(name)
        if call != nil { report.set("answeredAfterMilliseconds", Double(answered - began) / 1e6) }
        report.set("seconds", seconds)
        report.set("singles", tally.published - first)
        report.set("broadcastDelivered", tally.broadcast - broadcast)
        report.set("broadcastKept", UInt64(max(0, self.gateway.snapshot.keptMessages - kept)))
        report.set("wakesPerSecond", Double(self.gateway.snapshot.stubsRequested - stubs) / seconds, digits: 1)
        report.set("gatewayCpuSeconds", gatewaySeconds - gateway, digits: 2)
        report.set("longestTurnMilliseconds", Double(longestTurn) / 1e6)
        report.set("ownBytesGrown", ownBytes - bytes, digits: 0)
        report.latency("latency", deliveries)
        report.end()
    }

    private mutating func pushAll(_ name: String, _ token: String, _ options: String) throws(BenchFailure) {
        let filler = String(
            repeating: BenchStamp.broadcastMark, count: max(1, settings.payloadBytes - BenchStamp.bytes))
        let body =
            #"{"request_id":"push-to-all-\#(name)","audience":"all","settings":\#(options),"#
            + #""push_message":{"transmission":"\#(BenchStamp.text(BenchClock.nanoseconds))\#(filler)"}}"#
        let answer = try call("/v2/\(settings.app.id)/push/all", token: token, body: Array(body.utf8))
        guard answer.status == 200 else {
            throw BenchFailure(
                sentence: "a push to all was refused: \(String(decoding: answer.body.prefix(160), as: UTF8.self))")
        }
    }
}
