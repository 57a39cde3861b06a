internal import CLinux
internal import FerryCore
internal import Synchronization

/// One line an event on stderr: time, level, a constant text, then data as `key=value`. Secrets and payloads are never data.
/// A reader of stderr that does not keep up loses lines; nobody who writes them waits for it.
package enum EventLog {
    package enum Level: String, Sendable {
        case info
        case warning
        case error
    }

    /// Lines of one text that are written in one second; what is above is counted and told with the next line of that text.
    private static let linesPerSecond = 20

    private static let silent = Atomic<Bool>(false)

    /// From now on, nothing of what happens is written: for a process that plays thousands of gateways.
    package static func silence() { silent.store(true, ordering: .relaxed) }

    package static func write(_ level: Level, _ text: StaticString, _ data: KeyValuePairs<String, String> = [:]) {
        guard !silent.load(ordering: .relaxed) else { return }
        state.withLock { state in
            guard let unsaid = state.admit(text) else { return }
            var line = "\(timestamp()) \(level.rawValue) \(text)"
            for (key, value) in data { line += " \(key)=\(quoted(value))" }
            if unsaid > 0 { line += " unsaid=\(unsaid)" }
            line += "\n"
            guard clinux_takes_bytes(2) != 0 else {
                state.lost += 1
                return
            }
            if state.lost > 0 { line = "\(timestamp()) warning log lines lost count=\(state.lost)\n" + line }
            state.lost = 0
            print(line)
        }
    }

    private struct State {
        /// Lines that nobody took since the last one that somebody did.
        var lost: UInt64 = 0
        /// By the address of the text, which is a constant of the program.
        var rates: [UInt: (second: Int64, lines: Int, unsaid: UInt64)] = [:]

        /// nil: too many of this text in this second. Else how many of it were left out before.
        mutating func admit(_ text: StaticString) -> UInt64? {
            let address = UInt(bitPattern: text.utf8Start)
            let second = clinux_boot_milliseconds() / 1000
            var rate = rates[address] ?? (second, 0, 0)
            if rate.second != second { (rate.second, rate.lines) = (second, 0) }
            defer { rates[address] = rate }
            guard rate.lines < EventLog.linesPerSecond else {
                rate.unsaid += 1
                return nil
            }
            rate.lines += 1
            defer { rate.unsaid = 0 }
            return rate.unsaid
        }
    }

    /// The lock makes looking and writing one step.
    private static let state = Mutex(State())

    /// Text for people, as it is.
    package static func print(_ text: String) { writeAll(text, to: 2) }

    private static func writeAll(_ text: String, to descriptor: Int32) {
        var text = text
        text.withUTF8 { bytes in
            var written = 0
            while written < bytes.count {
                let result = clinux_write(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
                // Nobody reads any more: there is no one to tell.
                guard result > 0 else { return }
                written += Int(result)
            }
        }
    }

    private static func quoted(_ value: String) -> String {
        let isPlain = !value.isEmpty && value.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != 34 && $0 != 61 }
        if isPlain { return value }
        var writer = JSONWriter()
        writer.string(value)
        return writer.text
    }

    /// UTC, to the millisecond.
    private static func timestamp() -> String {
        var buffer = [CChar](repeating: 0, count: 32)
        clinux_format_time(clinux_wall_milliseconds(), &buffer, buffer.count)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
