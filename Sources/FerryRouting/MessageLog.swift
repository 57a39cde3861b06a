package import FerryCore

/// A device's kept messages in order of `seq`. Messages leave at the front with an ack, in the middle by expiry.
package struct MessageLog: Hashable, Sendable {
    /// The live messages start at `head`; what is before it has left and is cut off in bulk.
    private var storage: ContiguousArray<KeptMessage> = []
    private var head = 0
    /// Payload bytes of the device's own messages.
    package private(set) var bytes = 0
    /// Messages of broadcasts.
    package private(set) var sharedCount = 0
    package private(set) var sharedBytes = 0

    package init() {}

    package var count: Int { storage.count - head }
    /// Messages that are the device's own.
    package var ownCount: Int { count - sharedCount }
    package var isEmpty: Bool { count == 0 }
    package var first: KeptMessage? { isEmpty ? nil : storage[head] }
    package var last: KeptMessage? { storage.last }

    package subscript(index: Int) -> KeptMessage {
        get { storage[head + index] }
        set { storage[head + index] = newValue }
    }

    /// `message.seq` is above all others here.
    package mutating func append(_ message: KeptMessage) {
        storage.append(message)
        weigh(message, 1)
    }

    /// Room for exactly so many, where they are known beforehand.
    package mutating func reserve(_ count: Int) { storage.reserveCapacity(count) }

    package mutating func removeFirst() -> KeptMessage? {
        guard !isEmpty else { return nil }
        let message = storage[head]
        head += 1
        weigh(message, -1)
        cutOff()
        return message
    }

    /// In order.
    func appendAll(to messages: inout [KeptMessage]) { messages.append(contentsOf: storage[head...]) }

    /// As a new one, with its memory unless that is much.
    mutating func removeAll() {
        var emptied = MessageLog()
        if storage.capacity <= Self.keptCapacity {
            swap(&emptied.storage, &storage)
            emptied.storage.removeAll(keepingCapacity: true)
        }
        self = emptied
    }

    /// What a log that was emptied may hold for the next messages.
    private static let keptCapacity = 16

    /// Costs what stands on the shorter side of `index`.
    package mutating func remove(at index: Int) -> KeptMessage {
        let message = storage[head + index]
        if index < count / 2 {
            for place in stride(from: head + index, to: head, by: -1) { storage[place] = storage[place - 1] }
            head += 1
        } else {
            storage.remove(at: head + index)
        }
        weigh(message, -1)
        cutOff()
        return message
    }

    /// Takes out, in one pass, the messages from `index` on for which `condition` holds, in order.
    package mutating func removeAll(from index: Int = 0, where condition: (KeptMessage) -> Bool) -> [KeptMessage] {
        guard let first = storage[(head + index)...].firstIndex(where: condition) else { return [] }
        var removed: [KeptMessage] = []
        var end = first
        for place in first..<storage.count {
            let message = storage[place]
            if condition(message) {
                removed.append(message)
                weigh(message, -1)
            } else {
                storage[end] = message
                end += 1
            }
        }
        storage.removeLast(storage.count - end)
        cutOff()
        return removed
    }

    /// Adds the message to the sums, or with -1 takes it out.
    private mutating func weigh(_ message: KeptMessage, _ factor: Int) {
        if message.isShared {
            sharedCount += factor
            sharedBytes += factor * Int(message.payloadBytes)
        } else {
            bytes += factor * Int(message.payloadBytes)
        }
    }

    private mutating func cutOff() {
        if head == storage.count {
            // An idle device owns no memory here.
            storage = []
            head = 0
        } else if head >= 64 && head * 2 >= storage.count {
            storage.removeFirst(head)
            head = 0
        }
    }

    /// Index of the first message above `seq`; `count` when there is none.
    package func firstIndex(after seq: Seq) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self[middle].seq > seq { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// The device's own messages that were accepted in this segment of the journal. Not by bisection: entries of broadcasts,
    /// which have no place there, stand between them.
    package func messages(inSegment segment: UInt32) -> [KeptMessage] {
        storage[head...].filter { $0.location.segment == segment && !$0.isShared }
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.storage[left.head...] == right.storage[right.head...]
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(storage[head...]) }
}
