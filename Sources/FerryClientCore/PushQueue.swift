/// Pushes without an answer, oldest first: those in front have been sent on the present link, the rest waits for room.
struct PushQueue: Hashable, Sendable {
    private var items: [LinkOutgoing] = []
    private var head = 0
    /// Sent on the present link, and the bytes of their bodies.
    private(set) var sent = 0
    private(set) var sentBytes = 0
    private(set) var bytes = 0

    var count: Int { items.count - head }
    var all: [LinkOutgoing] { Array(items[head...]) }

    mutating func append(_ pushes: [LinkOutgoing]) {
        items += pushes
        for push in pushes { bytes += push.bodyBytes }
    }

    /// The next one to send, counted as sent; nil when there is none or no room.
    mutating func next(window: UInt64, windowBytes: UInt64) -> LinkOutgoing? {
        guard sent < count, UInt64(sent) < window else { return nil }
        let push = items[head + sent]
        guard UInt64(sentBytes + push.bodyBytes) <= windowBytes else { return nil }
        sent += 1
        sentBytes += push.bodyBytes
        return push
    }

    /// The oldest has its answer.
    mutating func removeFirst() -> LinkOutgoing? {
        guard sent > 0 else { return nil }
        let push = items[head]
        head += 1
        sent -= 1
        sentBytes -= push.bodyBytes
        bytes -= push.bodyBytes
        if head == items.count {
            items.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 1_024 && head * 2 >= items.count {
            items.removeFirst(head)
            head = 0
        }
        return push
    }

    /// The link is gone: all are to be sent again.
    mutating func rewind() {
        sent = 0
        sentBytes = 0
    }
}
