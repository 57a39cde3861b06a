internal import FerryCore
internal import Foundation

/// The line on stderr each second.
struct BenchProgress {
    let phase: String
    let seconds: UInt64
    let before: BenchTally
    let after: BenchTally
    let recent: BenchHistogram
    let gaugeBefore: ProcessGauge?
    let gauge: ProcessGauge?

    func print() {
        var parts: [String] = []
        func rate(_ value: KeyPath<BenchTally, UInt64>, _ name: String) {
            let count = after[keyPath: value] - before[keyPath: value]
            if count > 0 { parts.append("\(count) \(name)/s") }
        }
        rate(\.welcomes, "welcomed")
        rate(\.accepted, "accepted")
        rate(\.delivered, "delivered")
        rate(\.refused, "refused")
        if recent.count > 0 {
            parts.append("p50 \(milliseconds(recent.percentile(0.5)))")
            parts.append("p99 \(milliseconds(recent.percentile(0.99)))")
        }
        if let gauge, let gaugeBefore {
            let cores = gauge.processorSeconds - gaugeBefore.processorSeconds
            parts.append(String(format: "gateway %.2f cores, %.1f MB", cores, Double(gauge.residentBytes) / 1e6))
        }
        let text = parts.isEmpty ? "nothing yet" : parts.joined(separator: ", ")
        try? FileHandle.standardError.write(contentsOf: Data("\(seconds) s, \(phase): \(text)\n".utf8))
    }

    private func milliseconds(_ nanoseconds: UInt64) -> String { String(format: "%.2f ms", Double(nanoseconds) / 1e6) }
}

/// The line of JSON at the end. Latencies are microseconds.
struct BenchReport {
    private var json = JSONWriter()

    init(_ settings: BenchSettings) {
        json.beginObject()
        set("mode", settings.mode.rawValue)
        set("devices", UInt64(settings.devices))
        set("payloadBytes", UInt64(settings.payloadBytes))
        set("payload", settings.payload.rawValue)
        set("ack", settings.acks.rawValue)
        set("ingress", settings.ingress.rawValue)
        if let rate = settings.rate { set("rate", UInt64(rate)) }
    }

    /// A line of one's own.
    init() { json.beginObject() }

    mutating func set(_ name: String, _ text: String) {
        json.name(name)
        json.string(text)
    }

    mutating func set(_ name: String, _ number: UInt64) {
        json.name(name)
        json.raw(Array(String(number).utf8))
    }

    mutating func set(_ name: String, _ number: Double, digits: Int = 3) {
        json.name(name)
        json.raw(Array(String(format: "%.\(digits)f", number.isFinite ? number : 0).utf8))
    }

    mutating func begin(_ name: String) {
        json.name(name)
        json.beginObject()
    }

    mutating func end() { json.endObject() }

    /// Counts and rates of a stretch; the gateway's time is told per million of `unit`.
    mutating func window(_ window: BenchWindow, per unit: KeyPath<BenchTally, UInt64>) {
        self.window(window, perMillionOf: window.count(unit))
    }

    mutating func window(_ window: BenchWindow, perMillionOf unit: UInt64) {
        set("seconds", window.seconds)
        for (name, value) in [
            ("welcomed", \BenchTally.welcomes), ("accepted", \.accepted), ("delivered", \.delivered),
        ] where window.count(value) > 0 {
            set(name, window.count(value))
            set(name + "PerSecond", Double(window.count(value)) / window.seconds, digits: 1)
        }
        for (name, value) in [("refused", \BenchTally.refused), ("repeats", \.repeats), ("dropped", \.dropped)] {
            set(name, window.count(value))
        }
        if window.count(\.compressed) > 0 { set("compressed", window.count(\.compressed)) }
        if window.count(\.delivered) > 0 {
            set(
                "receivedBytesPerMessage", Double(window.count(\.receivedBytes)) / Double(window.count(\.delivered)),
                digits: 1)
        }
        set("loadCpuSeconds", window.loadSeconds)
        guard let used = window.gatewaySeconds, let gauge = window.gauge else { return }
        begin("gateway")
        set("cpuSeconds", used)
        set("cores", used / window.seconds)
        if unit > 0 { set("cpuSecondsPerMillion", used * 1e6 / Double(unit), digits: 2) }
        set("rssBytes", gauge.residentBytes)
        set("rssAnonBytes", gauge.anonymousBytes)
        end()
    }

    mutating func latency(_ name: String, _ histogram: BenchHistogram) {
        guard histogram.count > 0 else { return }
        begin(name)
        for (label, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            set(label, Double(histogram.percentile(share)) / 1e3, digits: 1)
        }
        set("max", Double(histogram.maximum) / 1e3, digits: 1)
        end()
    }

    mutating func finish() -> String {
        json.endObject()
        return String(decoding: json.bytes, as: UTF8.self)
    }

    mutating func finish(_ problems: BenchProblems, lost: UInt64, isStopped: Bool) -> String {
        // What a signal cut off was on its way, not lost.
        set(isStopped ? "underWay" : "lost", lost)
        set("devicesLost", UInt64(problems.failedDevices))
        begin("problems")
        for problem in problems.sorted { set(problem.text, problem.count) }
        end()
        if isStopped { set("stopped", "by a signal") }
        return finish()
    }
}
