private import Foundation

/// What a machine does in each representative state at each event, as a text file beside the test: a change of behaviour
/// shows as a changed line. `FERRY_RECORD_TABLES=1` writes the files anew.
package struct MatrixTable {
    /// A line in which the file and the machine differ.
    package struct Difference: Hashable, Sendable, CustomStringConvertible {
        package let line: Int
        package let recorded: String
        package let actual: String
        package var description: String { "line \(line):\n  recorded: \(recorded)\n  actual:   \(actual)" }
    }

    private var lines: [String]

    /// `title` says what the table shows.
    package init(title: String) {
        lines = ["# \(title)", "# state | event -> actions => next state. Re-record: FERRY_RECORD_TABLES=1 swift test"]
    }

    /// Begins the rows of one state; `detail` says what it is.
    package mutating func begin(state: String, detail: String) {
        lines.append("")
        lines.append("[\(state)] \(detail)")
    }

    /// Adds one row. `next` is nil where the state stays as it is.
    package mutating func add(event: String, actions: [String], next: String?) {
        let padded = event + String(repeating: " ", count: max(0, 28 - event.count))
        let done = actions.isEmpty ? "nothing" : actions.joined(separator: ", ")
        lines.append("  \(padded) -> \(done) => \(next ?? "same")")
    }

    package var text: String { lines.joined(separator: "\n") + "\n" }

    /// Compares with `Tables/<name>.txt` beside the source file `test` (or writes it, when recording) and answers the
    /// lines that differ.
    package func differences(name: String, test: String = #filePath) -> [Difference] {
        let file = URL(fileURLWithPath: test).deletingLastPathComponent().appendingPathComponent("Tables/\(name).txt")
        if ProcessInfo.processInfo.environment["FERRY_RECORD_TABLES"] == "1" {
            do {
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(text.utf8).write(to: file)
            } catch {
                return [Difference(line: 0, recorded: "cannot be written: \(error)", actual: file.path)]
            }
        }
        guard let data = try? Data(contentsOf: file) else {
            return [Difference(line: 0, recorded: "no file", actual: file.path)]
        }
        let recorded = Self.split(String(decoding: data, as: UTF8.self))
        let actual = Self.split(text)
        return (0..<max(recorded.count, actual.count)).compactMap { index in
            let left = index < recorded.count ? recorded[index] : "(nothing)"
            let right = index < actual.count ? actual[index] : "(nothing)"
            return left == right ? nil : Difference(line: index + 1, recorded: left, actual: right)
        }
    }

    private static func split(_ text: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }
}
