internal import FerryCore

/// What ended work leaves of memory, for work that begins: a device whose messages are acknowledged as they come would else
/// take and give back memory for each of them. Its owner keeps one for all its devices.
package struct SpareWork {
    /// Each has one element, which is `DeviceWork.none` but for the room in its log.
    private var boxes: [ContiguousArray<DeviceWork>] = []
    private static let most = 256

    package init() {}

    package var count: Int { boxes.count }

    /// One element, as in a device that has nothing yet.
    mutating func take() -> ContiguousArray<DeviceWork> { boxes.popLast() ?? [.none] }

    /// `work` has one element, and all that it kept has ended.
    mutating func giveBack(_ work: consuming ContiguousArray<DeviceWork>) {
        guard boxes.count < Self.most else { return }
        work[0].reset()
        boxes.append(work)
    }
}

extension DeviceWork {
    /// As `none`, with the memory that it has. Part by part: to copy `none` would count references.
    fileprivate mutating func reset() {
        log.removeAll()
        if !gaps.isEmpty { gaps = [] }
        flight = AckWindow.Flight()
        unsyncedDrops = 0
        unsyncedDue = 0
        unsyncedFrom = Seq(.max)
        defaultStub = .idle
        earliestExpiry = .distantFuture
    }
}
