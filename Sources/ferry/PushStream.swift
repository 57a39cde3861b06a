internal import FerryClient
internal import FerryCore
internal import FerryIO
internal import Foundation
internal import Synchronization

/// `ferry push --stream`: messages from stdin, over a backend's link.
enum PushStream {
    /// Options of one push over HTTP, which a stream's lines say for themselves.
    private static let foreign = ["--http", "--cid", "--payload", "--payload-file", "--ttl", "--request-id"]

    static func run(_ arguments: ArgumentParser.Arguments) -> Int32 {
        for name in foreign where arguments.has(name) {
            CommandOutput.failure("--stream and \(name) do not go together; see ferry push --help")
            return 2
        }
        guard let text = arguments.value("--link") else {
            CommandOutput.failure("--link is missing; see ferry push --help")
            return 2
        }
        guard let server = SocketAddress(text), server.port != 0 else {
            CommandOutput.failure("--link \"\(text)\" is not HOST:PORT with an IPv4 address or localhost")
            return 2
        }
        let app = arguments.value("--app") ?? ""
        guard let appID = AppID(app) else {
            CommandOutput.failure("\"\(app)\" is not an app id: 1 to 64 of letters, digits, '-', '_', '.'")
            return 2
        }
        do throws(SystemError) {
            return try stream(to: server, appID, masterSecret: arguments.value("--master-secret") ?? "")
        } catch {
            CommandOutput.failure(error.description)
            return 1
        }
    }

    private static func stream(
        to server: SocketAddress, _ app: AppID, masterSecret: String
    ) throws(SystemError) -> Int32 {
        // Before any thread, so that all of them leave TERM and INT to the one that waits for them.
        let signals = try ProcessSignals()
        let input = try Mailbox<LinkInput>()
        let reader = try LineReader(input)
        _ = try OSThread(name: "signals") {
            _ = signals.wait()
            input.post(.stop)
        }
        var outcome = StreamOutcome()
        try withUnsafeMutablePointer(to: &outcome) { (outcome) throws(SystemError) in
            var client = try LinkClient(to: server, appID: app, masterSecret: masterSecret, input: input) { report in
                if case .wantsMessages = report { reader.readOn() } else { outcome.pointee.take(report) }
            }
            client.run()
        }
        return outcome.finish(badLines: reader.badLines)
    }
}

/// What became of a stream so far, told as it becomes known.
private struct StreamOutcome {
    private let clock = WallClock()
    private let began = WallClock().now
    private var accepted = 0
    private var refused = 0
    private var acceptedBefore = 0
    private var isFinished = false
    private var failure: String?

    mutating func take(_ report: LinkReport) {
        switch report {
        case .opened, .wantsMessages: break
        case .accepted(let count): accepted += count
        case .refused(let line, let id, let code, let text):
            refused += 1
            var object = JSONLine()
            object.set("event", "refused")
            object.set("line", line)
            object.set("id", id.hex)
            object.set("code", code)
            object.set("text", text)
            CommandOutput.line(object.text)
        case .lost(let reason): note("\(reason); what is unanswered is sent again")
        case .second(let sent, let heldBack):
            let seconds = (clock.now - began).components.seconds
            note(
                "\(seconds) s: \(accepted + refused + sent) sent, \(accepted) accepted (\(accepted - acceptedBefore)/s), "
                    + "\(refused) refused, \(sent) under way" + (heldBack > 0 ? ", \(heldBack) wait for room" : ""))
            acceptedBefore = accepted
        case .finished: isFinished = true
        case .stopped(let reason, let unanswered):
            failure = "\(reason ?? "stopped by a signal"); \(unanswered.count) unanswered"
            for (line, id) in unanswered {
                var object = JSONLine()
                object.set("event", "unanswered")
                object.set("line", line)
                object.set("id", id.hex)
                CommandOutput.line(object.text)
            }
        }
    }

    /// The exit status.
    func finish(badLines: Int) -> Int32 {
        note("\(accepted) accepted, \(refused) refused, \(badLines) bad lines")
        if let failure { CommandOutput.failure(failure) }
        return isFinished && refused == 0 && badLines == 0 ? 0 : 1
    }

    private func note(_ text: String) { try? FileHandle.standardError.write(contentsOf: Data((text + "\n").utf8)) }
}

/// Reads lines from stdin on a thread of its own, a piece each time it is asked to: what nobody can send yet stays outside.
private final class LineReader: Sendable {
    private let requests: Mailbox<Bool>
    private let bad = Atomic<Int>(0)

    var badLines: Int { bad.load(ordering: .acquiring) }

    init(_ output: Mailbox<LinkInput>) throws(SystemError) {
        let requests = try Mailbox<Bool>()
        self.requests = requests
        // It waits in a read at the end of the process, so nobody waits for it.
        _ = try OSThread(name: "stdin") { [self] in read(into: output) }
    }

    func readOn() { requests.post(true) }

    private func read(into output: Mailbox<LinkInput>) {
        guard let poller = try? Poller(), (try? poller.add(requests.descriptor, .readable, token: 0)) != nil else {
            return output.post(.stop)
        }
        var lines = StreamLines()
        var asked: [Bool] = []
        while !lines.isEnded {
            _ = poller.wait(milliseconds: -1)
            asked.removeAll(keepingCapacity: true)
            requests.drain(into: &asked)
            guard !asked.isEmpty else { continue }
            let (messages, problems) = lines.next()
            bad.add(problems.count, ordering: .releasing)
            for problem in problems { CommandOutput.failure(problem) }
            output.post(.messages(messages))
        }
        output.post(.ended)
    }
}

/// Cuts what comes into lines and reads each as a message.
private struct StreamLines {
    private(set) var isEnded = false
    private var rest: [UInt8] = []
    private var number: UInt64 = 0

    private static let pieceBytes = 65_536
    private static let lineLimit = 1 << 20

    /// Waits for more; answers the messages of the lines that became whole, and what is wrong with others.
    mutating func next() -> (messages: [LinkMessage], problems: [String]) {
        var messages: [LinkMessage] = []
        var problems: [String] = []
        var piece = [UInt8](repeating: 0, count: Self.pieceBytes)
        // One read: a line is sent when it is there, not when a piece is full.
        let count = max(0, Foundation.read(STDIN_FILENO, &piece, piece.count))
        isEnded = count == 0
        rest += piece[..<count]
        var start = 0
        while let end = rest[start...].firstIndex(of: 0x0a) {
            read(rest[start..<end], &messages, &problems)
            start = end + 1
        }
        rest.removeFirst(start)
        if isEnded || rest.count > Self.lineLimit {
            if !rest.isEmpty { read(rest[...], &messages, &problems) }
            if !isEnded {
                problems.append("line \(number) is longer than \(Self.lineLimit) bytes; nothing behind it is read")
            }
            isEnded = true
        }
        return (messages, problems)
    }

    private mutating func read(_ line: ArraySlice<UInt8>, _ messages: inout [LinkMessage], _ problems: inout [String]) {
        number += 1
        guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0d }) else { return }
        do throws(StreamLine.Problem) {
            messages.append(try StreamLine.message(Data(line), number: number))
        } catch {
            problems.append("line \(number): \(error.sentence)")
        }
    }
}
