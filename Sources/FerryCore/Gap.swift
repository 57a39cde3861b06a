/// What a device's stream says in the place of kept messages that were dropped (P8). It stands at the `seq` of the last of
/// them, which no message will use, so it keeps its place in the order and is acknowledged like a message.
package struct Gap: Hashable, Sendable {
    package var upTo: Seq
    package var expired: UInt32
    package var overflowed: UInt32
    /// Of broadcasts alone. No device's row counts it: what the gateway remembers of ended broadcasts tells of it again.
    package var isShared: Bool

    package init(upTo: Seq, expired: UInt32 = 0, overflowed: UInt32 = 0, isShared: Bool = false) {
        self.upTo = upTo
        self.expired = expired
        self.overflowed = overflowed
        self.isShared = isShared
    }

    /// How many messages are missing, saturating.
    package var count: UInt32 { Self.sum(expired, overflowed) }

    /// Adds one dropped message. `state` is `.expired` or `.overflowed`; any other is not a gap and changes nothing.
    package mutating func add(_ seq: Seq, _ state: DeliveryState) {
        switch state {
        case .expired: add(Gap(upTo: seq, expired: 1))
        case .overflowed: add(Gap(upTo: seq, overflowed: 1))
        case .kept, .delivered, .handed, .failed, .skipped, .revoked: return
        }
    }

    /// Takes another gap in, saturating.
    package mutating func add(_ other: Gap) {
        expired = Self.sum(expired, other.expired)
        overflowed = Self.sum(overflowed, other.overflowed)
        upTo = max(upTo, other.upTo)
    }

    /// Takes back one message that `add` counted; the place stays. One that is not counted changes nothing.
    package mutating func remove(_ state: DeliveryState) {
        switch state {
        case .expired: expired -= expired > 0 ? 1 : 0
        case .overflowed: overflowed -= overflowed > 0 ? 1 : 0
        case .kept, .delivered, .handed, .failed, .skipped, .revoked: return
        }
    }

    private static func sum(_ left: UInt32, _ right: UInt32) -> UInt32 {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow ? .max : sum
    }
}
