internal import Foundation

/// What commands write: results on stdout, one line at a time and at once; sentences about failure on stderr.
enum CommandOutput {
    /// false when nobody reads any more.
    @discardableResult
    static func line(_ text: String) -> Bool {
        do {
            try FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
            return true
        } catch {
            return false
        }
    }

    static func failure(_ sentence: String) {
        try? FileHandle.standardError.write(contentsOf: Data("ferry: \(sentence)\n".utf8))
    }

    /// Deals with what a command does the same everywhere: help, and arguments that cannot be used (status 2).
    static func run(
        _ parser: ArgumentParser, _ arguments: [String], _ body: (ArgumentParser.Arguments) -> Int32
    ) -> Int32 {
        switch parser.parse(arguments) {
        case .arguments(let arguments): return body(arguments)
        case .help(let text):
            line(text)
            return 0
        case .refused(let sentence):
            failure(sentence)
            return 2
        }
    }
}

/// One JSON object with its members in the order given.
struct JSONLine {
    private var members: [String] = []

    mutating func set(_ name: String, _ text: String) { members.append("\(Self.quoted(name)):\(Self.quoted(text))") }
    mutating func set(_ name: String, _ number: UInt64) { members.append("\(Self.quoted(name)):\(number)") }
    mutating func set(_ name: String, _ truth: Bool) { members.append("\(Self.quoted(name)):\(truth)") }
    mutating func set(_ name: String, _ object: JSONLine) { members.append("\(Self.quoted(name)):\(object.text)") }

    var text: String { "{" + members.joined(separator: ",") + "}" }

    /// A JSON string (RFC 8259, section 7).
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case "\u{0}"..."\u{1f}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
