internal import FerryCore
internal import FerryStats

extension Ledger {
    /// What reports are made of, over all days and lives. Everything has ended.
    func checkReports(_ told: ReportCounters) throws(Violation) {
        guard told.kept == 0, told.carried == 0 else {
            throw fail("P6", "reports tell of \(told.kept) kept messages and \(told.carried) that came from nowhere")
        }
        let least = posts.count { $0.isAccepted && $0.isOwed }
        let most = posts.reduce(0) { $0 + ($1.mayBeTwice ? $1.attempts : min(1, $1.attempts)) }
        guard (Int64(least)...Int64(max(least, most))).contains(told.accepted) else {
            throw fail("P6", "reports tell of \(told.accepted) accepted messages, backends of \(least) to \(most)")
        }
        let delivered = told.ended(DeliveryState.delivered)
        let certain = posts.count { $0.isHanded && $0.isLong && !scenario.hasCap }
        let handed = posts.reduce(0) { $0 + ($1.isHanded ? ($1.mayBeTwice ? $1.attempts : 1) : 0) }
        guard (Int64(certain)...Int64(max(certain, handed))).contains(delivered) else {
            throw fail("P6", "reports tell of \(delivered) delivered messages, devices of \(certain) to \(handed)")
        }
    }
}
