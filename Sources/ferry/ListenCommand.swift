internal import FerryClient
internal import FerryCore
internal import FerryIO
internal import Foundation
internal import Synchronization

/// `ferry listen`: a device on the command line. One JSON object a line for each thing that happens.
enum ListenCommand {
    private static let parser = ArgumentParser(
        command: "listen",
        summary: "Attaches to a gateway as a device and prints what it gets, one JSON object a line.",
        options: [
            CommandOption("--server", "HOST:PORT", help: "the gateway's device port", isRequired: true),
            CommandOption("--app", "ID", help: "the app's id", isRequired: true),
            CommandOption(
                "--app-secret", "SECRET", help: "the app's secret for devices", environment: "FERRY_APP_SECRET",
                isRequired: true),
            CommandOption("--state", "FILE", help: "keeps the identity and the place in the stream; made if missing"),
            CommandOption("--cid", "CID", help: "ends with an error unless the state file holds this identity"),
            CommandOption("--device-token", "HEX", help: "the APNs token to register"),
            CommandOption("--environment", "NAME", help: "of the token: sandbox or production (default: production)"),
            CommandOption("--count", "N", help: "ends after N payloads, when they are acknowledged"),
            CommandOption("--no-compression", help: "wants all payloads uncompressed"),
            CommandOption("--no-ack", help: "never acknowledges, for tests"),
        ])

    /// Runs until told to stop; answers the exit status.
    static func run(_ arguments: [String]) -> Int32 {
        CommandOutput.run(parser, arguments) { arguments in
            do throws(Failure) {
                return try listen(arguments)
            } catch {
                CommandOutput.failure(error.sentence)
                return 1
            }
        }
    }

    private struct Failure: Error { let sentence: String }

    private static func listen(_ arguments: ArgumentParser.Arguments) throws(Failure) -> Int32 {
        let configuration = try configuration(arguments)
        let count = try count(arguments)
        let signals: ProcessSignals
        do throws(SystemError) { signals = try ProcessSignals() } catch { throw Failure(sentence: error.description) }
        let listener = Listener(appID: configuration.appID, count: count)
        let client: DeviceClient
        do throws(DeviceClientError) {
            if let path = arguments.value("--state") {
                client = try DeviceClient(configuration, store: FileIdentityStore(path: path), handler: listener.take)
            } else {
                client = try DeviceClient(configuration, handler: listener.take)
            }
            try check(client, arguments)
            listener.watch(client)
            if count == 0 { return 0 }
            try client.start()
        } catch {
            throw Failure(sentence: error.description)
        }
        while !client.hasEnded {
            if signals.wait(milliseconds: 50) { client.stop() }
        }
        client.wait()
        if let sentence = listener.failure { throw Failure(sentence: sentence) }
        return 0
    }

    private static func configuration(
        _ arguments: ArgumentParser.Arguments
    ) throws(Failure) -> DeviceConfiguration {
        var configuration = DeviceConfiguration(
            server: arguments.value("--server") ?? "", appID: arguments.value("--app") ?? "",
            appSecret: arguments.value("--app-secret") ?? "")
        configuration.takesCompressedPayloads = !arguments.has("--no-compression")
        configuration.acknowledges = !arguments.has("--no-ack")
        configuration.clientInfo = "ferry listen"
        let name = arguments.value("--environment") ?? "production"
        guard let environment = DeviceConfiguration.Environment(rawValue: name) else {
            throw Failure(sentence: "--environment is sandbox or production, not \"\(name)\"")
        }
        if let hex = arguments.value("--device-token") {
            guard let bytes = Hexadecimal.decode(hex) else {
                throw Failure(sentence: "--device-token is not an even number of hex digits")
            }
            configuration.deviceToken = .init(environment: environment, bytes: bytes)
        }
        return configuration
    }

    private static func count(_ arguments: ArgumentParser.Arguments) throws(Failure) -> UInt64? {
        guard let text = arguments.value("--count") else { return nil }
        guard let count = UInt64(text) else { throw Failure(sentence: "--count is a number, not \"\(text)\"") }
        return count
    }

    private static func check(
        _ client: DeviceClient, _ arguments: ArgumentParser.Arguments
    ) throws(DeviceClientError) {
        guard let wanted = arguments.value("--cid") else { return }
        guard let stored = client.storedCID else {
            throw .store("there is no identity in the state file, so it is not device \(wanted)")
        }
        guard stored == wanted.lowercased() else {
            throw .store("the state file holds device \(stored), not \(wanted)")
        }
    }
}

/// Prints a client's events and decides when they are enough. Everything but `failure` happens on the client's thread.
private final class Listener: Sendable {
    private struct State {
        var left: UInt64?
        var client: @Sendable () -> Void = {}
        var failure: String?
    }

    private let appID: String
    private let state: Mutex<State>

    init(appID: String, count: UInt64?) {
        self.appID = appID
        state = Mutex(State(left: count))
    }

    /// Why the command must end with an error; nil when it need not.
    var failure: String? { state.withLock { $0.failure } }

    func watch(_ client: DeviceClient) {
        state.withLock { $0.client = { [weak client] in client?.stop() } }
    }

    @Sendable func take(_ event: DeviceEvent) {
        if let line = line(for: event), !CommandOutput.line(line.text) {
            // The message has not reached anybody, so it must not be acknowledged.
            CommandOutput.failure("nobody reads the output any more")
            exit(1)
        }
        switch event {
        case .message, .notification, .revoke: countDown()
        case .offline(let reason, _, .inForeground): end(with: reason)
        case .stopped(.refused(let code, let text)): end(with: "the gateway refused: \(code) \(text)")
        case .registered, .online, .gap, .tokenSaved, .offline, .stopped: break
        }
    }

    private func countDown() {
        let stop: (@Sendable () -> Void)? = state.withLock { state in
            guard let left = state.left else { return nil }
            state.left = left > 0 ? left - 1 : 0
            return left <= 1 ? state.client : nil
        }
        stop?()
    }

    /// A command has no foreground to come back to, so "wait for it" ends it too.
    private func end(with reason: String) {
        let stop = state.withLock { state in
            if state.failure == nil { state.failure = reason }
            return state.client
        }
        stop()
    }

    private func set(_ event: String, _ message: DeviceEvent.Message, _ line: inout JSONLine) {
        line.set("event", event)
        line.set("seq", message.seq)
        line.set("msgId", message.messageID)
        line.set("taskId", message.taskID)
        line.set("offLine", message.isOffLine)
        line.set("appId", appID)
        if message.wasCompressed { line.set("compressed", true) }
    }

    private func line(for event: DeviceEvent) -> JSONLine? {
        var line = JSONLine()
        switch event {
        case .registered(let cid):
            line.set("event", "registered")
            line.set("cid", cid)
        case .online(let cid, let keptMessages):
            line.set("event", "online")
            line.set("cid", cid)
            line.set("kept", keptMessages)
        case .message(let message):
            set("payload", message, &line)
            if let text = String(validating: message.payload, as: UTF8.self) {
                line.set("payload", text)
            } else {
                line.set("payloadBase64", Data(message.payload).base64EncodedString())
            }
        case .notification(let notification):
            set("notification", notification.message, &line)
            line.set("notification", notification.line)
        case .revoke(let revoke):
            set("revoke", revoke.message, &line)
            line.set("oldTaskId", revoke.oldTaskID)
            line.set("force", revoke.isForced)
        case .gap(let gap):
            var reasons = JSONLine()
            reasons.set("expired", gap.expired)
            reasons.set("overflowed", gap.overflowed)
            line.set("event", "gap")
            line.set("count", gap.count)
            line.set("reasons", reasons)
        case .offline(let reason, _, _):
            line.set("event", "offline")
            line.set("reason", reason)
        case .tokenSaved:
            line.set("event", "tokenSaved")
        case .stopped: return nil
        }
        return line
    }
}
