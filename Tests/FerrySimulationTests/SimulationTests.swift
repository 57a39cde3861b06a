internal import FerryIO
internal import FerrySimulation
internal import Foundation
internal import Testing

struct SimulationTests {
    @Test func `Fifty worlds keep the promises`() {
        EventLog.silence()
        for seed in UInt64(1)...50 {
            let outcome = Simulation.run(seed: seed, steps: 400)
            #expect(outcome.violation == nil, "seed \(seed)")
        }
    }

    @Test func `A world has messages, restarts and wake-ups in it`() {
        EventLog.silence()
        let outcomes = (UInt64(100)...110).map { Simulation.run(seed: $0, steps: 800) }
        #expect(outcomes.reduce(0) { $0 + $1.messages } > 100)
        #expect(outcomes.reduce(0) { $0 + $1.restarts } > 5)
        #expect(outcomes.reduce(0) { $0 + $1.stubs } > 20)
    }

    /// Whole processes, since Swift hashes the same each time only in those that were told so before they began.
    @Test func `The same seeds do the same in another process`() throws {
        let first = try Self.hash(ofSeedsFrom: 7)
        #expect(try Self.hash(ofSeedsFrom: 7) == first)
        #expect(try Self.hash(ofSeedsFrom: 8) != first)
    }

    private static func hash(ofSeedsFrom seed: Int) throws -> String {
        let runner = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: runner).deletingLastPathComponent()
            .appendingPathComponent("ferry")
        process.arguments = ["simulate", "--first", String(seed), "--seeds", "5", "--steps", "600"]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let line = try #require(text.split(separator: "\n").last, "\(runner) said nothing")
        let object = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        return try #require(object["hash"] as? String)
    }
}
