internal import FerryCore
internal import Synchronization

/// How many devices of each app are online, and how many are registered, over all shards: what no shard can count alone. Touched
/// when a device comes or goes, not for messages.
final class AppCensus: Sendable {
    struct Count: Sendable {
        var online = 0
        var registered = 0
    }

    private let counts: Mutex<[AppID: Count]>

    init(_ apps: AppRegistry) {
        counts = Mutex(Dictionary(uniqueKeysWithValues: apps.all.map { ($0.id, Count()) }))
    }

    /// What it is then. Apps that devices belong to and the operator does not name any more are counted too.
    func change(_ app: AppID, _ change: (inout Count) -> Void) -> Count {
        counts.withLock { counts in
            change(&counts[app, default: Count()])
            return counts[app] ?? Count()
        }
    }

    func count(_ app: AppID) -> Count { counts.withLock { $0[app] ?? Count() } }
}
