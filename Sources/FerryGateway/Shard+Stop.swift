internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// The end of a shard: nothing new is taken, and what was accepted is finished.
extension Shard {
    mutating func beginDrain() {
        guard !isDraining else { return }
        isDraining = true
        drainEnds = now + environment.configuration.drainDeadline
        if let listeners = environment.listeners {
            poller.remove(listeners.device)
            poller.remove(listeners.http)
            if let link = listeners.link { poller.remove(link) }
        }
        closeForStop()
    }

    /// Everything accepted is on disk and answered, what was to be sent had its chance, and no other shard has a question.
    mutating func isDrained() -> Bool {
        if now >= drainEnds { return true }
        guard
            unsynced.count == unsyncedHead && journal.isEmpty && loading.isEmpty && openAnswers == 0
                && openLinkPushes == 0 && linkAnswers.isEmpty && answeringLinks.isEmpty && stubsInFlight == 0
                && !book.hasChanges && reportReplies.isEmpty && !receiptDesk.hasFresh
                && dirty.isEmpty && mail.allSatisfy(\.isEmpty)
                && orders.allSatisfy(\.isEmpty)
        else { return false }
        if !isQuiet {
            // Calls that come in from now on are refused where they come in.
            isQuiet = true
            environment.quietShards.enter()
        }
        return environment.quietShards.isAll(of: environment.shards)
    }
}
