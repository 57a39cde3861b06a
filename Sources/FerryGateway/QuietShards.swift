internal import Synchronization

/// How many shards of a gateway that stops will ask nothing more of the others. Until it is all of them, each must stay to
/// answer: a shard that left early would leave the backends of the others without their answers.
final class QuietShards: Sendable {
    private let count = Atomic<Int>(0)

    /// Once a shard.
    func enter() { count.add(1, ordering: .acquiringAndReleasing) }

    func isAll(of shards: Int) -> Bool { count.load(ordering: .acquiring) >= shards }
}
