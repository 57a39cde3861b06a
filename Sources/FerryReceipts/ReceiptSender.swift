internal import CCurl
package import FerryCore
package import FerryIO

/// Brings receipts to their endpoints by HTTP: a thread of its own, all endpoints at once, one request at a time for each.
package final class ReceiptSender: ReceiptChannel {
    enum Order: Sendable {
        case offer(ReceiptBatch, @Sendable (ReceiptProgress) -> Void)
        case stop
    }

    /// An app, as its receipts need it.
    package struct Client: Sendable {
        let app: AppID
        let masterSecret: String
        let target: ReceiptTarget

        package init(app: AppID, masterSecret: String, target: ReceiptTarget) {
            self.app = app
            self.masterSecret = masterSecret
            self.target = target
        }
    }

    private let mailbox: Mailbox<Order>
    private let thread: OSThread

    /// - Parameter clock: what receipts' times are compared with.
    package init(
        _ clients: [Client], policy: ReceiptPolicy, clock: @escaping @Sendable () -> Instant
    ) throws(SystemError) {
        let mailbox = try Mailbox<Order>()
        guard let http = ReceiptHTTP() else { throw SystemError("start libcurl", 12) }
        self.mailbox = mailbox
        var worker: ReceiptWorker? = ReceiptWorker(
            clients, policy: policy, clock: clock, mailbox: mailbox, http: http)
        thread = try OSThread(name: "receipts") {
            if let worker = worker.take() { worker.run() }
        }
    }

    package func offer(_ batch: ReceiptBatch, told: @escaping @Sendable (ReceiptProgress) -> Void) {
        mailbox.post(.offer(batch, told))
    }

    package func close() {
        mailbox.post(.stop)
        thread.join()
    }
}

/// The thread's own.
struct ReceiptWorker: ~Copyable {
    private struct Client {
        let app: AppID
        let masterSecret: String
        let target: ReceiptTarget
        var endpoint: ReceiptEndpoint
        /// Logged once until it works again.
        var isFailing = false
    }

    private struct Offered {
        let client: Int
        let batch: ReceiptBatch
        let told: @Sendable (ReceiptProgress) -> Void
    }

    private var clients: [Client]
    private let numbers: [AppID: Int]
    private let policy: ReceiptPolicy
    private let clock: @Sendable () -> Instant
    private let mailbox: Mailbox<ReceiptSender.Order>
    private let http: ReceiptHTTP
    private var offers: [UInt64: Offered] = [:]
    private var lastOffer: UInt64 = 0
    private var random = SystemRandomNumberGenerator()

    init(
        _ clients: [ReceiptSender.Client], policy: ReceiptPolicy, clock: @escaping @Sendable () -> Instant,
        mailbox: Mailbox<ReceiptSender.Order>, http: consuming ReceiptHTTP
    ) {
        self.clients = clients.map {
            Client(
                app: $0.app, masterSecret: $0.masterSecret, target: $0.target,
                endpoint: ReceiptEndpoint(retriesServerErrors: $0.target.retriesServerErrors))
        }
        numbers = Dictionary(
            clients.enumerated().map { ($0.element.app, $0.offset) }, uniquingKeysWith: { first, _ in first })
        self.policy = policy
        self.clock = clock
        self.mailbox = mailbox
        self.http = http
    }

    consuming func run() {
        var orders: [ReceiptSender.Order] = []
        while true {
            http.wait(mailbox.descriptor, milliseconds: timeout())
            mailbox.drain(into: &orders)
            for order in orders {
                switch order {
                case .offer(let batch, let told): take(batch, told)
                case .stop: return
                }
            }
            orders.removeAll(keepingCapacity: true)
            while let ended = http.next() { take(ended) }
            for client in clients.indices where clients[client].endpoint.deadline != nil {
                tell(client, .timePassed)
            }
        }
    }

    private static let longestWait: Int64 = 60_000

    private func timeout() -> Int32 {
        let now = clock()
        let next = clients.compactMap { $0.endpoint.deadline.map { ($0 - now).inMilliseconds } }.min()
        return Int32(min(max(0, next ?? Self.longestWait), Self.longestWait))
    }

    private mutating func take(_ batch: ReceiptBatch, _ told: @escaping @Sendable (ReceiptProgress) -> Void) {
        guard let client = numbers[batch.lane.app] else { return told(.tooOld) }
        lastOffer += 1
        offers[lastOffer] = Offered(client: client, batch: batch, told: told)
        let latest = batch.entries.reversed().lazy.compactMap { Receipt($0.row)?.at }.first
        tell(
            client,
            .offered(
                ReceiptEndpoint.Offer(
                    id: lastOffer, at: latest ?? .distantPast, failures: batch.failures, notBefore: batch.notBefore)))
    }

    private mutating func take(_ ended: ReceiptHTTP.Ended) {
        let client = Int(ended.token)
        guard clients.indices.contains(client) else { return }
        note(ended, client)
        if ended.status > 0 {
            tell(client, .answered(status: ended.status, retryAfter: ended.retryAfter))
        } else {
            tell(client, .failed)
        }
    }

    private mutating func tell(_ client: Int, _ event: ReceiptEndpoint.Event) {
        var actions: [ReceiptEndpoint.Action] = []
        clients[client].endpoint.handle(
            event, now: clock(), policy: policy, random: random.next(), actions: &actions)
        for action in actions {
            switch action {
            case .post(let id): post(id)
            case .tell(let id, let progress):
                guard let offered = offers[id] else { continue }
                offered.told(progress)
                if progress.isLast { offers[id] = nil }
            }
        }
    }

    private mutating func post(_ id: UInt64) {
        guard let offered = offers[id] else { return }
        let client = clients[offered.client]
        var text: [UInt8] = []
        text.reserveCapacity(offered.batch.entries.count * 320)
        for entry in offered.batch.entries {
            guard let receipt = Receipt(entry.row) else { continue }
            ReceiptLine.append(
                receipt, app: client.app, masterSecret: client.masterSecret, to: &text, md5: Cryptography.md5)
        }
        let isBegun = http.post(
            text, to: client.target, token: UInt64(offered.client), deadline: policy.answerDeadline)
        if !isBegun { tell(offered.client, .failed) }
    }

    private mutating func note(_ ended: ReceiptHTTP.Ended, _ client: Int) {
        let isBad = !(200...299).contains(ended.status)
        defer { clients[client].isFailing = isBad }
        guard isBad != clients[client].isFailing else { return }
        let app = clients[client].app.text
        if isBad {
            let why = ended.failure ?? "it answered \(ended.status)"
            EventLog.write(.warning, "receipts are not taken", ["app": app, "reason": why])
        } else {
            EventLog.write(.info, "receipts are taken again", ["app": app])
        }
    }
}

/// libcurl, for one thread.
struct ReceiptHTTP: ~Copyable {
    struct Ended {
        let token: UInt64
        /// 0: there was no answer.
        let status: Int
        let retryAfter: Int64
        let failure: String?
    }

    /// Owned; only this value, and so one thread, ever uses it.
    private let client: OpaquePointer

    /// nil when libcurl cannot start.
    init?() {
        guard let client = ccurl_create() else { return nil }
        self.client = client
    }

    deinit { ccurl_destroy(client) }

    borrowing func wait(_ descriptor: Int32, milliseconds: Int32) { ccurl_wait(client, descriptor, milliseconds) }

    borrowing func next() -> Ended? {
        var result = ccurl_result()
        guard ccurl_next(client, &result) == 1 else { return nil }
        return Ended(
            token: result.token, status: Int(result.status), retryAfter: result.retry_after,
            failure: result.failure.map { String(cString: $0) })
    }

    /// Whether the request was begun.
    borrowing func post(_ body: [UInt8], to target: ReceiptTarget, token: UInt64, deadline: Duration) -> Bool {
        let milliseconds = Int(clamping: deadline.inMilliseconds)
        return ccurl_post(
            client, token, target.url, target.authorityFile, "text/plain;charset=utf-8", body, body.count,
            milliseconds, milliseconds) == 1
    }
}
