internal import Foundation

/// One option of a command.
struct CommandOption {
    /// With its dashes, such as `--server`.
    let name: String
    /// How its value is called in the help; nil for a switch.
    let value: String?
    let help: String
    /// The environment variable that stands in when the option is not given.
    let environment: String?
    let isRequired: Bool

    init(_ name: String, _ value: String? = nil, help: String, environment: String? = nil, isRequired: Bool = false) {
        self.name = name
        self.value = value
        self.help = help
        self.environment = environment
        self.isRequired = isRequired
    }
}

/// Reads `--name value`, `--name=value` and switches; says what is wrong in one sentence.
struct ArgumentParser {
    enum Outcome {
        case arguments(Arguments)
        /// `--help` was asked for; print this.
        case help(String)
        /// The arguments cannot be used; the sentence says why.
        case refused(String)
    }

    /// What was given, by option name.
    struct Arguments {
        fileprivate var values: [String: String] = [:]

        /// The option's value; nil when neither it nor its environment variable was given.
        func value(_ name: String) -> String? { values[name] }
        func has(_ name: String) -> Bool { values[name] != nil }
    }

    let command: String
    let summary: String
    let options: [CommandOption]

    func parse(
        _ arguments: [String], environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> Outcome {
        var result = Arguments()
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--help" || argument == "-h" { return .help(help) }
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first.map(String.init), name.hasPrefix("-") else {
                return .refused("unexpected argument \"\(argument)\"; see ferry \(command) --help")
            }
            guard let option = options.first(where: { $0.name == name }) else { return .refused(unknown(name)) }
            guard result.values[name] == nil else { return .refused("\(name) is given twice") }
            if option.value == nil {
                guard parts.count == 1 else { return .refused("\(name) takes no value") }
                result.values[name] = ""
            } else if parts.count == 2 {
                result.values[name] = String(parts[1])
            } else {
                guard let value = rest.popFirst() else { return .refused("\(name) needs a value") }
                result.values[name] = value
            }
        }
        for option in options where result.values[option.name] == nil {
            if let variable = option.environment, let value = environment[variable] {
                result.values[option.name] = value
            } else if option.isRequired {
                let alternative = option.environment.map { " (or \($0) in the environment)" } ?? ""
                return .refused("\(option.name)\(alternative) is missing; see ferry \(command) --help")
            }
        }
        return .arguments(result)
    }

    private func unknown(_ name: String) -> String {
        let nearest = options.map { (option: $0.name, distance: Self.distance($0.name, name)) }
            .min { $0.distance < $1.distance }
        guard let nearest, nearest.distance <= 3 else {
            return "unknown option \(name); see ferry \(command) --help"
        }
        return "unknown option \(name); did you mean \(nearest.option)?"
    }

    /// How many letters must be added, dropped or changed to make one of the other (Levenshtein).
    static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right.utf8.prefix(64))
        var row = Array(0...right.count)
        for (index, letter) in left.utf8.prefix(64).enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in right.indices {
                let changed = diagonal + (right[column] == letter ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(changed, row[column] + 1, row[column + 1] + 1)
            }
        }
        return row[right.count]
    }

    /// The command's help text.
    var help: String {
        let names = options.map { $0.name + ($0.value.map { " \($0)" } ?? "") } + ["--help"]
        let texts = options.map(description) + ["shows this"]
        let width = names.map(\.count).max() ?? 0
        let lines = zip(names, texts).map { name, text in
            "  \(name.padding(toLength: width, withPad: " ", startingAt: 0))  \(text)"
        }
        return "Usage: ferry \(command) [options]\n\n\(summary)\n\n" + lines.joined(separator: "\n") + "\n"
    }

    private func description(_ option: CommandOption) -> String {
        var text = option.help
        if option.isRequired { text += "; required" }
        if let variable = option.environment { text += "; or \(variable) in the environment" }
        return text
    }
}
