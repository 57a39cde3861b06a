internal import FerryCore
package import FerryIO

/// Writes each stub as one line of JSON to a file: the exact request that APNs would get. A stub is accepted once its line
/// is synced. For trying out, for tests, and for gateways that hand wake-ups to something else.
package final class OutboxChannel: WakeChannel {
    private enum Order: Sendable {
        case append([UInt8], @Sendable (StubAnswer) -> Void)
        case stop
    }

    private let mailbox: Mailbox<Order>
    private let thread: OSThread

    /// Opens `path` for appending, mode 0600.
    package init(path: String) throws(SystemError) {
        let file = try AppendingFile(path: path)
        let mailbox = try Mailbox<Order>()
        let poller = try Poller()
        try poller.add(mailbox.descriptor, .readable, token: 0)
        self.mailbox = mailbox
        var writer: Writer? = Writer(file: file, mailbox: mailbox, poller: poller)
        thread = try OSThread(name: "outbox") {
            if let writer = writer.take() { writer.run() }
        }
    }

    package func request(_ stub: StubRequest, answer: @escaping @Sendable (StubAnswer) -> Void) {
        mailbox.post(.append(Self.line(stub), answer))
    }

    package func close() {
        mailbox.post(.stop)
        thread.join()
    }

    static func line(_ stub: StubRequest) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("method", "POST")
        json.member("host", stub.host)
        json.member("path", stub.path)
        json.member("token", Hexadecimal.encode(stub.token))
        json.name("headers")
        json.beginObject()
        for header in stub.headers {
            json.name(header.name)
            json.string(header.value)
        }
        json.endObject()
        json.name("payload")
        json.raw(stub.body)
        json.endObject()
        return json.bytes + [0x0a]
    }

    /// The thread's own: takes all that is waiting, writes it in one piece, syncs once, then answers. What the disk does not
    /// take waits for it: an answer ends a stub for good, and a full disk is no reason for that.
    private struct Writer: ~Copyable {
        let file: AppendingFile
        let mailbox: Mailbox<Order>
        let poller: Poller

        /// Bytes that wait for the disk; beyond, stubs are refused.
        private static let waitingLimit = 64 * 1024 * 1024
        private static let pause: Int32 = 1000

        consuming func run() {
            var orders: [Order] = []
            var isStopping = false
            var isFailing = false
            var lines: [UInt8] = []
            var answers: [@Sendable (StubAnswer) -> Void] = []
            while !isStopping {
                _ = poller.wait(milliseconds: answers.isEmpty ? -1 : Self.pause)
                mailbox.drain(into: &orders)
                for order in orders {
                    switch order {
                    case .append(_, let answer) where lines.count > Self.waitingLimit:
                        answer(.refused("the outbox cannot be written, and too much waits for it"))
                    case .append(let line, let answer):
                        lines.append(contentsOf: line)
                        answers.append(answer)
                    case .stop: isStopping = true
                    }
                }
                orders.removeAll(keepingCapacity: true)
                let failure = write(lines)
                if let failure, !isFailing {
                    EventLog.write(.error, "outbox cannot be written", ["reason": failure.description])
                }
                isFailing = failure != nil
                if isFailing && !isStopping { continue }
                let outcome = failure.map { StubAnswer.refused($0.description) } ?? .accepted
                for answer in answers { answer(outcome) }
                lines.removeAll()
                answers.removeAll()
            }
        }

        private borrowing func write(_ lines: [UInt8]) -> SystemError? {
            guard !lines.isEmpty else { return nil }
            do throws(SystemError) {
                try file.append(lines)
                return nil
            } catch {
                return error
            }
        }
    }
}
