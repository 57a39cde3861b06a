internal import FerryCore
internal import FerryRouting
internal import FerryWire

/// When a device was online, or offline, in the gateway's eyes: only what is certain.
extension Ledger {
    func linkOpened(_ device: Int) {
        devices[device].openLinks += 1
        devices[device].offlineSince = nil
        devices[device].backgroundStep = nil
    }

    /// A whole frame of the device's has reached the gateway's socket.
    func fed(_ frame: DeviceFrame, _ link: Link) {
        guard let device = link.device else { return }
        switch frame {
        case .login(let login):
            link.facts.takesCompressed = login.wishes.capabilities.contains(.compressedPayloads)
            link.facts.saidSeq = login.lastSeq
            link.facts.saidEpoch = login.epoch
            if let change = login.extensions.deviceToken { claimed(change, device, link) }
        case .register(let register):
            link.facts.takesCompressed = register.wishes.capabilities.contains(.compressedPayloads)
            if let change = register.extensions.deviceToken { claimed(change, device, link) }
        case .deviceToken(let frame): claimed(frame.change, device, link)
        case .foreground(let foreground):
            link.facts.saidSeq = foreground.lastSeq
            link.facts.isBackgroundFed = false
            devices[device].backgroundStep = nil
            devices[device].offlineSince = nil
        case .background:
            link.facts.isBackgroundFed = true
            leftForCertain(link, device)
            // A peer that does not read may have been cut off already, unseen, and what it says is thrown away.
            if link.facts.hasSession, devices[device].openLinks == 1, !link.wasClogged {
                devices[device].backgroundStep = step
            }
        case .bye:
            link.facts.hasSaidBye = true
            leftForCertain(link, device)
        case .ack(let ack):
            link.facts.acknowledged = max(link.facts.acknowledged, ack.seq)
            guard devices[device].current == ObjectIdentifier(link) else { return }
            let seqs = devices[device].seqs
            let numbers = link.facts.received.filter { number in
                !posts[number].mayBeTwice && seqs[number].map { $0 <= ack.seq } ?? false
            }
            devices[device].acknowledging.numbers.formUnion(numbers)
            devices[device].acknowledging.step = step
        case .ping: trace.note("ping", link.number)
        case .hello, .pong, .unknownSkippable: break
        }
    }

    /// From now on it may be offline at any turn.
    func leftForCertain(_ link: Link, _ device: Int) {
        guard devices[device].current == ObjectIdentifier(link) else { return }
        devices[device].current = nil
        devices[device].graceUntil = .distantPast
        devices[device].onlineSinceStep = nil
    }

    /// The gateway loses it now or later.
    func sessionLost(_ link: Link, _ device: Int) {
        guard devices[device].current == ObjectIdentifier(link) else { return }
        devices[device].current = nil
        devices[device].graceUntil = clock.now + scenario.delivery.reattachGrace
    }

    /// What the link brings next may be anything.
    func lostSight(_ link: Link) {
        if let device = link.device { leftForCertain(link, device) }
    }

    /// The peer reads no more: what the gateway tells it, and when, is not seen.
    func clogged(_ link: Link) {
        lostSight(link)
        if let device = link.device { devices[device].newcomers.links.removeAll { $0 === link } }
    }

    /// The gateway's end is closed.
    func gatewayClosed(_ link: Link) {
        guard let device = link.device else { return }
        sessionLost(link, device)
        devices[device].openLinks -= 1
        devices[device].backgroundStep = nil
        guard devices[device].openLinks == 0 else { return }
        devices[device].alone = clock.now
        // It read the good-bye, so the device was offline at once.
        let facts = link.facts
        if facts.hasSaidBye, facts.hasSession, !facts.wasClosedByFrame, facts.isFramed, !link.isEndTold,
            !link.wasClogged
        {
            devices[device].offlineStep = step
        }
    }

    func turned(_ shard: Int) {
        turns[shard] = (step, clock.now)
        turnedThisCycle.insert(shard)
        let oldest = turns.map(\.at).min() ?? .distantPast
        let oldestStep = turns.map(\.step).min() ?? 0
        let lostFor = scenario.delivery.reattachGrace + .milliseconds(TimerWheel.tickMilliseconds)
        for device in devices.indices {
            let facts = devices[device]
            if facts.current == nil {
                devices[device].acknowledging = ([], 0)
            } else if !facts.acknowledging.numbers.isEmpty, oldestStep > facts.acknowledging.step {
                // What was stopped meanwhile may have ended as revoked before its ack came.
                let certain = facts.acknowledging.numbers.filter { posts[$0].stoppingStep == nil }
                delivered.formUnion(certain)
                everDelivered.formUnion(certain)
                devices[device].acknowledging = ([], 0)
            }
            let isAlone = facts.openLinks == 0 && oldest >= facts.alone + lostFor
            let isHidden = facts.backgroundStep.map { oldestStep > $0 } ?? false
            guard isAlone || isHidden else { continue }
            devices[device].offlineStep = step
            if facts.offlineSince == nil {
                devices[device].offlineSince = clock.now
                devices[device].offlineSinceStep = step
            }
        }
    }

    func gatewayStarted(shards: Int) {
        life += 1
        delivered = []
        for device in devices.indices { devices[device].acknowledging = ([], 0) }
        turns = Array(repeating: (step, Instant.distantPast), count: shards)
        for device in devices.indices {
            devices[device].current = nil
            // An acknowledgement that was not synced is forgotten.
            devices[device].settled = .zero
            devices[device].onlineSinceStep = nil
            devices[device].graceUntil = .distantPast
            devices[device].openLinks = 0
            devices[device].alone = clock.now
            devices[device].backgroundStep = nil
            devices[device].offlineSince = nil
            if devices[device].stubInFlight { _ = devices[device].wakings.popLast() }
            devices[device].stubInFlight = false
            devices[device].stubsForAll = 0
            devices[device].stubAnsweredAt = nil
            // What was answered long ago is on disk; where an own alert is open before it, it is not written down.
            let isSettled = devices[device].stubAnsweredCycle.map { cycle > $0 + 3 } ?? false
            let hasOwn = posts.contains { $0.device == device && $0.hasOwnAlert && $0.attempts > 0 }
            if !isSettled || hasOwn || scenario.diskFaults > 0 { devices[device].stubStep = nil }
        }
        for number in posts.indices { posts[number].ownStubs = 0 }
        // What begins with the channel may have ended for want of its answer.
        wokenByOwn.subtract(ownInFlight.filter { !posts[$0].handsOver })
        ownInFlight = []
        tokensAfterRestart()
        turnedThisCycle = []
    }

    /// Every worker of the store has had a turn.
    func storeTurned() {
        guard turnedThisCycle.count == turns.count else { return }
        turnedThisCycle = []
        cycle += 1
    }
}
