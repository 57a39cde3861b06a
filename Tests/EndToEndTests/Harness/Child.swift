internal import Foundation
private import FerryIO
private import Glibc
private import Synchronization

/// A process of the `ferry` that was built beside the tests, or of another executable. It dies with this object.
final class Child: Sendable {
    private let process: Process
    private let exit: Inbox<Int32>
    private let lines = Lines()
    private let errors = Shared(Data())
    private let errorEnd = Inbox<Bool>()
    private let output: Pipe
    private let errorOutput: Pipe
    private let input: Pipe?
    private let readers: [OSThread]

    var processIdentifier: Int32 { process.processIdentifier }
    /// All that it wrote on stderr until now.
    var errorText: String { errors.withLock { String(decoding: $0, as: UTF8.self) } }

    /// `input`: what it reads on stdin, with more to come by `write` unless `endsInput`; nil: nothing at all.
    /// `descriptors`: how many it may have.
    init(
        _ arguments: [String], executable: String? = nil, environment: [String: String] = [:], descriptors: Int? = nil,
        input: [UInt8]? = nil, endsInput: Bool? = nil
    ) throws {
        let exit = Inbox<Int32>()
        self.exit = exit
        let inputPipe = input == nil ? nil : Pipe()
        self.input = inputPipe
        (process, output, errorOutput) = try Self.spawning.withLock { _ in
            let process = Process()
            let output = Pipe()
            let errorOutput = Pipe()
            process.executableURL = try executable.map { URL(fileURLWithPath: $0) } ?? Self.executable()
            process.arguments = arguments
            if let descriptors {
                process.arguments = ["--nofile=\(descriptors):\(descriptors)", try Self.executable().path] + arguments
                process.executableURL = URL(fileURLWithPath: "/usr/bin/prlimit")
            }
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
                .merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
            process.standardInput = inputPipe ?? FileHandle.nullDevice
            process.standardOutput = output
            process.standardError = errorOutput
            process.terminationHandler = { process in
                // A signal's number is negative, so that no exit status looks like one.
                exit.put(
                    process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus)
            }
            // The child has its ends as 0, 1 and 2. Under their own numbers it would have them beside: high ones, where many
            // tests run, and so many descriptors below them that a test could not use them up.
            for pipe in [output, errorOutput, inputPipe].compactMap({ $0 }) {
                for end in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
                    _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
                }
            }
            try process.run()
            return (process, output, errorOutput)
        }
        let (lines, errors, errorEnd) = (lines, errors, errorEnd)
        readers = [
            try Self.read(output) { lines.take($0) },
            try Self.read(errorOutput) { data in
                errors.withLock { $0.append(data) }
                if data.isEmpty { errorEnd.end() }
            },
        ]
        if let input, !input.isEmpty { write(input) }
        if let input, endsInput ?? !input.isEmpty { endInput() }
    }

    /// To its stdin; as much as a pipe holds.
    func write(_ bytes: [UInt8]) { try? input?.fileHandleForWriting.write(contentsOf: Data(bytes)) }

    func endInput() { try? input?.fileHandleForWriting.close() }

    /// Blocks a thread of its own until the pipe's other end is closed.
    private static func read(_ pipe: Pipe, _ take: @escaping @Sendable (Data) -> Void) throws -> OSThread {
        let descriptor = pipe.fileHandleForReading.fileDescriptor
        return try OSThread(name: "pipe") {
            var chunk = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = Glibc.read(descriptor, &chunk, chunk.count)
                take(Data(chunk.prefix(max(0, count))))
                if count <= 0 { return }
            }
        }
    }

    /// One at a time: a process that starts while another's pipes are open at both ends would hold them open for good.
    private static let spawning = Mutex(())

    private static func executable() throws -> URL {
        let runner = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: runner).deletingLastPathComponent().appendingPathComponent("ferry")
    }

    deinit {
        if process.isRunning { send(SIGKILL) }
        for reader in readers { reader.join() }
    }

    /// The next line of its stdout; nil at its end.
    func line(within patience: Duration = patience) async throws -> String? {
        switch await lines.inbox.next(within: patience) {
        case .item(let line): return line
        case .ended: return nil
        case .late: throw Unexpected("no line came in time; stderr: \(errorText)")
        }
    }

    /// All that it wrote on stderr, once that holds all of `words`.
    func errorText(with words: [String]) async throws -> String {
        let deadline = ContinuousClock.now + patience
        while !words.allSatisfy(errorText.contains) {
            guard ContinuousClock.now < deadline else { throw Unexpected("\(words) are not all in \(errorText)") }
            try await Task.sleep(for: .milliseconds(5))
        }
        return errorText
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
        _ = await child.errorEnd.next(within: patience)
        return (status, lines, child.errorText)
    }
}

/// A lock that closures can share.
private final class Shared<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>
    init(_ value: Value) { mutex = Mutex(value) }
    func withLock<Result: Sendable>(_ body: (inout sending Value) -> sending Result) -> Result { mutex.withLock(body) }
}

/// Cuts what comes into lines.
private final class Lines: Sendable {
    let inbox = Inbox<String>()
    /// What came after the last whole line.
    private let partial = Mutex(Data())

    /// Nothing is the end.
    func take(_ data: Data) {
        let whole: [String] = partial.withLock { partial in
            partial.append(data)
            var found: [String] = []
            while let end = partial.firstIndex(of: 0x0a) {
                found.append(String(decoding: partial[partial.startIndex..<end], as: UTF8.self))
                partial = Data(partial[(end + 1)...])
            }
            return found
        }
        for line in whole { inbox.put(line) }
        if data.isEmpty { inbox.end() }
    }
}
