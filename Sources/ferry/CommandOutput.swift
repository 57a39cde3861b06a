internal import FerryCore
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
    private var writer = JSONWriter()

    init() { writer.beginObject() }

    mutating func set(_ name: String, _ text: String) {
        writer.name(name)
        writer.string(text)
    }

    mutating func set(_ name: String, _ number: UInt64) {
        writer.name(name)
        writer.raw(Array(String(number).utf8))
    }

    mutating func set(_ name: String, _ truth: Bool) {
        writer.name(name)
        writer.truth(truth)
    }

    mutating func set(_ name: String, _ object: JSONLine) {
        writer.name(name)
        writer.raw(Array(object.text.utf8))
    }

    var text: String {
        var whole = writer
        whole.endObject()
        return whole.text
    }
}
