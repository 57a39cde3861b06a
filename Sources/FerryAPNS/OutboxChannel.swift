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

    /// The thread's own: takes all that is waiting, writes it in one piece, syncs once, then answers.
    private struct Writer: ~Copyable {
        let file: AppendingFile
        let mailbox: Mailbox<Order>
        let poller: Poller

        consuming func run() {
            var orders: [Order] = []
            var isStopping = false
            while !isStopping {
                _ = poller.wait(milliseconds: -1)
                mailbox.drain(into: &orders)
                var lines: [UInt8] = []
                var answers: [@Sendable (StubAnswer) -> Void] = []
                for order in orders {
                    switch order {
                    case .append(let line, let answer):
                        lines.append(contentsOf: line)
                        answers.append(answer)
                    case .stop: isStopping = true
                    }
                }
                orders.removeAll(keepingCapacity: true)
                let outcome = write(lines)
                for answer in answers { answer(outcome) }
            }
        }

        private borrowing func write(_ lines: [UInt8]) -> StubAnswer {
            guard !lines.isEmpty else { return .accepted }
            do throws(SystemError) {
                try file.append(lines)
                return .accepted
            } catch {
                return .refused(error.description)
            }
        }
    }
}
