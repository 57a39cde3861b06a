private import Dispatch
private import Synchronization

/// What arrives from other threads, taken by one waiting test at a time. Every wait ends, by its deadline at the latest.
final class Inbox<Element: Sendable>: Sendable {
    enum Outcome: Sendable {
        case item(Element)
        /// Nothing more will come.
        case ended
        case late
    }

    private struct State {
        var items: [Element] = []
        var isEnded = false
        var waiter: CheckedContinuation<Outcome, Never>?
        /// Tells a deadline whether its wait is still the current one.
        var wait = 0
    }

    private let state = Mutex(State())

    func put(_ item: Element) {
        let waiter: CheckedContinuation<Outcome, Never>? = state.withLock { state in
            if let waiter = state.waiter {
                state.waiter = nil
                return waiter
            }
            state.items.append(item)
            return nil
        }
        waiter?.resume(returning: .item(item))
    }

    func end() {
        let waiter: CheckedContinuation<Outcome, Never>? = state.withLock { state in
            state.isEnded = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: .ended)
    }

    func next(within patience: Duration) async -> Outcome {
        await withCheckedContinuation { continuation in
            var wait = 0
            let outcome: Outcome? = state.withLock { state in
                if !state.items.isEmpty { return .item(state.items.removeFirst()) }
                if state.isEnded { return .ended }
                state.wait += 1
                wait = state.wait
                state.waiter = continuation
                return nil
            }
            if let outcome {
                continuation.resume(returning: outcome)
            } else {
                expire(wait, after: patience)
            }
        }
    }

    private func expire(_ wait: Int, after patience: Duration) {
        DispatchQueue.global().asyncAfter(deadline: .now() + patience.inSeconds) { [weak self] in
            self?.endWait(wait)
        }
    }
}

extension Inbox {
    fileprivate func endWait(_ wait: Int) {
        let waiter: CheckedContinuation<Outcome, Never>? = state.withLock { state in
            guard state.wait == wait else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: .late)
    }
}

extension Duration {
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

/// How long a test waits for what must come. Only a failing test waits so long.
let patience = Duration.seconds(30)

/// Something did not happen as a test needs it; the sentence says what.
struct Unexpected: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
