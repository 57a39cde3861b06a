internal import FerryCore
internal import FerryIO
internal import Foundation

/// `ferry push`: sends one message to one device over the gateway's HTTP API.
enum PushCommand {
    private static let parser = ArgumentParser(
        command: "push",
        summary: """
            Sends one message to one device over the gateway's HTTP API and prints the API's answer.

            With --stream it sends many over a backend's link instead, read from stdin as lines of JSON:
              {"cid": …, "payload": text or "payloadBase64": …, "ttl": ms, "id": 32 hex digits, "alert": {"aps": …},
               "collapseId": …}
            of which only the device and one payload are needed. A line that comes again under the same id is not delivered
            twice. Prints a line a second on stderr, refused and unanswered ones as lines of JSON on stdout; exits 0 only
            when all were accepted.
            """,
        options: [
            CommandOption("--http", "URL", help: "the gateway's API, such as http://127.0.0.1:7800"),
            CommandOption("--app", "ID", help: "the app's id", isRequired: true),
            CommandOption("--app-key", "KEY", help: "the app's key", environment: "FERRY_APP_KEY"),
            CommandOption(
                "--master-secret", "SECRET", help: "the app's secret for backends", environment: "FERRY_MASTER_SECRET",
                isRequired: true),
            CommandOption("--cid", "CID", help: "the device"),
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
            do throws(Failure) {
                for name in ["--http", "--app-key", "--cid"] where !arguments.has(name) {
                    let alternative = name == "--app-key" ? " (or FERRY_APP_KEY in the environment)" : ""
                    CommandOutput.failure("\(name)\(alternative) is missing; see ferry push --help")
                    return 2
                }
                return try push(arguments)
            } catch {
                CommandOutput.failure(error.sentence)
                return 1
            }
        }
    }

    private struct Failure: Error { let sentence: String }

    private static func push(_ arguments: ArgumentParser.Arguments) throws(Failure) -> Int32 {
        let app = arguments.value("--app") ?? ""
        guard AppID(app) != nil else {
            throw Failure(sentence: "\"\(app)\" is not an app id: 1 to 64 of letters, digits, '-', '_', '.'")
        }
        let message = try message(arguments)
        let client = try HTTPRequester.make(arguments.value("--http") ?? "").get(Failure.init(sentence:))
        let token = try authenticate(client, app: app, arguments)
        let answer = try client.post("/v2/\(app)/push/single/cid", json: try json(message), token: token)
            .get(Failure.init(sentence:))
        CommandOutput.line(String(decoding: answer.body, as: UTF8.self))
        let object = try? JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        return object?["code"] as? Int == 0 ? 0 : 1
    }

    private static func authenticate(
        _ client: HTTPRequester, app: String, _ arguments: ArgumentParser.Arguments
    ) throws(Failure) -> String {
        let key = arguments.value("--app-key") ?? ""
        let timestamp = String(WallClock().now.milliseconds)
        let signed = Array((key + timestamp + (arguments.value("--master-secret") ?? "")).utf8)
        let request = [
            "sign": Hexadecimal.encode(Cryptography.sha256(signed)), "timestamp": timestamp, "appkey": key,
        ]
        let answer = try client.post("/v2/\(app)/auth", json: try json(request), token: nil).get(
            Failure.init(sentence:))
        let object = try? JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        let data = object?["data"] as? [String: Any]
        guard object?["code"] as? Int == 0, let token = data?["token"] as? String else {
            CommandOutput.line(String(decoding: answer.body, as: UTF8.self))
            throw Failure(
                sentence: "the gateway did not accept the app's key and master secret (HTTP \(answer.status))")
        }
        return token
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
            "audience": ["cid": [arguments.value("--cid") ?? ""]],
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

    private static func json(_ object: Any) throws(Failure) -> [UInt8] {
        do {
            return Array(try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys]))
        } catch {
            throw Failure(sentence: "the message is not JSON: \(error)")
        }
    }
}

extension Result where Failure == HTTPRequester.Problem {
    /// The value, or the problem as another kind of error.
    fileprivate func get<Other: Error>(_ other: (String) -> Other) throws(Other) -> Success {
        switch self {
        case .success(let value): return value
        case .failure(let problem): throw other(problem.sentence)
        }
    }
}
