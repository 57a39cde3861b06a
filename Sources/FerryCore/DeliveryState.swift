/// A message's life, shared by router, store, reports and operators. A terminal state never changes.
package enum DeliveryState: UInt8, Sendable, CaseIterable {
    /// Accepted and kept: not yet acknowledged, whether or not it was sent.
    case kept = 0
    /// The device acknowledged it.
    case delivered = 1
    /// APNs took it, where the strategy ends there.
    case handed = 2
    /// The strategy's only way out refused it.
    case failed = 3
    /// The device is gone, or the message was never to reach it.
    case skipped = 4
    /// Its ttl ran out, or it was live only and there was no live session.
    case expired = 5
    /// The device's cap was reached and this was the oldest unsent.
    case overflowed = 6
    /// The sender took it back.
    case revoked = 7

    package var isTerminal: Bool { self != .kept }
}
