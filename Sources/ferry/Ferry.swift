internal import Foundation

@main
enum Ferry {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let rest = Array(arguments.dropFirst())
        switch arguments.first {
        case "listen": exit(ListenCommand.run(rest))
        case "push": exit(PushCommand.run(rest))
        default:
            CommandOutput.failure("usage: ferry listen|push [options]; see ferry listen --help")
            exit(2)
        }
    }
}
