internal import FerryCore
internal import FerryIO
internal import FerryWire

/// What left the gateway for a device.
extension Ledger {
    func left(_ frame: GatewayFrame, _ link: Link) throws(Violation) {
        guard let device = link.device else { return }
        switch frame {
        case .welcome(let welcome):
            guard !welcome.compressesPayloads || link.facts.takesCompressed || !link.facts.isFramed else {
                throw fail("wire", "device \(device) did not ask for compressed payloads, and is promised some")
            }
            link.facts.isCompressionAgreed = welcome.compressesPayloads
            beginSession(link, device, isResumed: welcome.isResumed)
        case .resumed(let resumed): beginSession(link, device, isResumed: resumed.isResumed)
        case .push(let push):
            let whole: PushFrame
            do throws(WireError) {
                whole = try push.unpacked(isAgreed: link.facts.isCompressionAgreed, inflate: Inflation.inflate)
            } catch {
                throw fail("wire", "device \(device) was sent what it cannot read: \(error)")
            }
            try leftPush(whole, link, device)
        case .gap(let gap): try leftGap(gap, link, device)
        case .tokenSaved(let saved): tokenSaved(isSet: saved.environment != nil, device, link)
        case .close(let close):
            link.facts.wasClosedByFrame = true
            link.facts.closeCode = close.code
            trace.note("closed", link.number, Int(close.code.rawValue))
            switch close.code {
            case .unknownDevice where devices[device].wasErased: break
            case .unknownDevice, .generationRetired, .wrongDeviceProof:
                throw fail(
                    "P1", "the gateway does not know device \(device), which it registered: \(close.code)")
            default: break
            }
            if close.code == .takenOver, let newer = successor(of: link, device) {
                becomeCurrent(newer, device)
            } else {
                sessionLost(link, device)
            }
        case .pong:
            link.facts.pongs += 1
            trace.note("pong", link.number, link.facts.pongs)
        case .registered: registered(device)
        case .challenge, .ping, .unknownSkippable: break
        }
    }

    private func beginSession(_ link: Link, _ device: Int, isResumed: Bool) {
        trace.note("session", link.number, device)
        devices[device].onlineStep = step
        devices[device].acknowledging = ([], 0)
        if isResumed {
            devices[device].settled = max(devices[device].settled, link.facts.saidSeq)
            link.facts.lastSent = link.facts.saidSeq
        } else {
            link.facts.lastSent = .zero
        }
        link.facts.received = []
        link.facts.gapsTold = 0
        link.facts.hasSession = true
        // Of what was seen late nothing is certain but its order.
        guard !link.wasClogged else { return }
        let isStillOnline = devices[device].current != nil || clock.now < devices[device].graceUntil
        if !isStillOnline || devices[device].onlineSinceStep == nil { devices[device].onlineSinceStep = step }
        if devices[device].newcomers.step != step { devices[device].newcomers = ([], step) }
        devices[device].newcomers.links.append(link)
        becomeCurrent(link, device)
    }

    /// In one turn a device may have had several sessions one after the other, and their links are looked at in any order: the
    /// one that was not taken over is the last.
    private func successor(of link: Link, _ device: Int) -> Link? {
        guard devices[device].current == ObjectIdentifier(link), devices[device].newcomers.step == step else {
            return nil
        }
        return devices[device].newcomers.links.last { $0 !== link && !$0.facts.wasClosedByFrame }
    }

    /// After a turn: the newer session has the device, and the older has been told so.
    func checkTakeovers(_ links: [Link]) throws(Violation) {
        for device in devices.indices where devices[device].newcomers.step == step {
            let open = links.filter { link in
                link.device == device && link.facts.hasSession && !link.facts.wasClosedByFrame && !link.isGatewayGone
                    && !link.wasClogged
            }
            guard open.count > 1 else { continue }
            throw fail("P3", "device \(device) has sessions on the links \(open.map(\.number)) at once")
        }
    }

    private func becomeCurrent(_ link: Link, _ device: Int) {
        devices[device].current = ObjectIdentifier(link)
        devices[device].offlineSince = nil
        devices[device].backgroundStep = nil
        // What was fed behind the login may already have ended it.
        if link.facts.hasSaidBye || link.facts.isBackgroundFed { leftForCertain(link, device) }
        if link.isEndTold { sessionLost(link, device) }
    }

    private func leftPush(_ push: PushFrame, _ link: Link, _ device: Int) throws(Violation) {
        guard let number = post(named: Post.number(inPayload: push.payload), device: device) else {
            throw fail("P1", "device \(device) was sent what nobody posted")
        }
        let post = posts[number]
        let isOffLine = push.flags.contains(.offLine)
        trace.note("push", link.number, number, isOffLine ? 1 : 0, "device \(device) seq \(push.seq)")
        guard post.device == device else { throw fail("P1", "post \(number) went to device \(device)") }
        guard post.strategy != 2 else { throw fail("P5", "post \(number) was for the wake-up channel alone") }
        guard push.payload.count == post.payloadSize else { throw fail("P1", "post \(number) was changed") }
        guard !post.isRefused else { throw fail("P1", "post \(number) was refused, and delivered") }
        guard post.attempts > 0 else { throw fail("P1", "post \(number) was not posted, and delivered") }
        if let seq = devices[device].seqs[number], seq != push.seq, !post.mayBeTwice {
            throw fail("P3", "post \(number) has the numbers \(seq) and \(push.seq)")
        }
        if let other = devices[device].posts[push.seq], other != number {
            throw fail("P2", "posts \(other) and \(number) share the number \(push.seq)")
        }
        guard push.seq > link.facts.lastSent else {
            throw fail("P2", "post \(number) with number \(push.seq) follows \(link.facts.lastSent)")
        }
        if devices[device].seqs[number] == nil { devices[device].seqs[number] = push.seq }
        devices[device].posts[push.seq] = number
        link.facts.lastSent = push.seq
        link.facts.received.insert(number)
        posts[number].isSent = true
        guard !link.wasClogged else { return }
        try checkStopped(post)
        if let time = post.scheduledAt, clock.now < time {
            throw fail("time", "post \(number) was sent before its time")
        }
        try checkFlag(isOffLine, post, device)
        // Where peers read slowly, what was sent in time leaves late.
        if scenario.sendBuffer == nil, post.isAccepted, !post.isTagged, !post.mayBeTwice, post.ttl > 0,
            post.scheduledAt == nil,
            post.answeredAt + .milliseconds(post.ttl) < clock.now
        {
            throw fail("P6", "post \(number) was sent when its time was over")
        }
    }

    private func checkFlag(_ isOffLine: Bool, _ post: Post, _ device: Int) throws(Violation) {
        let facts = devices[device]
        if isOffLine {
            // It was asked of the wake-up channel before.
            guard post.strategy != 4 else { return }
            guard let since = facts.onlineSinceStep, post.firstSentStep > since, facts.current != nil else { return }
            throw fail("P4", "post \(post.number) is marked offLine, and its device was online all the time")
        }
        if post.ownStubs > 0, !post.mayBeTwice {
            throw fail("P4", "post \(post.number) had a stub and is not marked offLine")
        }
        // It is accepted for the device at some time after the call.
        guard let answered = post.answeredStep, !post.mayBeTwice, !post.isByAndBy, post.scheduledAt == nil else {
            return
        }
        if post.wasOnline == false { throw fail("P4", "post \(post.number) was accepted offline and is not marked so") }
        if post.answeredLife < life {
            throw fail("P4", "post \(post.number) outlived a restart and is not marked offLine")
        }
        // Where peers read slowly, what was sent in time leaves late.
        if scenario.sendBuffer == nil, answered < facts.offlineStep {
            throw fail("P4", "the device was offline after post \(post.number), which is not marked so")
        }
    }

    /// P1: what is told of drops is on the disk before.
    private func checkOnDisk(_ gap: GapFrame, _ link: Link, _ device: Int) throws(Violation) {
        guard looksLeft > 0, !link.wasClogged, let cid = devices[device].cid else { return }
        // Of a push to all it is its end that is on the disk, not a drop.
        let now = clock.now
        let isOfAll = posts.contains {
            $0.device == device && $0.isForAll && $0.attempts > 0 && $0.expiresAt <= now
        }
        guard !isOfAll else { return }
        looksLeft -= 1
        guard let found = recovered(cid) else { return }
        // Part of the count may be of drops that the device has been told before, and that are settled on disk.
        guard found.acknowledged < gap.seq, found.dropped == 0 else { return }
        throw fail("P1", "device \(device) is told of \(gap.count) drops, and none is on disk")
    }

    private func leftGap(_ gap: GapFrame, _ link: Link, _ device: Int) throws(Violation) {
        trace.note("gap", link.number, Int(gap.expired), Int(gap.overflowed), "device \(device) seq \(gap.seq)")
        guard gap.seq > link.facts.lastSent else {
            throw fail("P2", "a gap with number \(gap.seq) follows \(link.facts.lastSent)")
        }
        guard gap.count == gap.expired + gap.overflowed + gap.other, gap.count > 0 else {
            throw fail("P8", "a gap of \(gap.count) does not add up")
        }
        if let number = devices[device].posts[gap.seq], link.facts.received.contains(number) {
            throw fail("P8", "a gap stands at the number of post \(number)")
        }
        link.facts.lastSent = gap.seq
        let mine = posts.filter { $0.device == device && $0.attempts > 0 && !$0.isLiveOnly && !$0.isRefused }
        let now = clock.now
        let candidates = mine.count {
            !link.facts.received.contains($0.number)
                && (scenario.hasCap || $0.expiresAt <= now)
        }
        link.facts.gapsTold += Int(gap.count)
        guard link.facts.gapsTold <= candidates else {
            throw fail("P8", "device \(device) is told of \(link.facts.gapsTold) missing, \(candidates) can be")
        }
        if !scenario.hasCap, gap.overflowed > 0 { throw fail("P8", "messages overflowed without a cap") }
        try checkOnDisk(gap, link, device)
    }
}
