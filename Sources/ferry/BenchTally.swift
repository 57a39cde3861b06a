internal import FerryIO

/// What has happened so far; two of them differ by what happened between.
struct BenchTally {
    var welcomes: UInt64 = 0
    var left: UInt64 = 0
    var published: UInt64 = 0
    var accepted: UInt64 = 0
    var refused: UInt64 = 0
    var delivered: UInt64 = 0
    var repeats: UInt64 = 0
    /// Of `delivered`, those of a bench in memory that were for everybody.
    var broadcast: UInt64 = 0
    /// By devices, handshakes included.
    var receivedBytes: UInt64 = 0
    /// Messages that came compressed.
    var compressed: UInt64 = 0
    /// Told by gap frames.
    var dropped: UInt64 = 0

    var unanswered: UInt64 { Self.difference(published, accepted + refused) }
    /// Published, and neither refused nor at its device.
    var outstanding: UInt64 { Self.difference(published, delivered + refused + dropped) }
    /// Changes whenever anything comes.
    var moves: UInt64 { welcomes &+ left &+ accepted &+ refused &+ delivered &+ dropped }

    private static func difference(_ left: UInt64, _ right: UInt64) -> UInt64 { left > right ? left - right : 0 }
}

/// What went wrong, how often, and the first words about each.
struct BenchProblems {
    private(set) var counts: [String: UInt64] = [:]
    var failedDevices = 0

    mutating func note(_ text: String) {
        if counts.count < 32 || counts[text] != nil { counts[text, default: 0] += 1 }
    }

    /// Empty, or the most frequent ones in parentheses.
    var sentence: String {
        let most = sorted.prefix(3).map { "\($0.count) × \($0.text)" }.joined(separator: "; ")
        return most.isEmpty ? "" : " (\(most))"
    }

    var sorted: [(text: String, count: UInt64)] {
        counts.map { ($0.key, $0.value) }.sorted { $0.count != $1.count ? $0.count > $1.count : $0.text < $1.text }
    }
}

/// A stretch of a run: its length, what happened in it, and what the gateway and the load used for it.
struct BenchWindow {
    private(set) var before: BenchTally
    private(set) var after: BenchTally
    private(set) var seconds = 0.0
    private(set) var gatewaySeconds: Double?
    private(set) var loadSeconds = 0.0
    private(set) var gauge: ProcessGauge?
    private let start: UInt64
    private let gaugeBefore: ProcessGauge?
    private let loadBefore: Duration

    static func begin(_ tally: BenchTally, _ settings: BenchSettings) -> BenchWindow { BenchWindow(tally, settings) }

    private init(_ tally: BenchTally, _ settings: BenchSettings) {
        before = tally
        after = tally
        gaugeBefore = settings.gatewayProcess.flatMap { ProcessGauge.read(process: $0) }
        let used = WallClock.processorTime
        loadBefore = used.user + used.system
        start = BenchClock.nanoseconds
    }

    func end(_ tally: BenchTally, _ settings: BenchSettings) -> BenchWindow {
        var window = self
        window.after = tally
        window.seconds = max(1e-9, Double(BenchClock.nanoseconds - start) / 1e9)
        let used = WallClock.processorTime
        window.loadSeconds = (used.user + used.system - loadBefore) / .seconds(1)
        window.gauge = settings.gatewayProcess.flatMap { ProcessGauge.read(process: $0) }
        if let gauge = window.gauge, let gaugeBefore {
            window.gatewaySeconds = gauge.processorSeconds - gaugeBefore.processorSeconds
        }
        return window
    }

    func count(_ value: KeyPath<BenchTally, UInt64>) -> UInt64 { after[keyPath: value] - before[keyPath: value] }
}
