internal import FerryCore
internal import FerryStats

extension Ledger {
    /// What reports are made of, over all days and lives. Everything has ended.
    func checkReports(_ told: ReportCounters) throws(Violation) {
        guard told.kept == 0, told.carried == 0 else {
            throw fail("P6", "reports tell of \(told.kept) kept messages and \(told.carried) that came from nowhere")
        }
        let least = posts.count { $0.isAccepted && ($0.isOwed || $0.wasOwed) && hasBegun($0) }
        let most = posts.reduce(0) { $0 + mostAccepted($1) }
        guard (Int64(least)...Int64(max(least, most))).contains(told.accepted) else {
            throw fail("P6", "reports tell of \(told.accepted) accepted messages, backends of \(least) to \(most)")
        }
        let delivered = told.ended(DeliveryState.delivered)
        let certain = posts.count(where: isDeliveredForCertain)
        let handed = posts.reduce(0) { $0 + ($1.isHanded ? mostAccepted($1) : 0) }
        // Where the disk refuses what it is asked for, a crash right behind it may leave one that is told as expired.
        let doubtful = scenario.diskFaults > 0 ? Int64(life) : 0
        guard (Int64(certain) - doubtful...Int64(max(certain, handed))).contains(delivered) else {
            throw fail("P6", "reports tell of \(delivered) delivered messages, devices of \(certain) to \(handed)")
        }
        try checkErased(told)
    }

    /// What was kept for a device when it was erased ended with it, and nothing else did.
    private func checkErased(_ told: ReportCounters) throws(Violation) {
        let removed = told.ended(EndReason.deviceRemoved)
        let least = posts.count {
            $0.wasOwed && $0.isLong && !$0.isHanded && $0.isOwedToApp && $0.stoppingStep == nil && !scenario.hasCap
        }
        let most = posts.reduce(0) { $0 + ($1.isErased ? mostAccepted($1) : 0) }
        guard (Int64(least)...Int64(max(least, most))).contains(removed) else {
            throw fail(
                "P6", "reports tell of \(removed) messages ended by an erasure, and those are \(least) to \(most)")
        }
    }

    /// What is stopped before its time is for nobody; nor is it for those of an audience whose turn had not come.
    private func hasBegun(_ post: Post) -> Bool {
        guard post.stoppingStep != nil else { return true }
        if post.isTagged { return post.isSent }
        guard post.scheduledAt != nil else { return true }
        return ofOneCall(post.number).contains { posts[$0].isSent }
    }

    /// What every attempt was refused of is not there.
    private func mostAccepted(_ post: Post) -> Int {
        if post.isRefused { return 0 }
        return post.mayBeTwice ? post.attempts : min(1, post.attempts)
    }

    /// Its acknowledgement reached the gateway before any other end did: in this life for certain, or since none other could come.
    /// One from another life that was not synced is said again, and by then its sender may have stopped it, or its device may be
    /// erased.
    private func isDeliveredForCertain(_ post: Post) -> Bool {
        if delivered.contains(post.number) { return true }
        return post.isHanded && post.isLong && post.isOwedToApp && !scenario.hasCap && post.stoppingStep == nil
            && !post.isErased
    }
}
