internal import Foundation

@main
enum Ferry {
    /// Every command: its name, what it does, and how it is run.
    private static let commands: [(name: String, summary: String, run: @Sendable ([String]) -> Int32)] = [
        ("serve", "runs the gateway", { ServeCommand.run($0) }),
        ("listen", "is a device: prints what it gets", { ListenCommand.run($0) }),
        ("push", "pushes one message to one device", { PushCommand.run($0) }),
        ("explain", "tells what happened to a message, and why", { ExplainCommand.run($0) }),
        ("bench", "measures a gateway", { BenchCommand.run($0) }),
        ("simulate", "plays gateways by seed and checks the promises", { SimulateCommand.run($0) }),
    ]

    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let name = arguments.first else {
            CommandOutput.failure("which command? \(names); see ferry --help")
            exit(2)
        }
        if ["--help", "-h", "help"].contains(name) {
            CommandOutput.line(help)
            exit(0)
        }
        guard let command = commands.first(where: { $0.name == name }) else {
            CommandOutput.failure("there is no command \"\(name)\"; there are \(names)")
            exit(2)
        }
        exit(command.run(Array(arguments.dropFirst())))
    }

    private static var names: String { commands.map(\.name).joined(separator: ", ") }

    private static var help: String {
        let lines = commands.map {
            "  \($0.name.padding(toLength: 10, withPad: " ", startingAt: 0))\($0.summary)"
        }
        return "Usage: ferry COMMAND [options]\n\n" + lines.joined(separator: "\n")
            + "\n\nferry COMMAND --help tells the options."
    }
}
