internal import FerryCore
internal import FerryGateway
internal import FerryIO

/// What `ferry bench --mode memory` was asked for, checked.
struct MemoryBenchSettings {
    let sessions: Int
    /// Measured at each number of sessions.
    let messages: Int
    let outstanding: Int
    let payloadBytes: Int
    let broadcasts: Int
    /// Who stays at the end, while pushes to all go out; nil: there is no such part.
    let online: Int?
    /// Of that part: singles a second, how long each stretch lasts, and the pace of the paced push.
    let rate: Int
    let seconds: Int
    let speed: Int
    /// Where the gateway's data goes while it runs; nil: the system's temporary folder.
    let folder: String?
    let app: App
    let configuration: GatewayConfiguration

    init(_ arguments: ArgumentParser.Arguments) throws(BenchFailure) {
        sessions = try BenchSettings.number(arguments, "--sessions", 1...5_000_000) ?? 1_000_000
        messages = try BenchSettings.number(arguments, "--messages", 1...100_000_000) ?? 200_000
        outstanding = try BenchSettings.number(arguments, "--outstanding", 1...4_096) ?? 1_000
        payloadBytes =
            try BenchSettings.number(arguments, "--payload-bytes", BenchStamp.bytes...Limits.payloadBytes) ?? 256
        broadcasts = try BenchSettings.number(arguments, "--broadcasts", 0...1_000) ?? 3
        online = try BenchSettings.number(arguments, "--online", 1...5_000_000)
        rate = try BenchSettings.number(arguments, "--rate", 1...1_000_000) ?? 2_000
        seconds = try BenchSettings.number(arguments, "--seconds", 1...3_600) ?? 10
        speed = try BenchSettings.number(arguments, "--speed", 1...1_000_000_000) ?? 20_000
        folder = arguments.value("--folder")
        guard let id = AppID("bench"), let identity = Identity(key: Cryptography.random(Identity.keyBytes)) else {
            throw BenchFailure(sentence: "the gateway of this run could not be named")
        }
        app = App(id: id, key: "key", secret: "the app's secret", masterSecret: "master", name: nil, topic: nil)
        var configuration = GatewayConfiguration(identity: identity)
        configuration.apps = AppRegistry([app])
        configuration.shards = 1
        configuration.connectionLimit = sessions + 16
        configuration.broadcastWakesPerSecond =
            try BenchSettings.number(arguments, "--wakes", 1...1_000_000) ?? configuration.broadcastWakesPerSecond
        // Nothing goes to the tables meanwhile, whose buffers would be counted as the sessions' memory.
        configuration.keptSegments = 1_000
        self.configuration = configuration
    }

    /// 1,000, 10,000 and so on, and at last all.
    var steps: [Int] {
        var steps: [Int] = []
        var step = 1_000
        while step < sessions {
            steps.append(step)
            step *= 10
        }
        return steps + [sessions]
    }
}
