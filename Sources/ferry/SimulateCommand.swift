internal import FerryIO
internal import FerrySimulation
internal import Foundation

/// `ferry simulate`: plays gateways by seed and checks the promises.
enum SimulateCommand {
    static let parser = ArgumentParser(
        command: "simulate",
        summary: """
            Plays whole gateways, each with its devices, backends, disk, network and time, as a seed has it, and checks
            what Ferry promises. A seed that breaks a promise is printed with the command that plays it again. Progress
            goes to stderr; the last line, on stdout, is JSON. The status is 1 when a promise was broken.
            """,
        options: [
            CommandOption("--seeds", "N", help: "how many seeds; default 1000, with --seed 1"),
            CommandOption("--first", "S", help: "the first seed; default 1"),
            CommandOption("--seed", "S", help: "this seed alone"),
            CommandOption("--steps", "K", help: "how long each is; default 2500"),
            CommandOption("--trace", help: "writes all that happens to stderr"),
        ])

    static func run(_ arguments: [String]) -> Int32 {
        CommandOutput.run(parser, arguments) { options in
            hashTheSameEachTime()
            if !options.has("--trace") { EventLog.silence() }
            let seed = options.value("--seed").map { UInt64($0) }
            guard let first = seed ?? UInt64(options.value("--first") ?? "1"),
                let count = UInt64(options.value("--seeds") ?? (seed == nil ? "1000" : "1")), count >= 1,
                let steps = Int(options.value("--steps") ?? "2500"), steps >= 1
            else {
                CommandOutput.failure("--seed, --seeds, --first and --steps take whole numbers; see --help")
                return 2
            }
            return play(first, count, steps: steps, isTraced: options.has("--trace"))
        }
    }

    /// What iterates over a dictionary does it in another order in each process, unless this is said before it starts.
    private static func hashTheSameEachTime() {
        guard ProcessInfo.processInfo.environment["SWIFT_DETERMINISTIC_HASHING"] == nil else { return }
        setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
        var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) }
        arguments.append(nil)
        execv("/proc/self/exe", &arguments)
        CommandOutput.failure("cannot start again with hashes that are the same each time")
        exit(1)
    }

    private static func play(_ first: UInt64, _ count: UInt64, steps: Int, isTraced: Bool) -> Int32 {
        let started = Date()
        var told = started
        var failed: [UInt64] = []
        var (messages, restarts, stubs, virtualSeconds) = (0, 0, 0, Int64(0))
        var hash: UInt64 = 0
        for offset in 0..<count {
            let outcome = Simulation.run(seed: first &+ offset, steps: steps, isTraced: isTraced)
            messages += outcome.messages
            restarts += outcome.restarts
            stubs += outcome.stubs
            virtualSeconds += outcome.virtualSeconds
            hash = hash &* 31 &+ outcome.hash
            if let violation = outcome.violation {
                failed.append(outcome.seed)
                CommandOutput.failure(
                    "seed \(outcome.seed) breaks \(violation)\n  ferry simulate --seed \(outcome.seed) --steps \(steps) --trace"
                )
            }
            if Date().timeIntervalSince(told) >= 1 {
                told = Date()
                EventLog.print("\(offset + 1) of \(count) seeds, \(failed.count) failed\n")
            }
        }
        let seconds = Date().timeIntervalSince(started)
        var line = JSONLine()
        line.set("seeds", count)
        line.set("failed", UInt64(failed.count))
        line.set("failedSeeds", failed.prefix(20).map(String.init).joined(separator: " "))
        line.set("messages", UInt64(messages))
        line.set("restarts", UInt64(restarts))
        line.set("stubs", UInt64(stubs))
        line.set("virtualSeconds", UInt64(virtualSeconds))
        line.set("seconds", String(format: "%.1f", seconds))
        line.set("seedsPerSecond", String(format: "%.1f", Double(count) / seconds))
        line.set("hash", String(hash, radix: 16))
        CommandOutput.line(line.text)
        return failed.isEmpty ? 0 : 1
    }
}
