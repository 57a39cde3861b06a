internal import FerryCore
internal import FerryIO
internal import Foundation

/// Ends the process when its stop does not come to an end: threads that wait for a disk that does not answer cannot be told
/// to give up. What was answered is on disk already and nothing else was promised, so that this is like `kill -9`: it costs
/// the next start the reading of the journal, and nobody anything else.
enum StopWatchdog {
    /// The exit status of a stop that was given up.
    static let exitStatus: Int32 = 3

    /// Beyond the drain's deadline: for the last syncs, and for closing files.
    static let spareTime = Duration.seconds(5)

    /// Within which the log must take its line. It may be a file on the very disk that does not answer.
    private static let loggingTime = Duration.seconds(1)

    /// Gives the stop, which begins now, its time.
    static func arm(drainDeadline: Duration) {
        let limit = drainDeadline + spareTime
        start("stop-watchdog", after: limit) {
            EventLog.write(
                .error, "the stop was given up: a disk does not answer",
                ["afterMs": "\(limit.inMilliseconds)", "status": "\(exitStatus)"])
        }
        start("stop-end", after: limit + loggingTime) {}
    }

    private static func start(_ name: String, after time: Duration, _ lastWord: @escaping @Sendable () -> Void) {
        do {
            _ = try OSThread(name: name) {
                Thread.sleep(forTimeInterval: Double(time.inMilliseconds) / 1_000)
                lastWord()
                ProcessEnd.now(status: exitStatus)
            }
        } catch {
            EventLog.write(.warning, "nothing bounds the stop", ["reason": "\(error)"])
        }
    }
}
