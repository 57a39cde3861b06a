/// A fixed slice of all devices, with one rising `seq` line and one owner shard.
package struct Partition: Hashable, Sendable, BitwiseCopyable {
    /// 0..<`Limits.partitions`.
    package let index: Int

    /// `index` is taken modulo the count of partitions.
    package init(index: Int) { self.index = Int(index.magnitude % UInt(Limits.partitions)) }

    /// The partition of a device. Never changes for the life of a data folder: `seq` lines depend on it.
    package init(of cid: CID) {
        // The finalizer of splitmix64: every bit of the id takes part, whatever made the id.
        var mixed = cid.value.high ^ cid.value.low
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        mixed ^= mixed >> 31
        index = Int(mixed % UInt64(Limits.partitions))
    }

    /// The partition of an app: the shard that owns it takes the app's broadcasts. Never changes, as that of a device. FNV-1a.
    package init(of app: AppID) {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in app.text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        index = Int((hash ^ hash >> 32) % UInt64(Limits.partitions))
    }

    /// The shard (0..<`shards`) that owns this partition. Decided at start: the count of shards may change between runs.
    package func owner(among shards: Int) -> Int { index % shards }
}
