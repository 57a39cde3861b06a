internal import FerryClientCore
internal import FerryCore
internal import FerryGateway
internal import FerryIO
internal import FerryStore
internal import FerryWire

/// What happens in one step: mostly one small thing.
extension World {
    func step() throws {
        trace.milliseconds = clock.now.milliseconds - VirtualClock.start
        try startIfDue()
        if let step = diskHealsAtStep, trace.step >= step { healDisk() }
        if dice.chance(scenario.storeTurns) { storeTurn() }
        if dice.chance(scenario.shardTurns) { turn(dice.below(gateway?.shards ?? 1)) }
        if dice.chance(scenario.networkTurns) { moveSomething() }
        if dice.chance(scenario.timeTurns) { passTime() }
        if dice.chance(scenario.posts) { postSomething() }
        if dice.chance(scenario.broadcasts) { postToAll() }
        if scenario.stops > 0, dice.chance(scenario.stops) { stopSomething() }
        if dice.chance(scenario.lists) { postToList() }
        if dice.chance(scenario.tags) { postToAll(isTagged: true) }
        if dice.chance(30) { dice.pick(backends)?.postAgain() }
        if dice.chance(scenario.wakeTurns) { answerStub() }
        if receipts != nil, receiptDice.chance(300) { answerReceipts() }
        if dice.chance(scenario.statusCalls) { askForStatus() }
        if dice.chance(scenario.revocations) { endAToken() }
        if dice.chance(scenario.reuses) { reuseARequestID() }
        if dice.chance(scenario.life) { liveALittle() }
        if dice.chance(scenario.tokenMoves) { moveAToken() }
        if scenario.hoards { hoard() }
        if dice.chance(scenario.breaks), let link = dice.pick(links) { breakOff(link) }
        if dice.chance(scenario.silences), let link = dice.pick(links) {
            trace.note("silent", link.number)
            link.isSilent = true
            // What is under way is lost, and the gateway will find out by itself.
        }
        if dice.chance(scenario.hostile) { beHostile() }
        if dice.chance(scenario.diskFaults) { hurtDisk() }
        if dice.chance(scenario.tableFaults) { hurtTables() }
        if dice.chance(scenario.idleWorkers) { holdUpAWorker() }
        if dice.chance(scenario.stalls) { try stallStore() }
        if scenario.clogs > 0 {
            unclog()
            if dice.chance(scenario.clogs) { clogSomething() }
            if dice.chance(100) { try checkBystander() }
        }
        if dice.chance(scenario.crashes) {
            if dice.chance(250) { beginStop() } else { crash(Crash(rawValue: dice.below(4)) ?? .lost) }
        }
        continueStop()
    }

    func breakOff(_ link: Link) {
        trace.note("break", link.number)
        link.breakOff()
        if link.isEndTold, let device = link.device { ledger.sessionLost(link, device) }
    }

    private func moveSomething() {
        for _ in 0..<3 {
            switch dice.below(3) {
            case 0: if let link = dice.pick(links) { feed(link) }
            case 1: dice.pick(clients)?.turn()
            default: dice.pick(backends)?.turn()
            }
        }
    }

    private func passTime() {
        let usual = dice.below(scenario.timeStep * 2)
        let amount = dice.chance(20) ? dice.within(500...15_000) : usual
        clock.advance(amount)
    }

    func postSomething() {
        let known = ledger.devices.indices.filter { ledger.devices[$0].cid != nil }
        guard let device = dice.pick(known) else { return }
        for _ in 0..<(dice.chance(100) ? dice.within(2...12) : 1) { post(to: device) }
    }

    func post(to device: Int) {
        guard let backend = dice.pick(backends) else { return }
        let number = ledger.posts.count
        var ttl = Post.longTTL
        if dice.chance(scenario.shortLived) { ttl = dice.within(1...20_000) }
        if dice.chance(scenario.liveOnly) { ttl = 0 }
        // A link has no word for them.
        let strategy = !isOverLinks && dice.chance(scenario.strategies) ? dice.within(2...4) : 1
        let hasOwnAlert = strategy == 1 ? dice.chance(scenario.ownAlerts) : strategy != 3
        ledger.posts.append(
            Post(
                number: number, device: device, ttl: ttl, hasOwnAlert: hasOwnAlert,
                payloadBytes: dice.within(20...max(20, scenario.payloadBytes)), strategy: strategy))
        backend.post(number)
        // A backend may say everything twice.
        if dice.chance(scenario.repeats) { dice.pick(backends)?.post(number) }
    }

    /// One post for each device, known to the gateway or not.
    func postToAll(isTagged: Bool = false) {
        guard !isOverLinks, let backend = dice.pick(backends) else { return }
        let first = ledger.posts.count
        var ttl = Post.longTTL
        if dice.chance(scenario.shortLived) { ttl = dice.within(1...20_000) }
        if dice.chance(scenario.liveOnly) { ttl = 0 }
        let bytes = dice.within(20...max(20, scenario.payloadBytes))
        var scheduledAt: Instant?
        if scenario.schedules > 0, dice.chance(scenario.schedules) {
            scheduledAt = gatewayClock.now + .milliseconds(Int64(dice.within(1...20_000)))
        }
        for device in ledger.devices.indices {
            // Not drawn, so that all else of a seed stays as it is.
            let strategy = !isTagged && first % 7 == 3 ? 3 : 1
            var post = Post(
                number: first + device, device: device, ttl: ttl,
                hasOwnAlert: !isTagged && first % 5 == 2 && ttl > 0 && strategy == 1, payloadBytes: bytes, first: first,
                isTagged: isTagged, strategy: strategy)
            if !isTagged {
                post.scheduledAt = scheduledAt
                post.speed = first % 3 == 1 ? first % 6 + 1 : 0
            }
            ledger.posts.append(post)
        }
        backend.post(first)
        if dice.chance(scenario.repeats) { dice.pick(backends)?.post(first) }
    }

    /// A task with stored content, or devices for one that there is.
    func postToList() {
        guard !isOverLinks, let backend = dice.pick(backends) else { return }
        guard let first = dice.pick(ledger.lists.keys.sorted()), !dice.chance(150) else { return createList(backend) }
        // The gateway's clock may have been put back since.
        let now = ledger.clock.now
        if let sentAt = ledger.lists[first]?.sentAt, now < sentAt { ledger.lists[first]?.sentAt = now }
        guard ledger.lists[first]?.taskID != nil else { return backend.call(.createList(first)) }
        let known = ledger.devices.indices.filter { ledger.devices[$0].cid != nil }
        guard let from = dice.pick(known) else { return }
        var end = from + 1
        while known.contains(end), dice.chance(500) { end += 1 }
        if ledger.posts[first].attempts == 0 || dice.chance(700) {
            backend.post(toList: first + from..<first + end)
        } else {
            backend.call(.createList(first))
        }
        // Both at once, by different ways.
        if dice.chance(scenario.repeats) { dice.pick(backends)?.post(toList: first + from..<first + end) }
    }

    private func createList(_ backend: ScriptedBackend) {
        let first = ledger.posts.count
        var ttl = Post.longTTL
        if dice.chance(scenario.shortLived) { ttl = dice.within(1...20_000) }
        if dice.chance(scenario.liveOnly) { ttl = 0 }
        let bytes = dice.within(20...max(20, scenario.payloadBytes))
        let hasOwnAlert = dice.chance(scenario.ownAlerts)
        for device in ledger.devices.indices {
            ledger.posts.append(
                Post(
                    number: first + device, device: device, ttl: ttl, hasOwnAlert: hasOwnAlert, payloadBytes: bytes,
                    first: first, isListed: true))
        }
        ledger.lists[first] = ListFacts(sentAt: ledger.clock.now)
        backend.call(.createList(first))
    }

    // MARK: - Other calls

    private func askForStatus() {
        let known = ledger.devices.indices.filter { ledger.devices[$0].cid != nil }
        guard !known.isEmpty else { return }
        dice.pick(backends)?.call(.status(known))
    }

    private func stopSomething() {
        if let number = dice.pick(ledger.stoppable) { dice.pick(backends)?.call(.stop(number)) }
    }

    private func endAToken() {
        let token = dice.below(ledger.apiTokens.count)
        dice.pick(backends)?.call(.revoke(token))
        if !ledger.apiTokens.indices.contains(token + 1) { makeAPIToken() }
    }

    private func reuseARequestID() {
        guard let post = dice.pick(ledger.posts.filter(\.isAccepted)) else { return }
        dice.pick(backends)?.call(.reuse(post.number))
    }

    // MARK: - Devices

    /// An app was installed anew beside, or in place of, another one: the same token, another device.
    private func moveAToken() {
        guard let client = dice.pick(clients.filter(\.isAttached)),
            let other = dice.pick(tokenNumbers.indices.filter { $0 != client.device && tokenNumbers[$0] != nil })
        else { return }
        trace.note("token", client.device, other, tokenNumbers[other] ?? -1)
        tokenNumbers[client.device] = tokenNumbers[other]
        if dice.chance(500) { tokenNumbers[other] = nil }
        if let token = token(of: client.device) { client.handle(.deviceTokenChanged(.set(token))) }
    }

    /// The first device goes away, much is posted to it, and it comes back.
    private func hoard() {
        let here = clients.filter { $0.device == 0 }
        switch trace.step {
        case 300: for client in here { client.handle(.enteredBackground) }
        case 301..<900:
            if ledger.devices[0].cid != nil, dice.chance(150) { for _ in 0..<dice.within(1...8) { post(to: 0) } }
        case 900...: if trace.step % 200 == 100 { for client in here { client.handle(.enteredForeground) } }
        default: break
        }
    }

    /// What a person, or the system, does with an app.
    private func liveALittle() {
        guard let client = dice.pick(clients) else { return }
        if scenario.hoards, client.device == 0, (300..<900).contains(trace.step) { return }
        var kind = dice.below(14)
        if scenario.isNight, dice.chance(500) { kind = dice.below(2) }
        if scenario.isCrowd, dice.chance(600) { kind = dice.pick([9, 11]) ?? 9 }
        trace.note("life", client.device, kind)
        switch kind {
        case 0, 1: client.handle(.enteredBackground)
        case 2, 3, 4: client.handle(.enteredForeground)
        case 5: client.handle(.stopRequested)
        case 6: client.isFrozen.toggle()
        case 7: startAgain(client, from: client.saved)
        case 8:
            let old = client.history.filter { $0.identity != nil }
            if let record = dice.pick(old) { startAgain(client, from: record) }
        case 9: doubleUp(client)
        case 10:
            guard tokenNumbers[client.device] == nil else { return }
            tokenNumbers[client.device] = client.device
            if let token = token(of: client.device) { client.handle(.deviceTokenChanged(.set(token))) }
        case 11, 12: client.switchNetwork()
        default: dice.pick(backends)?.lose()
        }
    }

    private func startAgain(_ client: ScriptedClient, from record: ClientRecord) {
        client.isFrozen = false
        client.restart(from: record, acknowledges: !dice.chance(scenario.neverAcknowledging))
    }

    /// A second program with a copy of the state file: two clients for one device.
    private func doubleUp(_ client: ScriptedClient) {
        guard client.saved.identity != nil, clients.count < scenario.devices * 2 else { return }
        let other = ScriptedClient(device: client.device, record: client.saved, acknowledges: true, world: self)
        clients.append(other)
        other.handle(.started)
    }

    private func beHostile() {
        if dice.chance(400), let client = dice.pick(clients.filter(\.isAttached)) {
            let future = Seq(client.machine.record.lastSeq.rawValue + UInt64(dice.within(500...5_000)))
            client.link?.wasAbused = true
            client.say(dice.chance(500) ? dice.bytes(dice.within(1...40)) : AckFrame(seq: future).encoded())
            return
        }
        guard let gateway, stopsUntil == nil, let (theirs, ours) = try? Socket.pair() else { return }
        let shard = dice.below(gateway.shards)
        if dice.chance(500) {
            gateway.connectDevice(theirs, to: shard)
        } else if isOverLinks {
            gateway.connectLink(theirs, to: shard)
        } else {
            gateway.connectBackend(theirs, to: shard)
        }
        let bytes = dice.bytes(dice.within(1...400))
        _ = bytes.withUnsafeBytes { Socket.send(ours, $0) }
        Socket.close(ours)
    }
}
