package import FerryCore

/// Receipts of one app in one partition: they go out in their order. Lanes of an app are independent of each other.
package struct ReceiptLaneName: Hashable, Sendable {
    package var app: AppID
    package var partition: Partition

    package init(app: AppID, partition: Partition) {
        self.app = app
        self.partition = partition
    }
}

/// A receipt as its row has it.
package struct ReceiptEntry: Hashable, Sendable {
    /// Rises within the lane.
    package var number: UInt64
    package var row: [UInt8]

    package init(number: UInt64, row: [UInt8]) {
        self.number = number
        self.row = row
    }
}

/// What goes out together. Of one lane one batch is under way at a time.
package struct ReceiptBatch: Sendable, Equatable {
    package var lane: ReceiptLaneName
    package var entries: [ReceiptEntry]
    /// How often the lane's endpoint has failed in a row, and before when it is not to be asked again, as far as a life before
    /// this one knew.
    package var failures: UInt8
    package var notBefore: Instant

    package init(lane: ReceiptLaneName, entries: [ReceiptEntry], failures: UInt8 = 0, notBefore: Instant = .distantPast)
    {
        self.lane = lane
        self.entries = entries
        self.failures = failures
        self.notBefore = notBefore
    }
}

/// What becomes of a batch. The last word is anything but `delayed`.
package enum ReceiptProgress: Hashable, Sendable {
    /// The endpoint has answered.
    case taken
    /// It has answered with a status that says no, and will not be asked again: it counts as told.
    case refused(status: Int)
    /// The batch became too old.
    case tooOld
    /// It failed, so many times in a row; next try then.
    case delayed(failures: UInt8, until: Instant)

    package var isLast: Bool {
        if case .delayed = self { false } else { true }
    }
}

/// A way to bring receipts to backends.
package protocol ReceiptChannel: AnyObject, Sendable {
    /// Takes a batch and returns at once; calls `told` for each progress, from any thread.
    func offer(_ batch: ReceiptBatch, told: @escaping @Sendable (ReceiptProgress) -> Void)
    /// Lets go of all that is under way.
    func close()
}
