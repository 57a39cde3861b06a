/// Why a message ended. Each reason belongs to one state. Numbers are those of the timeline's files and are never used
/// again for something else.
package enum EndReason: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// The device acknowledged it, or everything up to a later one.
    case acknowledged = 1
    /// Its ttl ran out before it could be sent, or before the session in which it was sent had ended without an ack.
    case ttlRanOut = 2
    /// Live only, and the device had no live session when it was accepted.
    case noLiveSession = 3
    /// Live only, and the session that it came for ended before the ack.
    case liveSessionEnded = 4
    /// The device's kept messages were more than its cap, and this was the oldest unsent.
    case countCap = 5
    /// Their payload bytes were more than its cap, and this was the oldest unsent.
    case byteCap = 6
    /// The store could not give its content any more.
    case unreadable = 7
    /// Its task was stopped before the device had acknowledged it.
    case taskStopped = 20
    /// The client that the device came with said of itself that it does not take this kind of content.
    case kindNotTaken = 8
    /// The wake-up channel took it, and the sender wanted no other way.
    case handedOver = 9
    /// The wake-up channel refused it, and the sender wanted no other way.
    case handOverRefused = 10
    /// Likewise, and the wake-up channel did not answer in time: whether it took it is not known.
    case handOverUnanswered = 11
    /// The device was erased, or was not seen for longer than devices are kept.
    case deviceRemoved = 30
    /// The backend had blocked the device when it pushed.
    case deviceBlocked = 31
    // Of a push to an audience: why one of its devices was passed over when its turn came.
    /// The device kept as much as it may, and `capPolicy` is to refuse.
    case deviceFull = 32
    /// It goes by the wake-up channel alone, or first, and the device had no token.
    case tokenMissing = 33
    /// Nobody may be shown it any more.
    case windowOver = 34
    /// The sender's own filter passes over the device.
    case filtered = 35
    /// What is known of the device could not be read, again and again.
    case deviceUnreadable = 36
    /// The push had no more time.
    case turnTooLate = 37

    /// The terminal state that this reason leads to.
    package var state: DeliveryState {
        switch self {
        case .acknowledged: .delivered
        case .ttlRanOut, .noLiveSession, .liveSessionEnded, .windowOver, .turnTooLate: .expired
        case .countCap, .byteCap: .overflowed
        case .taskStopped: .revoked
        case .unreadable, .handOverRefused, .handOverUnanswered, .deviceUnreadable: .failed
        case .kindNotTaken, .deviceRemoved, .deviceBlocked, .deviceFull, .tokenMissing, .filtered: .skipped
        case .handedOver: .handed
        }
    }
}
