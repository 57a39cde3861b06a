internal import FerryCore

/// Pushes without an answer: those that have been sent on the present link, oldest first; those that the gateway had no room
/// for; and the rest, which waits for room in the window.
struct PushQueue: Hashable, Sendable {
    private var out = PushLine()
    private var waiting = PushLine()
    private var held: HeldPushes
    private var queued: UInt64 = 0

    init(policy: BusyPolicy) { held = HeldPushes(policy: policy) }

    /// Sent on the present link.
    var sent: Int { out.count }
    /// Of the bodies of those.
    var sentBytes: Int { out.bytes }
    /// Refused for want of room and to be sent again, and what waits behind those.
    var heldBack: Int { held.count }
    var count: Int { out.count + held.count + waiting.count }
    var bytes: Int { out.bytes + held.bytes + waiting.bytes }
    var all: [LinkOutgoing] { (out.all + held.all + waiting.all).map(\.push) }
    /// When something that is held back may be sent at the earliest.
    var nextTry: Instant? { held.earliest }

    mutating func append(_ pushes: [LinkOutgoing]) {
        for push in pushes {
            queued += 1
            waiting.append(QueuedPush(push: push, order: queued))
        }
    }

    /// The next ones to send, counted as sent, as far as the window has room: first what is held back and due.
    mutating func next(window: UInt64, windowBytes: UInt64, now: Instant) -> [LinkOutgoing] {
        var (count, bytes) = (UInt64(out.count), UInt64(out.bytes))
        func hasRoom(_ push: QueuedPush) -> Bool {
            guard count < window, bytes + UInt64(push.bodyBytes) <= windowBytes else { return false }
            count += 1
            bytes += UInt64(push.bodyBytes)
            return true
        }
        var taken = held.takeDue(now: now, while: hasRoom)
        while let push = waiting.first {
            if held.holdBehind(push) {
                waiting.removeFirst()
                continue
            }
            guard hasRoom(push) else { break }
            waiting.removeFirst()
            taken.append(push)
        }
        for push in taken { out.append(push) }
        return taken.map(\.push)
    }

    /// The oldest has been accepted.
    mutating func accepted(now: Instant) -> Bool {
        guard let push = out.removeFirst() else { return false }
        held.answered(push, isAccepted: true, now: now)
        return true
    }

    /// The oldest has been refused; answered where that is for good.
    mutating func refused(
        code: UInt64, now: Instant, using random: inout some RandomNumberGenerator
    ) -> LinkOutgoing? {
        guard let push = out.removeFirst() else { return nil }
        if code == BusyPolicy.code { return held.hold(refused: push, now: now, using: &random) ? nil : push.push }
        held.answered(push, isAccepted: false, now: now)
        return push.push
    }

    /// The link is gone: all are to be sent again.
    mutating func rewind(now: Instant) {
        var again = PushLine()
        for push in out.all where !held.putBack(push, now: now) { again.append(push) }
        for push in waiting.all { again.append(push) }
        waiting = again
        out = PushLine()
    }
}

/// A push and its place among all that were queued.
struct QueuedPush: Hashable, Sendable {
    let push: LinkOutgoing
    let order: UInt64

    var cid: CID { push.cid }
    var bodyBytes: Int { push.bodyBytes }
}

/// First in, first out.
private struct PushLine: Hashable, Sendable {
    private var items: [QueuedPush] = []
    private var head = 0
    private(set) var bytes = 0

    var count: Int { items.count - head }
    var all: ArraySlice<QueuedPush> { items[head...] }
    var first: QueuedPush? { head < items.count ? items[head] : nil }

    mutating func append(_ push: QueuedPush) {
        items.append(push)
        bytes += push.bodyBytes
    }

    @discardableResult
    mutating func removeFirst() -> QueuedPush? {
        guard let push = first else { return nil }
        head += 1
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
}
