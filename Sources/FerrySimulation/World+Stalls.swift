internal import FerryClientCore
internal import FerryCore
internal import FerryGateway
internal import FerrySession
internal import FerryWire

/// What one part's trouble must not do to the others: short plays in which all else works as it should.
extension World {
    // MARK: - A store that stands still

    /// The journal has no turn for a while: nothing is accepted, and whoever is there stays there (P1).
    func stallStore() throws {
        // Where little fits into a socket, a ping behind much else is not owed an answer.
        guard gateway != nil, stopsUntil == nil, scenario.sendBuffer == nil else { return }
        let healthy = clients.filter { client in
            guard let link = client.link, client.isAttached, !client.isFrozen else { return false }
            return link.facts.hasSession && link.isWell && !link.wasAbused && !link.facts.wasClosedByFrame
        }
        let length = dice.within(500...5_000)
        trace.note("stall", length, healthy.count)
        let before = healthy.map { $0.link?.facts.pongs ?? 0 }
        let watched = healthy.compactMap(\.link)
        for client in healthy { client.say(DeviceFrame.ping.encoded()) }
        for _ in 0..<3 { postSomething() }
        for _ in 0..<(length / 50) {
            guard violation == nil else { return }
            try round(advance: 50, isStoreStill: true)
        }
        for (link, pongs) in zip(watched, before) where !link.isSilent {
            check { () throws(Violation) in try ledger.checkStall(link, pongs: pongs) }
        }
    }

    // MARK: - A peer that does not read

    func clogSomething() {
        // Mostly one device, so that others have nothing to suffer from but that.
        let usable = links.filter { $0.isWell && ($0.device == 0 || dice.chance(100)) }
        guard let link = dice.pick(usable.filter(\.facts.hasSession)) ?? dice.pick(usable) else { return }
        trace.note("clog", link.number)
        link.isClogged = true
        ledger.clogged(link)
        unclogsAtStep[link.number] = trace.step + dice.within(50...1_000)
        guard let device = link.device else { return }
        for _ in 0..<dice.within(5...20) { post(to: device) }
    }

    func unclog() {
        for link in links where link.isClogged && unclogsAtStep[link.number].map({ $0 <= trace.step }) ?? true {
            trace.note("unclog", link.number)
            link.isClogged = false
        }
        unclogsAtStep = unclogsAtStep.filter { $0.value > trace.step }
    }

    func unclogAll() {
        for link in links { link.isClogged = false }
        unclogsAtStep = [:]
    }

    /// P7, after a turn: no peer costs more memory than it may, and one that reads nothing for long is cut off.
    func checkOutputs() {
        guard scenario.clogs > 0, let gateway else { return }
        let limit = configuration.session.highWaterMark + scenario.payloadBytes + Self.frameOverhead
        let outputs = gateway.outputs
        for output in outputs where output.bytes > limit {
            report(Violation(promise: "P7", what: "\(output.bytes) bytes wait for one device, more than \(limit)"))
        }
        for link in links where link.isClogged {
            let isNewest = !links.contains { $0.gatewayDescriptor == link.gatewayDescriptor && $0.number > link.number }
            let output = outputs.first { $0.descriptor == link.gatewayDescriptor }
            guard isNewest, let output, output.bytes > configuration.session.highWaterMark else {
                if link.backedUpSince != nil { trace.note("no longer full", link.number, output?.bytes ?? -1) }
                link.backedUpSince = nil
                link.fullAtStep = nil
                continue
            }
            guard let full = link.fullAtStep else {
                trace.note("full", link.number, output.bytes)
                link.fullAtStep = trace.step
                continue
            }
            // At the turn after the first the gateway has tried to send, and knows.
            guard let since = link.backedUpSince else {
                let oldest = ledger.turns.map(\.step).min() ?? 0
                if oldest > full { link.backedUpSince = gatewayClock.now + .milliseconds(1) }
                continue
            }
            // Each shard has had a turn since.
            let latest = ledger.turns.map(\.at).min() ?? .distantPast
            if latest > since + configuration.session.slowDeadline + .seconds(5) {
                report(Violation(promise: "P7", what: "link \(link.number) does not read, and is not cut off"))
            }
        }
    }

    /// Welcome, gap, pings and whatever else is small.
    private static let frameOverhead = 2_000

    /// While one device does not read, another gets its message (P7).
    func checkBystander() throws {
        // What the disk fails to read comes later by itself.
        guard scenario.diskFaults == 0, scenario.tableFaults == 0, idleWorkers.untilStep <= trace.step else { return }
        guard stopsUntil == nil, gateway != nil, links.contains(where: { $0.backedUpSince != nil }),
            let backend = backends.first(where: { $0.link.map(\.isWell) ?? true }),
            let device = ledger.devices.indices.first(where: isAtEase), let link = currentLink(of: device)
        else { return }
        let number = ledger.posts.count
        trace.note("bystander", device, number)
        ledger.posts.append(
            Post(number: number, device: device, ttl: Post.longTTL, hasOwnAlert: false, payloadBytes: 40))
        backend.post(number)
        for _ in 0..<20 {
            guard violation == nil else { return }
            try round(advance: 10)
        }
        let post = ledger.posts[number]
        guard post.isAccepted, !post.isSent, ledger.devices[device].current == ObjectIdentifier(link), link.isWell
        else {
            return
        }
        report(
            Violation(
                promise: "P7",
                what: "device \(device) does not get post \(number) while another device does not read"))
    }

    private func currentLink(of device: Int) -> Link? {
        links.first { ledger.devices[device].current == ObjectIdentifier($0) }
    }

    /// Online, its link works, and everything for it has been sent and acknowledged.
    private func isAtEase(_ device: Int) -> Bool {
        guard let link = currentLink(of: device), link.isWell,
            let client = clients.first(where: { $0.link === link }), !client.isFrozen
        else { return false }
        let facts = ledger.devices[device]
        let last = link.facts.received.compactMap { facts.seqs[$0] }.max() ?? .zero
        return last <= max(link.facts.acknowledged, link.facts.saidSeq)
            && !ledger.posts.contains {
                $0.device == device && $0.attempts > 0 && $0.isLong && !$0.isSent && !$0.isRefused
            }
    }
}

extension Link {
    /// Nothing is wrong with it, as far as the network goes.
    var isWell: Bool {
        !isSilent && !isClogged && !wasClogged && !isPeerGone && !isEndTold && !isGatewayGone
    }
}

extension Ledger {
    /// A link that was well before the store stood still, and on which its device asked for a sign of life meanwhile.
    func checkStall(_ link: Link, pongs: Int) throws(Violation) {
        switch link.facts.closeCode {
        case nil:
            guard link.facts.pongs <= pongs, !link.isPeerGone else { return }
            throw fail("P1", "a ping on link \(link.number) was not answered while the store stood still")
        // Its own doing, or another's of the same device.
        case .takenOver?, .noAcknowledgement?, .overloaded?: return
        case let code? where code.duty == .stop: return
        case let code?: throw fail("P1", "link \(link.number) was closed with \(code) while the store stood still")
        }
    }
}
