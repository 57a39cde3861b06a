internal import FerryCore
internal import FerryStats
internal import Foundation

/// `ferry explain`: what happened to a device's messages, and why.
enum ExplainCommand {
    private static let parser = ArgumentParser(
        command: "explain",
        summary: """
            Tells what happened to the messages of a device, or to one of them, and why: "why did this device not get that
            message?" Exit status 0 when something is known, 1 when nothing is.
            """,
        options: BackendAPI.options + [
            CommandOption("--cid", "CID", help: "the device", isRequired: true),
            CommandOption("--msgid", "ID", help: "one message, by the id that the device reads"),
            CommandOption("--taskid", "ID", help: "one message, by the task that the push was answered with"),
            CommandOption(
                "--limit", "N",
                help: "events at most, the newest, or one message's first and last; 1…5000, default 500"),
            CommandOption("--json", help: "prints the API's answer as it is"),
        ])

    static func run(_ arguments: [String]) -> Int32 {
        CommandOutput.run(parser, arguments) { arguments in
            BackendAPI.run { () throws(BackendAPI.Failure) in try explain(arguments) }
        }
    }

    private static func explain(_ arguments: ArgumentParser.Arguments) throws(BackendAPI.Failure) -> Int32 {
        let cid = arguments.value("--cid") ?? ""
        guard CID(hex: cid) != nil else {
            throw BackendAPI.Failure(sentence: "\"\(cid)\" is not a cid: 32 hex digits")
        }
        var query: [String] = []
        for (option, name) in [("--msgid", "msgid"), ("--taskid", "taskid"), ("--limit", "limit")] {
            guard let value = arguments.value(option) else { continue }
            guard value.utf8.allSatisfy({ isPlain($0) }), !value.isEmpty else {
                throw BackendAPI.Failure(sentence: "\(option) \"\(value)\" holds characters that no id has")
            }
            query.append("\(name)=\(value)")
        }
        let api = try BackendAPI(arguments)
        let path = "/v1/\(api.app)/devices/\(cid)/timeline"
        let answer = try api.get(query.isEmpty ? path : path + "?" + query.joined(separator: "&"))
        let text = String(decoding: answer.body, as: UTF8.self)
        guard BackendAPI.code(answer) == 0, let data = BackendAPI.object(answer)?["data"] as? [String: Any] else {
            if arguments.has("--json") { CommandOutput.line(text) }
            let why = BackendAPI.object(answer)?["msg"] as? String
            throw BackendAPI.Failure(sentence: "the gateway does not tell: \(why ?? "HTTP \(answer.status)")")
        }
        if arguments.has("--json") {
            CommandOutput.line(text)
        } else {
            let isOfOne = arguments.value("--msgid") != nil || arguments.value("--taskid") != nil
            for line in lines(data, isOfOne: isOfOne) { CommandOutput.line(line) }
        }
        return data["found"] as? Bool == true ? 0 : 1
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122, 0x5f, 0x2d: true
        default: false
        }
    }

    /// The verdict first, then a line an event.
    static func lines(_ data: [String: Any], isOfOne: Bool) -> [String] {
        var lines = [data["verdict"] as? String ?? "The gateway gave no verdict."]
        let messages = data["messages"] as? [[String: Any]] ?? []
        if messages.count > 1 {
            lines.append("")
            for message in messages {
                let id = message["msgid"] as? String ?? "?"
                lines.append("\(id)  \(message["verdict"] as? String ?? "")")
            }
        }
        var events: [Event] = []
        for message in messages {
            events += (message["events"] as? [[String: Any]] ?? []).compactMap { Event($0) }
        }
        events += (data["events"] as? [[String: Any]] ?? []).compactMap { Event($0) }
        guard !events.isEmpty else { return lines }
        lines.append("")
        // What one fact says of many messages is one line.
        var said: Set<Int> = []
        for event in events.sorted(by: { $0.order < $1.order }) where said.insert(event.order).inserted {
            lines.append(event.line)
        }
        if data["more"] as? Bool == true {
            lines.append("\(isOfOne ? "Events between" : "Older events") are left out; --limit asks for more.")
        }
        return lines
    }

    private struct Event {
        let order: Int
        let line: String

        init?(_ object: [String: Any]) {
            guard let at = (object["time"] as? String).flatMap({ Int64($0) }), let name = object["event"] as? String,
                let order = object["order"] as? Int
            else { return nil }
            self.order = order
            let padded = name.padding(toLength: max(name.count, 15), withPad: " ", startingAt: 0)
            line = "\(Instant(milliseconds: at).utcText)  \(padded)  \(object["text"] as? String ?? "")"
        }
    }
}
