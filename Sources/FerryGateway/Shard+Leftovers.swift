internal import FerryCore
internal import FerryRouting
internal import FerrySession
internal import FerryStore

extension Shard {
    /// What waits for the store, for other shards or for the wake-up channel. An entry that never leaves is a leak.
    var leftovers: [(name: String, count: Int)] {
        [
            ("unsynced", unsynced.count - unsyncedHead), ("unsyncedBytes", unsyncedBytes), ("loading", loading.count),
            ("reads", reads.count), ("deferredReads", deferredReads.count), ("stubsInFlight", stubsInFlight),
            ("deferred", deferred.count), ("requestWaiters", requestWaiters.count),
            ("statusQuestions", statusQuestions.count), ("revocations", revocations.count),
            ("logged", loggedMessages - counters.keptMessages), ("handshakes", handshakes.count),
            ("backends", backends.count), ("requestBytes", requestBytes), ("links", links.count),
            ("linkAnswers", linkAnswers.count + answeringLinks.count),
        ]
    }

    /// Messages in the logs of all devices: what `keptMessages` counts.
    private var loggedMessages: Int {
        (0..<devices.endIndex).reduce(0) { devices.isInUse($1) ? $0 + devices[$1].machine.log.count : $0 }
    }
}
