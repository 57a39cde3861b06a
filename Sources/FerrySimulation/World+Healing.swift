internal import FerryClientCore
internal import FerryCore
internal import FerryGateway
internal import FerryRouting
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// The end of a run: everything works again, and what was promised must come true.
extension World {
    /// The network and the disk are well, nothing new is posted; who is away stays away.
    func calmDown() throws {
        isHealing = true
        healDisk()
        unclogAll()
        startsAtStep = 0
        for link in links where link.isSilent { breakOff(link) }
        for _ in 0..<60 where violation == nil { try round(advance: 1_000) }
        guard violation == nil else { return }
        check { () throws(Violation) in try ledger.checkWoken() }
    }

    /// Everybody comes back, until all is delivered.
    func heal() throws {
        var first: Set<Int> = []
        for client in clients {
            client.isFrozen = false
            // Of two with one identity, one leaves.
            if first.insert(client.device).inserted {
                client.restart(from: client.saved, acknowledges: true)
            } else {
                client.handle(.stopRequested)
            }
        }
        // Where pushes are refused while others are kept, all of them need as many acknowledgements one after the other.
        let isRefusing = configuration.delivery.capPolicy == .refuse || !configuration.storeBytes.isUnlimited
        for turn in 0..<(isRefusing ? 6_000 : 600) {
            guard violation == nil else { return }
            if turn % 20 == 19 {
                // The devices of those that left.
                for client in clients where client.machine.phase != .stopped { client.handle(.enteredForeground) }
            }
            for backend in backends { backend.postAllAgain() }
            try round(advance: turn < 100 ? 50 : 500)
            if isHealed { break }
        }
        guard violation == nil else { return }
        guard isHealed else { return report(stuck()) }
        // Of the last drops the records may be on their way, and the gap behind them.
        for _ in 0..<8 where violation == nil { try round(advance: 200) }
        guard violation == nil else { return }
        check { () throws(Violation) in try ledger.checkEnd() }
        if let told = gateway?.snapshot.reported {
            check { () throws(Violation) in try ledger.checkReports(told) }
        }
        guard violation == nil else { return }
        try checkReceipts()
        guard violation == nil else { return }
        try askForStories()
        guard violation == nil else { return }
        try leave()
    }

    /// Every end is told, and then nothing of it is left.
    private func checkReceipts() throws {
        guard receipts != nil else { return }
        for _ in 0..<400 where violation == nil && gateway?.openReceipts != 0 { try round(advance: 100) }
        guard violation == nil else { return }
        if let open = gateway?.openReceipts, open != 0 {
            return report(Violation(promise: "receipts", what: "all is well again, and \(open) lanes are not empty"))
        }
        check { () throws(Violation) in try ledger.checkReceipts() }
    }

    /// What became of every message; of some it is asked for alone too, with room for its beginning and its end only.
    private func askForStories() throws {
        guard let backend = backends.first else { return }
        for device in ledger.devices.indices {
            backend.call(.timeline(device: device, post: nil, limit: 5_000))
            let own = ledger.posts.filter { $0.device == device && $0.taskID != nil }
            for post in own.prefix(2) + own.dropFirst(2).suffix(2) {
                backend.call(.timeline(device: device, post: post.number, limit: 2))
            }
        }
        // Where a connection takes little at once, long answers need many turns.
        for _ in 0..<1_000 where violation == nil && !backend.hasAllAnswers { try round(advance: 10) }
        if violation == nil, !backend.hasAllAnswers {
            report(Violation(promise: "P6", what: "questions for what became of messages are not answered"))
        }
        check { () throws(Violation) in try ledger.checkLeftOut() }
    }

    /// One turn of everything.
    func round(advance: Int, isStoreStill: Bool = false) throws {
        trace.step += 1
        trace.milliseconds = clock.now.milliseconds - VirtualClock.start
        try startIfDue()
        for link in links { feed(link) }
        turnAll()
        if !isStoreStill { storeTurn() }
        turnAll()
        for client in clients { client.turn() }
        for backend in backends { backend.turn() }
        for link in links { feed(link) }
        while !waitingStubs.isEmpty { answerStub() }
        for _ in 0..<3 { answerReceipts() }
        continueStop()
        clock.advance(advance)
    }

    private var isHealed: Bool {
        guard let gateway, stopsUntil == nil else { return false }
        let isExpanding = gateway.leftovers.contains {
            ($0.name == "tags" || $0.name == "openBroadcasts") && $0.count > 0
        }
        return !isExpanding && backends.allSatisfy(\.hasAllAnswers) && gateway.snapshot.keptMessages == 0
            && clients.allSatisfy { $0.machine.phase == .stopped || ($0.isAttached && $0.isSettled) }
            && ledger.devices.allSatisfy { $0.cid != nil }
            && ledger.posts.allSatisfy { $0.scheduledAt.map { $0 + .seconds(10) < gatewayClock.now } ?? true }
    }

    private func stuck() -> Violation {
        let kept = gateway?.snapshot.keptMessages ?? -1
        let phases = clients.map { "\($0.device): \($0.machine.phase)" }
        let waiting = backends.map { "\($0.open) \($0.unanswered)" }
        return Violation(
            promise: "P1",
            what: "all is well again, and \(kept) messages are kept, clients are \(phases), posts wait: \(waiting)")
    }

    /// Everybody leaves: nothing may be left over.
    private func leave() throws {
        for client in clients { client.handle(.stopRequested) }
        for _ in 0..<5 { try round(advance: 100) }
        for backend in backends { backend.lose() }
        for link in links { breakOff(link) }
        for _ in 0..<30 { try round(advance: 3_000) }
        guard violation == nil, let gateway else { return }
        let snapshot = gateway.snapshot
        guard snapshot.sessions == 0, snapshot.connections == 0 else {
            return report(
                Violation(
                    promise: "P6",
                    what:
                        "everybody has left, and \(snapshot.sessions) sessions and "
                        + "\(snapshot.connections) connections are counted"))
        }
        if let left = gateway.leftovers.first(where: { $0.count != 0 }) {
            report(Violation(promise: "P7", what: "everybody has left, and \(left.count) of \(left.name) remain"))
        }
    }
}
