internal import FerryCore
internal import FerryRouting
package import FerryStats

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
    /// The gateway's estimate of its memory that grows with load; `memoryBytes` bounds it.
    package var memoryBytes = 0
    /// Payload bytes of kept messages and of those on their way to the disk; `storeBytes` bounds it.
    package var storeBytes = 0
    /// Pushes, and for want of memory questions about devices, that were refused, indexed by `Shortage.rawValue`.
    package var refused = [UInt64](repeating: 0, count: Shortage.allCases.count)

    /// The same by what reports are made of: of all apps and days.
    package var reported = ReportCounters()

    /// Devices that were erased or not seen for too long.
    package var devicesRemoved: UInt64 = 0
    package var compression = CompressionCounters()

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
        sum.devicesRemoved += right.devicesRemoved
        sum.memoryBytes += right.memoryBytes
        sum.storeBytes += right.storeBytes
        for index in sum.refused.indices { sum.refused[index] += right.refused[index] }
        sum.reported += right.reported
        sum.compression.add(right.compression)
        return sum
    }
}

/// What compressing payloads for devices has brought. A message that is sent again is compressed, and counted, again.
package struct CompressionCounters: Sendable, Equatable {
    package var messages: UInt64 = 0
    /// Payload bytes of those messages, and what was sent instead of them.
    package var bytesBefore: UInt64 = 0
    package var bytesAfter: UInt64 = 0
    /// Messages that were tried and sent as they are, since they would not have got shorter by a tenth.
    package var unshrunk: UInt64 = 0

    mutating func count(before: Int, after: Int) {
        messages += 1
        bytesBefore += UInt64(before)
        bytesAfter += UInt64(after)
    }

    mutating func add(_ other: Self) {
        messages += other.messages
        bytesBefore += other.bytesBefore
        bytesAfter += other.bytesAfter
        unshrunk += other.unshrunk
    }
}

extension Shard {
    func snapshot() -> ShardSnapshot {
        var snapshot = counters
        snapshot.count(tally)
        snapshot.reported = reportedSum
        snapshot.connections = connections.count
        snapshot.devices = devices.count
        snapshot.requestsEvictedEarly = requests.evictedEarly
        snapshot.memoryBytes = memoryEstimate
        snapshot.storeBytes = storeBytes
        return snapshot
    }
}
