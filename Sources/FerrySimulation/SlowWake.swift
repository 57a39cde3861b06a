internal import FerryAPNS
internal import Synchronization

/// A wake-up channel that answers when it is told to.
final class SlowWake: WakeChannel {
    struct Request: Sendable {
        let stub: StubRequest
        let answer: @Sendable (StubAnswer) -> Void
    }

    private let fresh = Mutex<[Request]>([])

    func request(_ stub: StubRequest, answer: @escaping @Sendable (StubAnswer) -> Void) {
        fresh.withLock { $0.append(Request(stub: stub, answer: answer)) }
    }

    /// What was requested since the last call.
    func takeFresh() -> [Request] {
        fresh.withLock { requests in
            defer { requests = [] }
            return requests
        }
    }

    func close() {}
}
