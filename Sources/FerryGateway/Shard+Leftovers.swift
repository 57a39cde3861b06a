internal import FerryCore
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore

extension Shard {
    /// What waits for the store, for other shards or for the wake-up channel. An entry that never leaves is a leak.
    var leftovers: [(name: String, count: Int)] {
        [
            ("unsynced", unsynced.count - unsyncedHead), ("unsyncedBytes", unsyncedBytes), ("loading", loading.count),
            ("reads", reads.count), ("deferredReads", deferredReads.count), ("stubsInFlight", stubsInFlight),
            ("deferred", deferred.count), ("requestWaiters", requestWaiters.count),
            ("statusQuestions", statusQuestions.count), ("batches", batches.count),
            ("userQuestions", users.questions.count),
            ("audienceCounts", users.counts.count), ("usersUnwritten", users.unwritten),
            ("revocations", revocations.count),
            ("censusQuestions", censusQuestions.count),
            ("logged", loggedMessages + broadcasts.unreached - tally.kept), ("handshakes", handshakes.count),
            ("backends", backends.count), ("requestBytes", requestBytes), ("waitingBytes", waitingBytes),
            ("answerBytes", answerBytes),
            ("storeBytes", storeBytes - loggedBytes), ("pendingMessages", pendingMessages),
            ("bufferBytes", connections.count == 0 ? bufferBytes : 0),
            ("openBroadcasts", openBroadcasts.count + placing.count + unplaced.count + broadcasts.coming),
            ("reported", reportedKept - tally.kept), ("reportReplies", reportReplies.count),
            ("reportQuestions", reportQuestions.count),
            ("stopping", tasks.stopping.count + tasks.placing.count + tasks.stoppedEarly.count),
            ("listSweep", tasks.lists.isSweeping ? 1 : 0),
            ("singleStops", tasks.stoppingSingles.count + tasks.singleStops.count),
            ("schedules", tasks.schedules.unsettled + tasks.comingSchedules),
            ("lists", lists.creating.count + lists.wanted.count + lists.held.count + lists.repeats.count),
            (
                "tags",
                lists.tags.calls.count + lists.tags.gatherings.count + lists.tags.expansions.count
                    + (lists.tags.step == nil && lists.tags.awaited == nil ? 0 : 1)
            ),
            ("wakes", wakes.loading.count + wakes.failed.count),
            ("passes", broadcasts.sweeping.count),
            ("receipts", receiptDesk.fresh.count + receiptDesk.again.count + receiptDesk.goneAgain.count),
            ("links", links.count), ("linkAnswers", linkAnswers.count + answeringLinks.count),
        ]
    }

    private var loggedBytes: Int {
        (0..<devices.endIndex).reduce(0) { devices.isInUse($1) ? $0 + ownBytes($1) : $0 }
    }

    /// Without those of contents that messages only refer to: they take no room of the store's budget.
    private func ownBytes(_ device: Int) -> Int {
        let log = devices[device].machine.log
        return (0..<log.count).reduce(0) {
            log[$1].isShared || log[$1].isReference ? $0 : $0 + Int(log[$1].payloadBytes)
        }
    }

    private var pendingMessages: Int {
        (0..<devices.endIndex).reduce(0) { devices.isInUse($1) ? $0 + Int(devices[$1].pending.count) : $0 }
    }

    /// What devices have not taken yet.
    var outputs: [(descriptor: Int32, bytes: Int)] {
        (0..<connections.highWater).compactMap { slot in
            guard connections[slot].kind == .device, !connections[slot].output.isEmpty else { return nil }
            return (connections[slot].transport.descriptor, connections[slot].output.count)
        }
    }

    /// Messages in the logs of all devices: what `tally.kept` counts.
    private var loggedMessages: Int {
        (0..<devices.endIndex).reduce(0) { devices.isInUse($1) ? $0 + devices[$1].machine.log.count : $0 }
    }
}
