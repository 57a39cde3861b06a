internal import FerryCore

/// Messages of tasks of single pushes that have several devices, of one shard's devices: found by their task while they are kept.
/// What is not kept any more leaves as others come, two looks for each, so that there are never many more than are kept.
struct SeveralTasks {
    struct Message: Hashable {
        let cid: CID
        let seq: Seq
    }

    private var messages: [Identifier128: [Message]] = [:]
    /// In a ring: the next to be looked at is at `head`.
    private var ring: [(task: Identifier128, message: Message)] = []
    private var head = 0

    /// What one takes of memory, about.
    static let bytesPerMessage = 192

    var count: Int { ring.count - head }

    func find(_ task: Identifier128) -> [Message] { messages[task] ?? [] }

    mutating func add(_ task: Identifier128, _ message: Message, isKept: (Message) -> Bool) {
        // Before the new one, which need not be kept yet.
        for _ in 0..<2 { lookAtOldest(isKept) }
        messages[task, default: []].append(message)
        ring.append((task, message))
        if head >= 1_024, head * 2 >= ring.count {
            ring.removeFirst(head)
            head = 0
        }
    }

    private mutating func lookAtOldest(_ isKept: (Message) -> Bool) {
        guard count > 0 else { return }
        let oldest = ring[head]
        head += 1
        if isKept(oldest.message) { return ring.append(oldest) }
        guard var left = messages[oldest.task] else { return }
        left.removeAll { $0 == oldest.message }
        messages[oldest.task] = left.isEmpty ? nil : left
    }
}
