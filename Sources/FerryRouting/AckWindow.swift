package import FerryCore

/// What of a session's stream is on its way: sent and not acknowledged, at most so many entries and so many bytes.
package struct AckWindow: Hashable, Sendable, BitwiseCopyable {
    /// What an ack means for this session.
    package enum Verdict: Equatable, Sendable {
        /// Moves the acknowledged position.
        case fresh
        /// Says what is known already; ignored.
        case stale
        /// Names what was never sent on this connection: the peer is wrong, the connection ends.
        case beyondSent
    }

    package let messageLimit: Int32
    package let byteLimit: Int32
    package private(set) var inFlight: Int32 = 0
    package private(set) var inFlightBytes: Int32 = 0
    /// Highest `seq` sent in this session; `acknowledged` before the first.
    package private(set) var sent: Seq
    package private(set) var acknowledged: Seq
    /// Highest `seq` sent on this connection, in this session or one before it: a push and the words `background` and
    /// `foreground` may cross, and the ack of that push is right.
    package private(set) var ackBound: Seq

    /// Limits are at least 1. `ackBound` is that of the session before on the same connection, if there was one.
    package init(messageLimit: Int32, byteLimit: Int32, acknowledged: Seq, ackBound: Seq = .zero) {
        self.messageLimit = max(1, messageLimit)
        self.byteLimit = max(1, byteLimit)
        self.acknowledged = acknowledged
        self.ackBound = max(acknowledged, ackBound)
        sent = acknowledged
    }

    /// What of a window is only there while something was sent: all zero when everything is acknowledged.
    struct Flight: Hashable, Sendable, BitwiseCopyable {
        fileprivate var count: Int32 = 0
        fileprivate var bytes: Int32 = 0
        /// 0 for what is not above the acknowledged position.
        fileprivate var sent = Seq.zero
        fileprivate var ackBound = Seq.zero

        var isOver: Bool { self == Flight() }

        /// Exactly `count` entries are on their way, and an ack of `seq` covers all that was ever sent.
        func isWhole(upTo seq: Seq, count: Int) -> Bool {
            sent == seq && ackBound == seq && Int(self.count) == count
        }
    }

    init(messageLimit: Int32, byteLimit: Int32, acknowledged: Seq, flight: Flight) {
        self.messageLimit = messageLimit
        self.byteLimit = byteLimit
        self.acknowledged = acknowledged
        inFlight = flight.count
        inFlightBytes = flight.bytes
        sent = max(acknowledged, flight.sent)
        ackBound = max(acknowledged, flight.ackBound)
    }

    var flight: Flight {
        var flight = Flight()
        flight.count = inFlight
        flight.bytes = inFlightBytes
        if sent > acknowledged { flight.sent = sent }
        if ackBound > acknowledged { flight.ackBound = ackBound }
        return flight
    }

    /// Whether an entry of `bytes` may go now. A single one larger than the limit may go when nothing else is in flight.
    /// `ahead` entries of `aheadBytes` in all count as sent before it.
    package func hasRoom(for bytes: UInt32, ahead: Int = 0, aheadBytes: Int = 0) -> Bool {
        let before = Int(inFlight) + ahead
        if before == 0 { return true }
        return before < Int(messageLimit) && Int(inFlightBytes) + aheadBytes + Int(bytes) <= Int(byteLimit)
    }

    package mutating func didSend(_ seq: Seq, bytes: UInt32) {
        sent = max(sent, seq)
        ackBound = max(ackBound, seq)
        inFlight += 1
        inFlightBytes = Int32(clamping: Int64(inFlightBytes) + Int64(bytes))
    }

    package func verdict(on seq: Seq) -> Verdict {
        if seq > ackBound { return .beyondSent }
        return seq > acknowledged ? .fresh : .stale
    }

    package mutating func didAcknowledge(_ seq: Seq) {
        acknowledged = max(acknowledged, seq)
        sent = max(sent, acknowledged)
        ackBound = max(ackBound, acknowledged)
    }

    /// One entry in flight has left it.
    package mutating func release(bytes: UInt32) {
        inFlight = max(0, inFlight - 1)
        inFlightBytes = inFlight == 0 ? 0 : Int32(clamping: max(0, Int64(inFlightBytes) - Int64(bytes)))
    }
}
