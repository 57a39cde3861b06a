package import FerryCore

/// Which messages of one connection came, were handed to the app and were acknowledged, and when the next ack is due.
package struct ReceiveWindow: Hashable, Sendable {
    /// Handed or on its way to the app; what is not above it is a repeat.
    private(set) var received: Seq
    /// Everything up to here is with the app.
    private(set) var handed: Seq
    /// The last that this connection carried, repeats included. An ack beyond it would be one of something never sent,
    /// which a gateway answers with 5006.
    private var streamed: Seq = .zero
    /// The last that was acknowledged on this connection and has not come again since.
    private var acknowledged: Seq = .zero
    private var unacknowledgedMessages: UInt64 = 0
    private var unacknowledgedBytes: UInt64 = 0
    private var oldestHandedAt: Instant?
    private var granted = AckPolicy.Window(messages: .max, bytes: .max)
    private let policy: AckPolicy

    package init(lastSeq: Seq, policy: AckPolicy = AckPolicy()) {
        self.policy = policy
        received = lastSeq
        handed = lastSeq
    }

    /// A connection has led to a session.
    package mutating func begin(window: UInt64, windowBytes: UInt64) {
        granted = AckPolicy.Window(messages: window, bytes: windowBytes)
        streamed = .zero
        acknowledged = .zero
        unacknowledgedMessages = 0
        unacknowledgedBytes = 0
        oldestHandedAt = nil
    }

    /// The numbers of before say nothing any more.
    package mutating func forget() {
        received = .zero
        handed = .zero
        acknowledged = .zero
    }

    /// One message or gap came; whether it is new.
    package mutating func take(_ seq: Seq, bytes: Int, now: Instant) -> Bool {
        streamed = max(streamed, seq)
        unacknowledgedMessages &+= 1
        unacknowledgedBytes &+= UInt64(bytes)
        guard seq > received else {
            // A repeat: its ack was lost, so it gets another one. Nothing has the number 0.
            if seq > .zero { acknowledged = min(acknowledged, Seq(seq.rawValue - 1)) }
            if oldestHandedAt == nil { oldestHandedAt = now }
            return false
        }
        received = seq
        return true
    }

    /// The app has everything up to `seq`.
    package mutating func hand(_ seq: Seq, now: Instant) {
        guard seq > handed, seq <= received else { return }
        handed = seq
        if oldestHandedAt == nil { oldestHandedAt = now }
    }

    /// What an ack could say now; nil when it would say nothing new.
    private var acknowledgeable: Seq? {
        let upTo = min(handed, streamed)
        return upTo > acknowledged ? upTo : nil
    }

    /// When the next ack must leave at the latest: `.distantPast` for at once, nil for never.
    /// - Parameter isReading: whether more of what was read at once is still to be handled.
    package func ackDeadline(isReading: Bool) -> Instant? {
        guard acknowledgeable != nil, let oldestHandedAt else { return nil }
        let waiting = AckPolicy.Waiting(
            messages: unacknowledgedMessages, bytes: unacknowledgedBytes, since: oldestHandedAt)
        return policy.dueTime(for: waiting, in: granted, isReading: isReading)
    }

    /// The number to acknowledge now, or nil.
    package mutating func takeAck() -> Seq? {
        guard let upTo = acknowledgeable else { return nil }
        acknowledged = upTo
        unacknowledgedMessages = 0
        unacknowledgedBytes = 0
        oldestHandedAt = nil
        return upTo
    }
}
