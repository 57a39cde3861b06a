internal import CLinux
internal import FerryCore
internal import Synchronization

/// One line an event on stderr: time, level, a constant text, then data as `key=value`. Secrets and payloads are never data.
package enum EventLog {
    package enum Level: String, Sendable {
        case info
        case warning
        case error
    }

    private static let silent = Atomic<Bool>(false)

    /// From now on, nothing of what happens is written: for a process that plays thousands of gateways.
    package static func silence() { silent.store(true, ordering: .relaxed) }

    package static func write(_ level: Level, _ text: StaticString, _ data: KeyValuePairs<String, String> = [:]) {
        guard !silent.load(ordering: .relaxed) else { return }
        var line = "\(timestamp()) \(level.rawValue) \(text)"
        for (key, value) in data { line += " \(key)=\(quoted(value))" }
        line += "\n"
        print(line)
    }

    /// Text for people, as it is.
    package static func print(_ text: String) { writeAll(text, to: 2) }

    /// A whole line on stdout, at once.
    package static func printOut(_ line: String) { writeAll(line + "\n", to: 1) }

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
