internal import FerryIO
internal import Synchronization

/// How many connections all shards hold together, so that descriptors never run out.
final class ConnectionCensus: Sendable {
    private let count = Atomic<Int>(0)
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    /// Counts one more; false, and nothing counted, when the limit is reached.
    func enter() -> Bool {
        if count.add(1, ordering: .relaxed).newValue <= limit { return true }
        count.subtract(1, ordering: .relaxed)
        return false
    }

    func leave() { count.subtract(1, ordering: .relaxed) }
}
