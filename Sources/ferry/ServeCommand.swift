internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import Foundation

/// `ferry serve`: the gateway.
enum ServeCommand {
    static let parser = ArgumentParser(
        command: "serve",
        summary: """
            Runs the gateway until TERM or INT. Prints one line of JSON on stdout when it is ready; logs go to stderr.
            Without an apps file it makes a first app and says how to try it.
            """,
        options: [
            CommandOption(
                "--config", "FILE", help: "configuration, a JSON object; see docs/configuration.md",
                environment: "FERRY_CONFIG"),
            CommandOption("--data", "DIR", help: "data folder; default ./data", environment: "FERRY_DATA"),
            CommandOption(
                "--identity", "FILE", help: "identity key, kept apart from the data; default DIR.identity",
                environment: "FERRY_IDENTITY"),
            CommandOption(
                "--device-listen", "HOST:PORT", help: "for devices; default 127.0.0.1:7700, port 0 picks one"),
            CommandOption("--http-listen", "HOST:PORT", help: "for backends; default 127.0.0.1:7800, port 0 picks one"),
            CommandOption(
                "--backend-listen", "HOST:PORT",
                help: "for backends' links, or none; default 127.0.0.1:7900, or a port that is picked like the devices'"
            ),
            CommandOption(
                "--apps", "FILE", help: "apps, a JSON array; default DIR.apps.json", environment: "FERRY_APPS"),
            CommandOption("--store", "embedded|memory", help: "memory keeps nothing; default embedded"),
            CommandOption("--shards", "N", help: "threads; default one per core"),
            CommandOption(
                "--accept-loss",
                help: "opens a damaged data folder with what can be read of it; devices start over in a new epoch"),
            CommandOption("--witness", "FILE", help: "for the crash campaign: notes in FILE what has been synced"),
            CommandOption(
                "--insecure-plain", help: "lets listeners without TLS be reached from beyond this machine"),
        ])

    static func run(_ arguments: [String]) -> Int32 {
        CommandOutput.run(parser, arguments) { arguments in
            do {
                // Before any thread, so that all of them leave TERM and INT to this one.
                let signals = try ProcessSignals()
                _ = ProcessSignals.raiseDescriptorLimit()
                return try serve(ServeSettings(arguments), signals)
            } catch {
                CommandOutput.failure("\(error)")
                return 1
            }
        }
    }

    private static func serve(_ settings: ServeSettings, _ signals: ProcessSignals) throws -> Int32 {
        let started = Date()
        let gateway = try Gateway.open(settings.configuration) { done, all in
            if all > 1 { EventLog.write(.info, "reading the journal", ["segment": "\(done)", "of": "\(all)"]) }
        }
        if let firstApp = settings.firstApp {
            EventLog.print(FirstAppGuide.text(firstApp, gateway: gateway, settings: settings))
        }
        EventLog.write(
            .info, "ready",
            [
                "device": gateway.deviceAddress.description, "http": gateway.httpAddress.description,
                "backend": gateway.linkAddress?.description ?? "none", "shards": "\(settings.configuration.shards)",
                "seconds": String(format: "%.2f", Date().timeIntervalSince(started)),
            ])
        var ready = JSONLine()
        ready.set("event", "ready")
        ready.set("device", gateway.deviceAddress.description)
        ready.set("http", gateway.httpAddress.description)
        if let address = gateway.linkAddress { ready.set("backend", address.description) }
        ready.set("pid", UInt64(ProcessInfo.processInfo.processIdentifier))
        CommandOutput.line(ready.text)
        var signal = signals.wait()
        while signal == SIGUSR1 {
            if !gateway.confirmClockStep() {
                EventLog.write(.info, "no step of the wall clock to confirm", ["signal": "USR1"])
            }
            signal = signals.wait()
        }
        // First of all: even the next line may have to wait for a disk.
        StopWatchdog.arm(drainDeadline: settings.configuration.drainDeadline)
        EventLog.write(.info, "stopping", ["signal": signal == SIGTERM ? "TERM" : "INT"])
        gateway.stop()
        EventLog.write(.info, "stopped")
        return 0
    }
}
