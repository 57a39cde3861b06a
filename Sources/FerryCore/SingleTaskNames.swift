/// How tasks of pushes to devices by name are called, so that who asks for one need not name its devices.
extension Identifier128 {
    private static let several: UInt64 = 1 << 63

    /// It is to be looked for in all partitions. So are half of those that versions made which did not know of this.
    package var isOfSeveral: Bool { high & Self.several != 0 }

    /// The id of a task for one device in the partition.
    package func ending(in partition: Int) -> Identifier128 {
        let count = UInt64(Limits.partitions)
        return Identifier128(high: high & ~Self.several, low: low / count * count + UInt64(partition))
    }

    /// The id of a task for several devices.
    package var ofSeveral: Identifier128 { Identifier128(high: high | Self.several, low: low) }
}

extension Partition {
    /// Where the one device of such a task is.
    package init(ofSingle task: Identifier128) { self.init(index: Int(task.low % UInt64(Limits.partitions))) }
}
