internal import FerryCore
internal import FerryIO
internal import Foundation

/// `ferry bench`: many devices and backends in one process, to measure a gateway.
enum BenchCommand {
    private static let parser = ArgumentParser(
        command: "bench",
        summary: """
            Measures a running gateway with many devices and backends in one process and thread. Prints a line a second
            on stderr and one line of JSON at the end, also when it is stopped by Ctrl-C. Every run registers new devices.

            Modes: online   messages to devices that are there
                   offline  messages to devices that have said bye
                   flush    as offline; then all log in, collect what was kept, and go
                   backlog  messages to devices that are there, without and with others that collect a backlog each
                   idle     devices that get nothing: the gateway's memory for each
                   reconnect  as online, and nothing is acknowledged; says so in a line, waits until the gateway is gone,
                            and once there is one at the same address all devices come at once and collect
                   broadcast  messages to all devices that are there, one after the other; with --rate also messages to
                            single devices, without and with broadcasts beside them, and how long pings wait
                   memory   needs no gateway: has one in this process, with sessions that need no sockets, --sessions of
                            them; prints a line for 1,000, 10,000 and so on
            """,
        options: [
            CommandOption(
                "--mode", "MODE", help: "online (default), offline, flush, backlog, idle, reconnect, broadcast, memory"),
            CommandOption("--server", "HOST:PORT", help: "the gateway's address for devices"),
            CommandOption("--http", "URL", help: "the gateway's API, such as http://127.0.0.1:7800"),
            CommandOption("--ingress", "WAY", help: "how messages come in: http (default), batch or link"),
            CommandOption("--batch", "N", help: "with --ingress batch: messages in one call, 1…200; default 200"),
            CommandOption(
                "--link", "HOST:PORT", help: "with --ingress link: the gateway's address for backends' links"),
            CommandOption(
                "--apps", "FILE", help: "the gateway's apps file; instead of the next four", environment: "FERRY_APPS"),
            CommandOption("--app", "ID", help: "the app's id; with --apps the first app by default"),
            CommandOption("--app-secret", "SECRET", help: "the app's for devices", environment: "FERRY_APP_SECRET"),
            CommandOption("--app-key", "KEY", help: "the app's key", environment: "FERRY_APP_KEY"),
            CommandOption(
                "--master-secret", "SECRET", help: "the app's for backends", environment: "FERRY_MASTER_SECRET"),
            CommandOption("--sessions", "N", help: "memory: how many; default 1000000"),
            CommandOption("--broadcasts", "N", help: "memory: to all sessions at the end; default 3"),
            CommandOption(
                "--online", "N",
                help: "memory: at the end all but so many leave, and single messages are timed beside pushes to all"),
            CommandOption("--wakes", "W", help: "memory with --online: broadcastWakesPerSecond; default 1000"),
            CommandOption(
                "--speed", "V", help: "memory with --online: devices a second of the paced one; default 20000"),
            CommandOption(
                "--folder", "DIR", help: "memory: where the gateway's data lies meanwhile; default: a temporary folder"),
            CommandOption("--devices", "N", help: "how many devices; default 1000"),
            CommandOption(
                "--messages", "M",
                help: "in all; with offline and flush to each device, default 10; reconnect 2, broadcast 5"),
            CommandOption(
                "--crowded", "N", help: "backlog: devices with a backlog of --messages (default 10000); default 20"),
            CommandOption(
                "--seconds", "S",
                help: "online, broadcast with --rate: how long to push, default 5; idle: how long to hold"),
            CommandOption("--warm-up", "S", help: "online: pushes before, not counted; default 1"),
            CommandOption("--payload-bytes", "B", help: "16…65536; default 256"),
            CommandOption(
                "--payload", "KIND", help: "of: filler (default, one byte), json or random; the latter with links only"),
            CommandOption("--compress", help: "devices take compressed payloads"),
            CommandOption("--connections", "C", help: "connections of backends; default 32, with links 4"),
            CommandOption(
                "--pipeline", "P",
                help: "requests without an answer on each, 1…64, default 32; with links 1…4096, default 1024"),
            CommandOption("--rate", "R", help: "messages per second; default as fast as it goes"),
            CommandOption(
                "--outstanding", "N", help: "online without --rate: messages on their way at once; default 1000"),
            CommandOption(
                "--ack", "WHEN", help: "each (read; default), late (32 messages or a second) or none"),
            CommandOption(
                "--gateway-pid", "PID", help: "the gateway's process on this machine: tells its CPU and memory"),
        ])

    static func run(_ arguments: [String]) -> Int32 {
        CommandOutput.run(parser, arguments) { arguments in
            do {
                let signals = try ProcessSignals()
                if arguments.value("--mode") == "memory" {
                    return try MemoryBench.measure(MemoryBenchSettings(arguments), signals)
                }
                return try measure(BenchSettings(arguments), signals)
            } catch let failure as BenchFailure {
                CommandOutput.failure(failure.sentence)
            } catch {
                CommandOutput.failure("\(error)")
            }
            return 1
        }
    }

    private static func measure(_ settings: BenchSettings, _ signals: ProcessSignals) throws -> Int32 {
        let token = try authenticate(settings)
        var load = try BenchLoad(settings, signals: signals)
        var report = BenchReport(settings)
        switch settings.mode {
        case .online: try online(&load, &report, token)
        case .offline: try offline(&load, &report, token)
        case .flush: try flush(&load, &report, token)
        case .backlog: try backlog(&load, &report, token)
        case .idle: try idle(&load, &report)
        case .reconnect: try reconnect(&load, &report, token)
        case .broadcast: try broadcast(&load, &report, token)
        }
        let isCounted = settings.mode != .idle && settings.mode != .offline && settings.mode != .backlog
        let lost = isCounted ? load.tally.outstanding : load.tally.unanswered
        CommandOutput.line(report.finish(load.problems, lost: lost, isStopped: load.isStopped))
        return load.isStopped ? 130 : 0
    }

    // MARK: - Modes

    private static func online(
        _ load: inout BenchLoad, _ report: inout BenchReport, _ token: String
    ) throws(BenchFailure) {
        let settings = load.settings
        try load.attach(0..<settings.devices, .stay, "connecting")
        try load.openBackends(token: token)
        if settings.warmUpSeconds > 0 {
            _ = try load.publish("warming up", messages: .max, seconds: settings.warmUpSeconds, toAll: false)
        }
        let window = try load.publish(
            "online", messages: settings.messages.map(UInt64.init) ?? .max,
            seconds: settings.messages == nil ? settings.seconds : nil, toAll: false)
        report.window(window, per: \.delivered)
        report.latency("latency", load.deliveries)
        report.latency("acceptLatency", load.answers)
        try load.drain()
    }

    /// Everybody registers and leaves; then the messages come.
    private static func fill(_ load: inout BenchLoad, _ token: String) throws(BenchFailure) -> BenchWindow {
        let settings = load.settings
        try load.attach(0..<settings.devices, .leave, "registering")
        try load.openBackends(token: token)
        let messages = UInt64(settings.messages ?? 1) * UInt64(settings.devices)
        return try load.publish("offline", messages: messages, seconds: nil, toAll: true)
    }

    private static func offline(
        _ load: inout BenchLoad, _ report: inout BenchReport, _ token: String
    ) throws(BenchFailure) {
        let window = try fill(&load, token)
        report.window(window, per: \.accepted)
        report.latency("acceptLatency", load.answers)
    }

    private static func flush(
        _ load: inout BenchLoad, _ report: inout BenchReport, _ token: String
    ) throws(BenchFailure) {
        let settings = load.settings
        let filled = try fill(&load, token)
        report.begin("fill")
        report.window(filled, per: \.accepted)
        report.latency("acceptLatency", load.answers)
        report.end()
        let window = BenchWindow.begin(load.tally, settings)
        try load.attach(0..<settings.devices, .collect(settings.messages ?? 1), "collecting")
        report.window(window.end(load.tally, settings), per: \.delivered)
    }

    /// The same load twice; in the second half devices of the crowd come, one after the other.
    private static func backlog(
        _ load: inout BenchLoad, _ report: inout BenchReport, _ token: String
    ) throws(BenchFailure) {
        let settings = load.settings
        let each = UInt64(settings.messages ?? 1)
        try load.attach(0..<settings.crowded, .leave, "registering")
        try load.openBackends(token: token)
        load.crowd = 0..<settings.crowded
        load.isPaced = false
        _ = try load.publish(
            "filling backlogs", messages: each * UInt64(settings.crowded), seconds: nil, toAll: true)
        load.isPaced = true
        try load.attach(settings.crowded..<settings.devices, .stay, "connecting")
        let quiet = try load.publish("without backlogs", messages: .max, seconds: settings.seconds, toAll: false)
        report.begin("without")
        report.window(quiet, per: \.delivered)
        report.latency("latency", load.deliveries)
        report.end()
        load.nextOfCrowd = 1
        let busy = try load.publish("with backlogs", messages: .max, seconds: settings.seconds, toAll: false)
        report.begin("with")
        report.window(busy, per: \.delivered)
        report.latency("latency", load.deliveries)
        report.set("collected", load.crowd.reduce(0) { $0 + UInt64(load.devices[$1].received) })
        report.set("collectors", load.crowd.reduce(0) { $0 + (load.devices[$1].received > 0 ? 1 : 0) })
        report.end()
        load.nextOfCrowd = 0
        try load.drain()
    }

    /// The memory at two counts of connections; the slope between them is one connection's.
    private static func idle(_ load: inout BenchLoad, _ report: inout BenchReport) throws(BenchFailure) {
        let settings = load.settings
        let few = min(1_000, max(1, settings.devices / 10))
        let start = BenchWindow.begin(load.tally, settings)
        try load.attach(0..<few, .stay, "connecting")
        try load.rest(seconds: 1, "settling")
        let low = BenchWindow.begin(load.tally, settings).end(load.tally, settings)
        let connecting = BenchWindow.begin(load.tally, settings)
        try load.attach(few..<settings.devices, .stay, "connecting")
        let connected = connecting.end(load.tally, settings)
        let holding = BenchWindow.begin(load.tally, settings)
        try load.rest(seconds: Double(settings.seconds), "holding")
        let held = holding.end(load.tally, settings)
        report.window(connected, per: \.welcomes)
        report.set("idleCores", (held.gatewaySeconds ?? 0) / held.seconds)
        guard let first = low.gauge, let last = held.gauge, settings.devices > few, !load.isStopped else { return }
        let grown = Double(settings.devices - few)
        report.set("fromConnections", UInt64(few))
        report.set("connections", start.end(load.tally, settings).count(\.welcomes))
        report.set(
            "rssBytesPerConnection", (Double(last.residentBytes) - Double(first.residentBytes)) / grown, digits: 1)
        report.set(
            "rssAnonBytesPerConnection", (Double(last.anonymousBytes) - Double(first.anonymousBytes)) / grown,
            digits: 1)
    }

    private static func reconnect(
        _ load: inout BenchLoad, _ report: inout BenchReport, _ token: String
    ) throws(BenchFailure) {
        let settings = load.settings
        try load.attach(0..<settings.devices, .stay, "connecting")
        try load.openBackends(token: token)
        // One that every device takes and acknowledges, so that it has a place in its stream to come back to.
        _ = try load.publish("taken", messages: UInt64(settings.devices), seconds: nil, toAll: true)
        try load.drain()
        load.takesNothing = true
        let kept = UInt64(settings.messages ?? 1) * UInt64(settings.devices)
        _ = try load.publish("kept", messages: kept, seconds: nil, toAll: true)
        load.closeBackends()
        CommandOutput.line(#"{"event":"kept","messages":\#(kept)}"#)
        try load.loseGateway()
        load.takesNothing = false
        let window = BenchWindow.begin(load.tally, settings)
        let coming = try load.comeBack()
        CommandOutput.line(#"{"event":"attached"}"#)
        try load.collect()
        report.window(window.end(load.tally, settings), per: \.delivered)
        report.set("connectsTried", coming.tries)
        report.set("attachedSeconds", coming.seconds)
        report.begin("setbacks")
        for setback in load.setbacks.sorted { report.set(setback.text, setback.count) }
        report.end()
        // Everybody is there, and stays.
        try load.openBackends(token: token)
        _ = try load.publish("again", messages: UInt64(settings.devices), seconds: nil, toAll: true)
        try load.drain()
    }

    // MARK: - The backend's token

    private static func authenticate(_ settings: BenchSettings) throws(BenchFailure) -> String {
        let timestamp = String(WallClock().now.milliseconds)
        let signed = Array((settings.appKey + timestamp + settings.masterSecret).utf8)
        var request = JSONWriter()
        request.beginObject()
        for (name, value) in [
            ("sign", Hexadecimal.encode(Cryptography.sha256(signed))), ("timestamp", timestamp),
            ("appkey", settings.appKey),
        ] {
            request.name(name)
            request.string(value)
        }
        request.endObject()
        let path = "/v2/\(settings.appID)/auth"
        let answered = HTTPRequester.make(settings.httpURL).flatMap { $0.post(path, json: request.bytes, token: nil) }
        let answer: HTTPRequester.Answer
        switch answered {
        case .success(let given): answer = given
        case .failure(let problem): throw BenchFailure(sentence: problem.sentence)
        }
        let object = try? JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        guard let token = (object?["data"] as? [String: Any])?["token"] as? String else {
            let text = String(decoding: answer.body, as: UTF8.self)
            throw BenchFailure(
                sentence: "the gateway did not accept the app's key and master secret (HTTP \(answer.status)): \(text)")
        }
        return token
    }
}
