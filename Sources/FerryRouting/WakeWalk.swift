package import FerryCore

/// How far one shard is with waking the owners of devices for a push to all. It walks through the app's devices in the order of
/// their cids, once for each wave: a wave is a run of the shard's partitions, by its own numbers, of which all had their places
/// when it began. A push without a pace has one wave. It is a value: it knows no device and no clock.
package struct WakeWalk: Hashable, Sendable {
    /// Partitions that are done with.
    package private(set) var done: Int
    /// The wave that is under way ends before this one; `done` where there is none.
    package private(set) var upTo: Int
    /// The last device of the wave that was looked at; nil: none.
    package private(set) var cursor: CID?
    /// The same for what is to survive a restart: of every device up to here it is settled whether it is woken.
    package private(set) var settled: CID?

    package init() {
        done = 0
        upTo = 0
    }

    /// Whether it is settled for the device, whose partition has this number of the shard's own, if its owner is woken.
    package func hasSettled(_ cid: CID, local: Int) -> Bool {
        if local < done { return true }
        guard local < upTo, let settled else { return false }
        return cid <= settled
    }

    package var isInWave: Bool { upTo > done }
    package var wave: Range<Int> { done..<max(done, upTo) }

    /// All of `placed` partitions have their places, and those that are not done with make the next wave.
    package mutating func beginWave(upTo placed: Int) {
        guard !isInWave, placed > done else { return }
        upTo = placed
        (cursor, settled) = (nil, nil)
    }

    /// All devices up to `cursor` were looked at.
    package mutating func move(to cursor: CID) { self.cursor = cursor }

    /// Whatever was asked for up to `cursor` is settled.
    package mutating func settle(upTo cursor: CID?) {
        if let cursor { settled = cursor }
    }

    /// All devices were looked at, and all is settled.
    package mutating func endWave() {
        done = upTo
        (cursor, settled) = (nil, nil)
    }

    // MARK: - Its row

    /// The row's key: it tells of one of so many shards, whose number is that of the row's partition.
    package static func key(_ task: Identifier128, shards: Int) -> [UInt8] {
        task.bytes + [UInt8(truncatingIfNeeded: shards >> 8), UInt8(truncatingIfNeeded: shards)]
    }

    /// nil when it is no such key.
    package static func read(key: [UInt8]) -> (task: Identifier128, shards: Int)? {
        guard key.count == 18, let task = Identifier128(bytes: Array(key.prefix(16))) else { return nil }
        let shards = Int(key[16]) << 8 | Int(key[17])
        return shards > 0 ? (task, shards) : nil
    }

    private static let version: UInt8 = 1

    /// As a restart should find it.
    package var row: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.version)
        writer.varint(UInt64(done))
        writer.varint(UInt64(upTo))
        if let settled { writer.identifier(settled.value) }
        return writer.bytes
    }

    /// nil when the bytes are no such row.
    package init?(row: [UInt8]) {
        let read: WakeWalk? = row.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == Self.version, let done = reader.varint(), let upTo = reader.varint(),
                done <= upTo, upTo <= UInt64(Limits.partitions)
            else { return nil }
            var walk = WakeWalk()
            (walk.done, walk.upTo) = (Int(done), Int(upTo))
            guard !reader.isAtEnd else { return walk }
            guard let cid = reader.identifier(), reader.isAtEnd else { return nil }
            (walk.cursor, walk.settled) = (CID(cid), CID(cid))
            return walk
        }
        guard let read else { return nil }
        self = read
    }
}
