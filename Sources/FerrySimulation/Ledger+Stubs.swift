internal import FerryAPNS
internal import FerryCore
internal import FerryRouting

/// Wake-ups (P5).
extension Ledger {
    func stubRequested(_ stub: StubRequest, device: Int, token: Int) throws(Violation) {
        let facts = devices[device]
        trace.note("stub", device, stub.body.count)
        if Post.contains("payload-", in: stub.body) { throw fail("P5", "a stub carries a payload") }
        let own = post(named: Post.number(inAlert: stub.body), device: device)
        if let own {
            guard posts.indices.contains(own), posts[own].device == device, posts[own].hasOwnAlert else {
                throw fail("P5", "a stub for post \(own) went to device \(device)")
            }
            posts[own].ownStubs += 1
            wokenByOwn.insert(own)
            ownInFlight.insert(own)
            if let stopped = posts[own].stoppedStep, stopped < step, !posts[own].mayBeTwice {
                throw fail("P5", "the alert of post \(own) was asked for after the answer that it is stopped")
            }
            if posts[own].ownStubs > 1, !posts[own].mayBeTwice {
                throw fail("P5", "the alert of post \(own) was asked for twice")
            }
        }
        devices[device].allStubSteps.append(step)
        try checkHolder(device, token)
        // What was live only ends with its session; its own alert goes out while the next one begins.
        if let own, posts[own].isLiveOnly || posts[own].handsOver { return }
        if facts.current != nil || clock.now < facts.graceUntil {
            throw fail("P5", "a stub was asked for, and device \(device) was online")
        }
        guard own == nil else { return }
        if facts.stubInFlight { throw fail("P5", "device \(device) has two default stubs in flight") }
        if let answered = facts.stubAnsweredAt, clock.now < answered + scenario.delivery.stubCooldown {
            throw fail("P5", "a default stub of device \(device) did not wait for the cool-down")
        }
        try checkNews(since: facts, device)
        try checkBadge(stub, device)
        devices[device].stubInFlight = true
        devices[device].stubStep = step
        devices[device].stubAnsweredCycle = nil
        devices[device].wakings.append(step)
    }

    /// A second default stub stands for something that the first did not.
    private func checkNews(since facts: DeviceFacts, _ device: Int) throws(Violation) {
        guard let before = facts.stubStep, facts.tokenStep < before, scenario.requestCapacity == nil else { return }
        let hasNews = posts.contains { post in
            guard post.device == device, post.attempts > 0, !post.hasOwnAlert, !post.isForAll, post.strategy == 1 else {
                return false
            }
            guard let answered = post.answeredStep else { return !post.isRefused }
            return answered >= before || post.isTagged
        }
        guard !hasNews else { return }
        // Each push to all wakes once.
        devices[device].stubsForAll += 1
        let forAll = posts.count { $0.device == device && $0.attempts > 0 && !$0.isRefused && $0.wakesAll }
        if devices[device].stubsForAll > forAll {
            throw fail("P5", "device \(device) was woken again for the same messages")
        }
    }

    private func checkBadge(_ stub: StubRequest, _ device: Int) throws(Violation) {
        let badge = Post.number(in: stub.body, after: "\"badge\":") ?? 0
        let settled = devices[device].settled
        let possible = posts.count { post in
            guard post.device == device, post.attempts > 0, !post.isRefused, !(post.isForAll && post.isLiveOnly) else {
                return false
            }
            return devices[device].seqs[post.number].map { $0 > settled } ?? true
        }
        guard badge >= 1, badge <= possible || scenario.requestCapacity != nil else {
            throw fail("P5", "the badge of device \(device) is \(badge), and \(possible) messages can be kept")
        }
    }

    func stubAnswered(_ stub: StubRequest, device: Int, isAccepted: Bool) {
        if let own = post(named: Post.number(inAlert: stub.body), device: device) {
            if isAccepted, posts[own].handsOver { posts[own].isWithChannel = true }
            ownInFlight.remove(own)
            return
        }
        devices[device].stubInFlight = false
        devices[device].stubAnsweredAt = clock.now
        devices[device].stubAnsweredCycle = cycle
    }

    /// After a quiet while: who is away and has messages was woken for them.
    func checkWoken() throws(Violation) {
        guard !scenario.hasCap else { return }
        let patience = scenario.delivery.stubCooldown + .seconds(20)
        for post in posts
        where post.isAccepted && post.isOwed && !mayBeLeftOut(post) && !post.isSent && !post.isHanded && post.isLong {
            if post.stoppingStep != nil { continue }
            let facts = devices[post.device]
            if post.isForAll, !isToBeWokenForAll(post) { continue }
            guard isToBeWoken(post), facts.hasToken, let since = facts.offlineSince, since + patience < clock.now else {
                continue
            }
            let isWoken =
                post.hasOwnAlert
                ? wokenByOwn.contains(post.number) : facts.wakings.contains { $0 >= post.firstSentStep }
            guard isWoken else { throw fail("P5", "device \(post.device) was never woken for post \(post.number)") }
        }
    }

    /// A push to all wakes at its turn, which comes within a while; who was there then, and is not after a crash, is not woken.
    private func isToBeWokenForAll(_ post: Post) -> Bool {
        let facts = devices[post.device]
        let begun = max(post.answeredAt, post.scheduledAt ?? .distantPast)
        guard !post.isLiveOnly, facts.tokenStep < post.firstSentStep, post.stoppingStep == nil,
            begun + .seconds(45) < clock.now
        else { return false }
        return post.answeredLife == life || facts.onlineStep < post.firstSentStep
    }
}
