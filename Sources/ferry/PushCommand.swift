internal import FerryCore
internal import FerryIO
internal import Foundation

/// `ferry push`: sends one message to one device, or to all, over the gateway's HTTP API.
enum PushCommand {
    private static let parser = ArgumentParser(
        command: "push",
        summary: """
            Sends one message to one device, or with --all to every device of the app, over the gateway's HTTP API and
            prints the API's answer.

            With --stream it sends many over a backend's link instead, read from stdin as lines of JSON:
              {"cid": …, "payload": text or "payloadBase64": …, "ttl": ms, "id": 32 hex digits, "alert": {"aps": …},
               "collapseId": …}
            of which only the device and one payload are needed. A line that comes again under the same id is not delivered
            twice. Prints a line a second on stderr, refused and unanswered ones as lines of JSON on stdout; exits 0 only
            when all were accepted.
            """,
        options: BackendAPI.optionsIfStreaming + [
            CommandOption("--cid", "CID", help: "the device; this or --all"),
            CommandOption("--all", help: "every device of the app that is registered now"),
            CommandOption("--payload", "TEXT", help: "the message; this or --payload-file"),
            CommandOption("--payload-file", "FILE", help: "reads the message, UTF-8, from a file"),
            CommandOption("--ttl", "MS", help: "how long to keep the message, in milliseconds; -1: live only"),
            CommandOption("--request-id", "ID", help: "makes a repeat safe (default: random)"),
            CommandOption("--stream", help: "reads messages from stdin and sends them over a link"),
            CommandOption("--link", "HOST:PORT", help: "with --stream: the gateway's address for backends' links"),
        ])

    /// Answers the exit status: 0 only when the API said that it took the message.
    static func run(_ arguments: [String]) -> Int32 {
        CommandOutput.run(parser, arguments) { arguments in
            if arguments.has("--stream") { return PushStream.run(arguments) }
            // Not marked as required, since a stream needs none of them.
            if arguments.has("--all"), arguments.has("--cid") {
                CommandOutput.failure("give --cid or --all, not both")
                return 2
            }
            let needed = ["--http", "--app-key"] + (arguments.has("--all") ? [] : ["--cid"])
            for name in needed where !arguments.has(name) {
                let alternative = name == "--app-key" ? " (or FERRY_APP_KEY in the environment)" : ""
                CommandOutput.failure("\(name)\(alternative) is missing; see ferry push --help")
                return 2
            }
            return BackendAPI.run { () throws(Failure) in try push(arguments) }
        }
    }

    private typealias Failure = BackendAPI.Failure

    private static func push(_ arguments: ArgumentParser.Arguments) throws(Failure) -> Int32 {
        let message = try message(arguments)
        let api = try BackendAPI(arguments)
        let call = arguments.has("--all") ? "all" : "single/cid"
        let answer = try api.post("/v2/\(api.app)/push/\(call)", message)
        CommandOutput.line(String(decoding: answer.body, as: UTF8.self))
        return BackendAPI.code(answer) == 0 ? 0 : 1
    }

    private static func message(_ arguments: ArgumentParser.Arguments) throws(Failure) -> [String: Any] {
        let text: String
        switch (arguments.value("--payload"), arguments.value("--payload-file")) {
        case (let payload?, nil): text = payload
        case (nil, let path?): text = try contents(of: path)
        case (nil, nil): throw Failure(sentence: "--payload or --payload-file is missing; see ferry push --help")
        case (_?, _?): throw Failure(sentence: "give --payload or --payload-file, not both")
        }
        var message: [String: Any] = [
            "request_id": arguments.value("--request-id") ?? Hexadecimal.encode(Cryptography.random(16)),
            "audience": arguments.has("--all") ? "all" : ["cid": [arguments.value("--cid") ?? ""]] as Any,
            "push_message": ["transmission": text],
        ]
        if let ttl = arguments.value("--ttl") {
            guard let milliseconds = Int(ttl) else {
                throw Failure(sentence: "--ttl is a number of milliseconds, not \"\(ttl)\"")
            }
            message["settings"] = ["ttl": milliseconds]
        }
        return message
    }

    private static func contents(of path: String) throws(Failure) -> String {
        let bytes: [UInt8]?
        do throws(SystemError) {
            // Above the limit the API answers why; far above, it is not worth reading.
            bytes = try FileReplacement.read(path, limit: 16 * Limits.payloadBytes)
        } catch {
            throw Failure(sentence: error.description)
        }
        guard let bytes else { throw Failure(sentence: "there is no file \(path)") }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Failure(sentence: "\(path) is not UTF-8 text")
        }
        return text
    }
}
