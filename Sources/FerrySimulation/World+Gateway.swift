internal import FerryAPNS
internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerryStore

/// The gateway's lives: starts, turns, crashes and stops.
extension World {
    func startGateway() throws {
        let clock = clock
        var options = StoreOptions(folder: "simulated", clock: { clock.now })
        options.segmentBytes = configuration.segmentBytes
        options.keptSegments = configuration.keptSegments
        options.requestWindow = configuration.requestWindow
        if trace.isTold { options.report = { EventLog.write(.error, "store", ["reason": $0.description]) } }
        do {
            let store = try SteppedStore.inMemory(options, disk: disk, tables: tables)
            var configuration = configuration
            configuration.shards = ledger.life == 0 || isHealing ? scenario.shards : dice.within(1...3)
            wake = SlowWake()
            waitingStubs = []
            ledger.gatewayStarted(shards: configuration.shards)
            let gateway = try SteppedGateway(
                configuration, store: store, wake: wake, seed: dice.next(), clock: { clock.now })
            self.store = store
            self.gateway = gateway
            stopsUntil = nil
            let snapshot = gateway.snapshot
            restored = snapshot.keptMessages + Int(snapshot.ended.reduce(0, +)) - Int(snapshot.accepted)
            trace.note("start", configuration.shards, restored)
            takeStubs()
        } catch let failure as StoreFailure {
            // Full disks and the like pass; what is corrupted stays.
            guard failure.kind == .full || failure.kind == .disk else { throw failure }
            trace.note("no start")
            startsAtStep = trace.step + 50
        }
    }

    func turn(_ shard: Int) {
        guard let gateway, shard < gateway.shards else { return }
        gateway.turn(shard)
        takeStubs()
        drainLinks()
        ledger.turned(shard)
        checkCounters()
    }

    func turnAll() {
        guard let gateway else { return }
        let first = dice.below(gateway.shards)
        for shard in 0..<gateway.shards { turn((first + shard) % gateway.shards) }
    }

    /// P6, at any moment.
    private func checkCounters() {
        guard let snapshot = gateway?.snapshot else { return }
        let delivered = Int(snapshot.ended[Int(DeliveryState.delivered.rawValue)])
        if delivered < ledger.delivered.count {
            report(
                Violation(promise: "P6", what: "\(ledger.delivered.count) were delivered, \(delivered) are counted"))
        }
        let ended = Int(snapshot.ended.reduce(0, +))
        guard Int(snapshot.accepted) + restored == snapshot.keptMessages + ended else {
            report(
                Violation(
                    promise: "P6",
                    what:
                        "\(restored) restored and \(snapshot.accepted) accepted are not "
                        + "\(snapshot.keptMessages) kept and \(ended) ended"))
            return
        }
    }

    // MARK: - Stubs

    func takeStubs() {
        for request in wake.takeFresh() {
            let text = String(decoding: request.stub.token, as: UTF8.self)
            guard let device = Int(text.dropFirst("token-".count)), device < scenario.devices else { continue }
            check { () throws(Violation) in try ledger.stubRequested(request.stub, device: device) }
            waitingStubs.append((request, device))
        }
    }

    func answerStub() {
        guard !waitingStubs.isEmpty else { return }
        let (request, device) = waitingStubs.remove(at: dice.below(waitingStubs.count))
        ledger.stubAnswered(request.stub, device: device)
        request.answer(dice.chance(scenario.wakeRefusals) ? .refused("not now") : .accepted)
    }

    // MARK: - Ends

    enum Crash: Int { case lost, kept, torn, killed }

    func crash(_ kind: Crash) {
        guard let gateway else { return }
        trace.note("crash", kind.rawValue)
        gateway.die()
        drainLinks()
        self.gateway = nil
        store = nil
        stopsUntil = nil
        switch kind {
        case .lost: disk = disk.afterCrash(.lost)
        case .kept: disk = disk.afterCrash(.kept)
        case .torn: disk = disk.afterCrash(.torn(dice.next()))
        case .killed: disk = disk.afterKill()
        }
        tables = tables.afterCrash()
        // A machine that loses its power tells nobody.
        if kind != .killed {
            for link in links where dice.chance(500) { link.isSilent = true }
        }
        startsAtStep = trace.step + dice.below(100)
    }

    func beginStop() {
        guard let gateway, stopsUntil == nil else { return }
        trace.note("stop")
        gateway.beginStop()
        stopsUntil = clock.now + configuration.drainDeadline + .seconds(1)
    }

    /// Ends the life when the stop has come to its end.
    func continueStop() {
        guard let gateway, stopsUntil != nil, gateway.isDrained else { return }
        trace.note("stopped")
        gateway.die()
        drainLinks()
        store?.close()
        self.gateway = nil
        store = nil
        stopsUntil = nil
        disk = disk.afterKill()
        startsAtStep = trace.step + dice.below(50)
    }

    func startIfDue() throws {
        if gateway == nil, trace.step >= startsAtStep { try startGateway() }
    }
}

extension World {
    /// Lets go of everything; the world and its clients hold each other.
    func end() {
        gateway?.die()
        gateway = nil
        store = nil
        clients = []
        backends = []
        for link in links { link.close() }
        links = []
    }
}
