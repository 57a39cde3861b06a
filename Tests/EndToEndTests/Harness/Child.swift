internal import Foundation
private import Synchronization

/// A process of the `ferry` that was built beside the tests. It dies with this object.
final class Child: Sendable {
    private let process: Process
    private let lines = Inbox<String>()
    private let exit = Inbox<Int32>()
    private let errors = Mutex(Data())
    /// What it wrote on stdout after the last whole line.
    private let partial = Mutex(Data())
    private let output: Pipe
    private let errorOutput: Pipe

    var processIdentifier: Int32 { process.processIdentifier }
    /// All that it wrote on stderr until now.
    var errorText: String { errors.withLock { String(decoding: $0, as: UTF8.self) } }

    init(_ arguments: [String], environment: [String: String] = [:]) throws {
        let runner = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        process = Process()
        process.executableURL = URL(fileURLWithPath: runner).deletingLastPathComponent().appendingPathComponent("ferry")
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
            .merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
        output = Pipe()
        errorOutput = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errorOutput
        process.terminationHandler = { [exit] process in
            // A signal's number is negative, so that no exit status looks like one.
            exit.put(
                process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus)
        }
        output.fileHandleForReading.readabilityHandler = { [weak self] handle in
            let data = handle.availableData
            if data.isEmpty { handle.readabilityHandler = nil }
            self?.take(data)
        }
        errorOutput.fileHandleForReading.readabilityHandler = { [weak self] handle in
            let data = handle.availableData
            if data.isEmpty { handle.readabilityHandler = nil }
            self?.errors.withLock { $0.append(data) }
        }
        try process.run()
    }

    deinit {
        output.fileHandleForReading.readabilityHandler = nil
        errorOutput.fileHandleForReading.readabilityHandler = nil
        if process.isRunning { send(SIGKILL) }
    }

    private func take(_ data: Data) {
        let whole: [String] = partial.withLock { partial in
            partial.append(data)
            var found: [String] = []
            while let end = partial.firstIndex(of: 0x0a) {
                found.append(String(decoding: partial[partial.startIndex..<end], as: UTF8.self))
                partial = Data(partial[(end + 1)...])
            }
            return found
        }
        for line in whole { lines.put(line) }
        if data.isEmpty { lines.end() }
    }

    /// The next line of its stdout; nil at its end.
    func line(within patience: Duration = patience) async throws -> String? {
        switch await lines.next(within: patience) {
        case .item(let line): return line
        case .ended: return nil
        case .late: throw Unexpected("no line came in time; stderr: \(errorText)")
        }
    }

    func send(_ signal: Int32) { _ = kill(process.processIdentifier, signal) }

    /// Its exit status, or the number of the signal that ended it, negative. To be asked once.
    func status(within patience: Duration = patience) async throws -> Int32 {
        guard case .item(let status) = await exit.next(within: patience) else {
            throw Unexpected("the process did not end in time; stderr: \(errorText)")
        }
        return status
    }

    /// Runs a command to its end.
    static func run(
        _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> (status: Int32, lines: [String], errors: String) {
        let child = try Child(arguments, environment: environment)
        var lines: [String] = []
        while let line = try await child.line() { lines.append(line) }
        let status = try await child.status()
        return (status, lines, child.errorText)
    }
}
