internal import FerryCore
internal import FerryIO
internal import Foundation

/// The gateway's HTTP API as a backend of one app uses it, from a command's options.
struct BackendAPI {
    struct Failure: Error { let sentence: String }

    /// `/v2/{app}` and the like stand before the path.
    let app: String
    private let client: HTTPRequester
    private let token: String

    static let options = [
        CommandOption("--http", "URL", help: "the gateway's API, such as http://127.0.0.1:7800", isRequired: true),
        CommandOption("--app", "ID", help: "the app's id", isRequired: true),
        CommandOption("--app-key", "KEY", help: "the app's key", environment: "FERRY_APP_KEY", isRequired: true),
        CommandOption(
            "--master-secret", "SECRET", help: "the app's secret for backends", environment: "FERRY_MASTER_SECRET",
            isRequired: true),
    ]

    /// The same for a command that may do without HTTP.
    static let optionsIfStreaming = options.map {
        $0.name == "--http" || $0.name == "--app-key"
            ? CommandOption($0.name, $0.value, help: $0.help, environment: $0.environment) : $0
    }

    /// Authenticates.
    init(_ arguments: ArgumentParser.Arguments) throws(Failure) {
        app = arguments.value("--app") ?? ""
        guard AppID(app) != nil else {
            throw Failure(sentence: "\"\(app)\" is not an app id: 1 to 64 of letters, digits, '-', '_', '.'")
        }
        client = try HTTPRequester.make(arguments.value("--http") ?? "").get(Failure.init(sentence:))
        let key = arguments.value("--app-key") ?? ""
        let timestamp = String(WallClock().now.milliseconds)
        let signed = Array((key + timestamp + (arguments.value("--master-secret") ?? "")).utf8)
        let request = [
            "sign": Hexadecimal.encode(Cryptography.sha256(signed)), "timestamp": timestamp, "appkey": key,
        ]
        let answer = try client.post("/v2/\(app)/auth", json: try Self.json(request), token: nil).get(
            Failure.init(sentence:))
        let data = Self.object(answer)?["data"] as? [String: Any]
        guard Self.code(answer) == 0, let token = data?["token"] as? String else {
            CommandOutput.line(String(decoding: answer.body, as: UTF8.self))
            throw Failure(
                sentence: "the gateway did not accept the app's key and master secret (HTTP \(answer.status))")
        }
        self.token = token
    }

    /// Runs a command's body; what fails is told in a sentence, and the exit status is 1.
    static func run(_ body: () throws(Failure) -> Int32) -> Int32 {
        do throws(Failure) {
            return try body()
        } catch {
            CommandOutput.failure(error.sentence)
            return 1
        }
    }

    func post(_ path: String, _ object: Any) throws(Failure) -> HTTPRequester.Answer {
        try client.post(path, json: try Self.json(object), token: token).get(Failure.init(sentence:))
    }

    func get(_ path: String) throws(Failure) -> HTTPRequester.Answer {
        try client.get(path, token: token).get(Failure.init(sentence:))
    }

    static func object(_ answer: HTTPRequester.Answer) -> [String: Any]? {
        try? JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
    }

    /// The API's code; nil when the answer is none of its own.
    static func code(_ answer: HTTPRequester.Answer) -> Int? { object(answer)?["code"] as? Int }

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
