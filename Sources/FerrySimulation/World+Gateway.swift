internal import FerryAPNS
internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerryStore

/// The gateway's lives: starts, turns, crashes and stops.
extension World {
    func startGateway() throws {
        let clock = gatewayClock
        clock.begin(offBy: dice.within(-scenario.clockError...scenario.clockError))
        var options = StoreOptions(folder: "simulated", clock: { clock.now })
        options.segmentBytes = configuration.segmentBytes
        options.keptSegments = configuration.keptSegments
        options.requestWindow = configuration.requestWindow
        options.namesMessages = configuration.apps.all.contains { $0.receipts != nil }
        if trace.isTold { options.report = { EventLog.write(.error, "store", ["reason": $0.description]) } }
        let isBroken = breakStart()
        do {
            let store = try SteppedStore.inMemory(options, disk: disk, tables: tables)
            if isBroken { healDisk() }
            var configuration = configuration
            configuration.shards = ledger.life == 0 || isHealing ? scenario.shards : dice.within(1...Self.shardsAtMost)
            wake = SlowWake()
            waitingStubs = []
            receipts = options.namesMessages ? SlowReceipts() : nil
            waitingReceipts = []
            ledger.gatewayStarted(shards: configuration.shards)
            let timeline = SteppedTimeline(TimelineOptions(clock: { clock.now }), disk: timelineDisk)
            // The kernel gives a socket twice what it is asked for.
            let room = scenario.sendBuffer.map { Int($0) * 2 }
            let network = MemoryNetwork(watchers: configuration.shards, room: room)
            let gateway = try SteppedGateway(
                configuration, store: store, wake: wake, receipts: receipts, timeline: timeline, seed: dice.next(),
                clock: { clock.now },
                network: network, raise: { clock.raise(to: $0) })
            check { () throws(Violation) in try ledger.checkTime() }
            self.store = store
            self.gateway = gateway
            self.network = network
            stopsUntil = nil
            segmentWait = SegmentWait()
            let snapshot = gateway.snapshot
            restored = snapshot.keptMessages + Int(snapshot.ended.reduce(0, +)) - Int(snapshot.accepted)
            trace.note("start", configuration.shards, restored)
            takeStubs()
        } catch let failure as StoreFailure {
            // Full disks and the like pass; what is corrupted stays.
            guard failure.kind == .full || failure.kind == .disk else { throw failure }
            trace.note("no start", isBroken ? 1 : 0)
            startsAtStep = trace.step + 50
            guard isBroken else { return processEnded() }
            // It was the power.
            cutPower(.torn(dice.next()))
            healDisk()
        }
    }

    func turn(_ shard: Int) {
        guard let gateway, shard < gateway.shards else { return }
        gateway.turn(shard)
        segmentWait.turned.insert(shard)
        takeStubs()
        takeReceipts()
        drainLinks()
        ledger.turned(shard)
        checkCounters()
        checkOutputs()
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
            guard let token = Int(text.dropFirst("token-".count)), let device = device(of: request.stub) else {
                // A device may be registered, and in an audience, before its client knows.
                if ledger.posts.contains(where: { $0.isTagged || $0.isForAll }),
                    ledger.devices.contains(where: { $0.cid == nil })
                {
                    request.answer(.accepted)
                } else {
                    report(Violation(promise: "P5", what: "a stub is for nobody"))
                }
                continue
            }
            check { () throws(Violation) in try ledger.stubRequested(request.stub, device: device, token: token) }
            waitingStubs.append((request, device))
        }
    }

    private func device(of stub: StubRequest) -> Int? {
        if let own = Post.number(inAlert: stub.body) {
            guard ledger.posts.indices.contains(own) else { return nil }
            if ledger.posts[own].isForAll { return device(named: stub.body) }
            return ledger.posts[own].isListed ? device(of: stub, list: own) : ledger.posts[own].device
        }
        let name = stub.headers.first { $0.name == "apns-collapse-id" }?.value.dropFirst("ferry-".count)
        return ledger.devices.firstIndex { $0.cid?.description == name.map(String.init) }
    }

    /// An alert of the sender's own names the message, and the message its device.
    private func device(named body: [UInt8]) -> Int? {
        ledger.devices.firstIndex { $0.cid.map { Post.contains(":\($0)", in: body) } ?? false }
    }

    /// The alert of a task is the same for all of its devices, but the request's id is the message's.
    private func device(of stub: StubRequest, list first: Int) -> Int? {
        let id = stub.headers.first { $0.name == "apns-id" }?.value.filter { $0 != "-" }
        guard let task = ledger.list(of: first)?.taskID, let value = Identifier128(hex: String(task.suffix(32))) else {
            return nil
        }
        return ledger.devices.firstIndex { device in
            device.cid.map { RequestKey(task: TaskID(value, monthDay: 101, kind: .list), cid: $0).messageID.value.hex }
                == id
        }
    }

    func answerStub() {
        guard !waitingStubs.isEmpty else { return }
        let (request, device) = waitingStubs.remove(at: dice.below(waitingStubs.count))
        let isAccepted = !dice.chance(scenario.wakeRefusals)
        ledger.stubAnswered(request.stub, device: device, isAccepted: isAccepted)
        request.answer(isAccepted ? .accepted : .refused("not now"))
    }

    // MARK: - Ends

    enum Crash: Int { case lost, kept, torn, killed }

    func crash(_ kind: Crash) {
        guard let gateway else { return }
        trace.note("crash", kind.rawValue)
        gateway.die()
        unclogAll()
        drainLinks()
        self.gateway = nil
        store = nil
        stopsUntil = nil
        switch kind {
        case .lost: cutPower(.lost)
        case .kept: cutPower(.kept)
        case .torn: cutPower(.torn(dice.next()))
        case .killed: processEnded()
        }
        // A machine that loses its power tells nobody.
        if kind != .killed {
            for link in links where dice.chance(500) { link.isSilent = true }
        }
        startsAtStep = trace.step + dice.below(100)
    }

    /// However a process ends, a write of the tables that failed may be on disk.
    private func processEnded() {
        disk = disk.afterKill()
        tables = tables.afterCrash(keeping: dice.below(tables.inDoubtCount + 1))
    }

    func cutPower(_ fate: MemoryDisk.Fate) {
        disk = disk.afterCrash(fate)
        // A write that failed may be on the disk.
        tables = tables.afterCrash(keeping: dice.below(tables.inDoubtCount + 1))
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
        unclogAll()
        drainLinks()
        store?.close()
        self.gateway = nil
        store = nil
        stopsUntil = nil
        processEnded()
        startsAtStep = trace.step + dice.below(50)
    }

    func startIfDue() throws {
        if gateway == nil, trace.step >= startsAtStep { try startGateway() }
    }
}

extension World {
    /// What a start would find of a device if the power went now, with all that was not synced.
    func recovered(_ cid: CID) -> (acknowledged: Seq, dropped: Int)? {
        let options = StoreOptions(folder: "simulated", clock: { .distantPast })
        let found = try? SteppedStore.inMemory(options, disk: disk.afterCrash(.lost), tables: tables.afterCrash())
        guard let recovery = found?.takeRecovery() else { return nil }
        guard let device = recovery.devices.first(where: { $0.record.cid == cid }) else { return nil }
        return (device.record.acknowledged, Int(device.record.gap?.count ?? 0))
    }

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
