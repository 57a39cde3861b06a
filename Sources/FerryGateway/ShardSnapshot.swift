internal import FerryCore
internal import FerryStats

/// One shard in numbers; sums over shards are the gateway's.
package struct ShardSnapshot: Sendable, Equatable {
    package var connections = 0
    package var sessions = 0
    /// Devices in memory.
    package var devices = 0
    package var keptMessages = 0
    package var accepted: UInt64 = 0
    /// How many messages ended in each state, indexed by `DeliveryState.rawValue`; `kept` stays 0.
    package var ended = [UInt64](repeating: 0, count: DeliveryState.allCases.count)
    package var stubsRequested: UInt64 = 0
    package var stubsAccepted: UInt64 = 0
    package var stubsRefused: UInt64 = 0
    package var requestsEvictedEarly: UInt64 = 0

    package init() {}

    /// Takes over what facts were counted to.
    mutating func count(_ tally: DeliveryCounters) {
        keptMessages = tally.kept
        accepted = tally.accepted
        ended = tally.ended
        stubsRequested = tally.stubsRequested
        stubsAccepted = tally.stubsAccepted
        stubsRefused = tally.stubsRefused
    }

    package static func + (left: Self, right: Self) -> Self {
        var sum = left
        sum.connections += right.connections
        sum.sessions += right.sessions
        sum.devices += right.devices
        sum.keptMessages += right.keptMessages
        sum.accepted += right.accepted
        for index in sum.ended.indices { sum.ended[index] += right.ended[index] }
        sum.stubsRequested += right.stubsRequested
        sum.stubsAccepted += right.stubsAccepted
        sum.stubsRefused += right.stubsRefused
        sum.requestsEvictedEarly += right.requestsEvictedEarly
        return sum
    }
}
