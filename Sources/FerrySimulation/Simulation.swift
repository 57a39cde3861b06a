internal import FerryCore

/// Plays one gateway with devices, backends, a disk, a network and time of its own, as the seed has it, and checks what Ferry
/// promises. The same seed does the same each time, where Swift hashes the same each time: `SWIFT_DETERMINISTIC_HASHING`.
package enum Simulation {
    package struct Outcome: Sendable {
        package let seed: UInt64
        /// One number for all that happened.
        package let hash: UInt64
        package let messages: Int
        package let restarts: Int
        package let stubs: Int
        package let virtualSeconds: Int64
        /// The first promise that was not kept.
        package let violation: Violation?
    }

    /// - Parameter isTraced: what happens is written to stderr.
    package static func run(seed: UInt64, steps: Int, isTraced: Bool = false) -> Outcome {
        let trace = Trace(isTold: isTraced)
        var violation: Violation?
        var world: World?
        do {
            let made = try World(seed: seed, trace: trace)
            world = made
            while trace.step < steps, made.violation == nil {
                trace.step += 1
                try made.step()
            }
            if made.violation == nil { try made.calmDown() }
            if made.violation == nil { try made.eraseSomeone() }
            if made.violation == nil { try made.heal() }
            violation = made.violation
            made.end()
        } catch {
            violation = Violation(promise: "P1", what: "the gateway does not start: \(error)")
        }
        let ledger = world?.ledger
        return Outcome(
            seed: seed, hash: trace.hash, messages: ledger?.posts.count ?? 0, restarts: max(0, (ledger?.life ?? 0) - 1),
            stubs: ledger?.devices.reduce(0) { $0 + $1.allStubSteps.count } ?? 0,
            virtualSeconds: trace.milliseconds / 1000, violation: violation)
    }
}
