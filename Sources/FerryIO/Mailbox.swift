internal import CLinux
internal import Synchronization

/// A queue into a thread that waits on a `Poller`: many post, one drains, and a burst costs one wake-up.
package final class Mailbox<Item: Sendable>: Sendable {
    private let items = Mutex<[Item]>([])
    /// Readable while there may be something to drain; add it to the owner's poller.
    package let descriptor: Int32

    package init() throws(SystemError) {
        descriptor = try SystemError.check("create an eventfd", clinux_eventfd())
    }

    deinit { _ = clinux_close(descriptor) }

    package func post(_ item: Item) {
        let wasEmpty = items.withLock { queue in
            queue.append(item)
            return queue.count == 1
        }
        if wasEmpty { clinux_eventfd_signal(descriptor) }
    }

    package func post(_ batch: [Item]) {
        guard !batch.isEmpty else { return }
        let wasEmpty = items.withLock { queue in
            defer { queue.append(contentsOf: batch) }
            return queue.isEmpty
        }
        if wasEmpty { clinux_eventfd_signal(descriptor) }
    }

    /// Swaps the queue with `buffer`, which must be empty: no allocation once both have grown to their size.
    package func drain(into buffer: inout [Item]) {
        clinux_eventfd_drain(descriptor)
        items.withLock { swap(&$0, &buffer) }
    }
}
