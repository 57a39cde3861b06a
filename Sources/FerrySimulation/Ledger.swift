internal import FerryCore
internal import FerryRouting
internal import FerryWire

/// The naive model: what backends were told, what apps were handed, what was seen on the wires. It knows nothing of how the
/// gateway works, only what it promises.
final class Ledger {
    let scenario: Scenario
    /// As the gateway has it.
    let clock: GatewayClock
    let trace: Trace
    var posts: [Post] = []
    var devices: [DeviceFacts]
    /// Posts whose own alert was asked for, in any life.
    var wokenByOwn: Set<Int> = []
    /// Of these, those that have no answer yet.
    var ownInFlight: Set<Int> = []
    /// Posts that the device acknowledged in this life, within the session that sent them.
    var delivered: Set<Int> = []
    /// The same in any life.
    var everDelivered: Set<Int> = []
    /// Counts the lives of the gateway.
    var life = 0
    /// When each shard last had a turn: step and time.
    var turns: [(step: Int, at: Instant)] = []
    /// How often every shard, and then the store, has had a turn.
    var cycle = 0
    var turnedThisCycle: Set<Int> = []
    /// Attempts of all posts.
    private var attempts = 0
    /// The highest time by the gateway's clock that is on its disk for certain.
    private var journalledTime = Instant.distantPast
    var tokens: [Int: TokenFacts] = [:]
    /// Ends of messages that a backend's endpoint has been told of.
    var toldReceipts: Set<ToldReceipt> = []
    /// What apps were handed, as what.
    var handedTasks: Set<HandedTask> = []
    var apiTokens: [APITokenFacts] = []
    /// Tasks with stored content, by the number of their first post.
    var lists: [Int: ListFacts] = [:]
    var erased: Erasure?
    /// What was told of posts.
    var stories: [Int: StoryAnswer.Message] = [:]
    /// What a start would find of a device if the power went now.
    var recovered: (CID) -> (acknowledged: Seq, dropped: Int)? = { _ in nil }
    /// Looks at the disk are dear.
    var looksLeft = 12

    init(_ scenario: Scenario, _ clock: GatewayClock, _ trace: Trace) {
        self.scenario = scenario
        self.clock = clock
        self.trace = trace
        devices = Array(repeating: DeviceFacts(), count: scenario.devices)
    }

    var step: Int { trace.step }

    func fail(_ promise: String, _ what: String) -> Violation { Violation(promise: promise, what: what) }

    // MARK: - Backends

    /// The post that a payload with this number brings to the device.
    func post(named number: Int?, device: Int) -> Int? {
        guard let number, posts.indices.contains(number) else { return nil }
        guard let first = posts[number].first else { return number }
        return posts.indices.contains(first + device) ? first + device : nil
    }

    /// All posts of the call that this one belongs to.
    func ofOneCall(_ number: Int) -> Range<Int> {
        guard let first = posts[number].first, !posts[number].isListed else { return number..<number + 1 }
        return first..<first + devices.count
    }

    func sent(_ number: Int, connection: Int, place: Int) {
        if posts[number].attempts == 0 {
            posts[number].firstSentStep = step
            posts[number].firstSentAt = clock.now
            posts[number].sentBefore = attempts
            posts[number].connection = connection
            posts[number].place = place
        }
        attempts += 1
        if devices[posts[number].device].openLinks > 0 { devices[posts[number].device].onlineStep = step }
        posts[number].firstSentAt = min(posts[number].firstSentAt, clock.now)
        // Only devices that exist have pushes of their own.
        if posts[number].attempts == 0, posts[number].first != nil {
            posts[number].isOwed = devices[posts[number].device].cid != nil
        }
        posts[number].attempts += 1
        posts[number].open += 1
        noteForgetting()
    }

    /// What the gateway has room for may be used up by later posts.
    private func noteForgetting() {
        guard let capacity = scenario.requestCapacity else { return }
        for number in posts.indices where posts[number].attempts > 1 && !posts[number].mayBeTwice {
            posts[number].mayBeTwice = attempts - posts[number].sentBefore - posts[number].attempts >= capacity
        }
    }

    /// The gateway's clock at a start.
    func checkTime() throws(Violation) {
        guard clock.now < journalledTime else { return }
        let missing = (journalledTime - clock.now).inMilliseconds
        throw fail("time", "the gateway starts \(missing) ms before a time that is on its disk")
    }

    func answerLost(_ number: Int) {
        posts[number].open -= 1
        posts[number].lost += 1
    }

    func refused(_ number: Int) { posts[number].open -= 1 }

    func accepted(_ number: Int, taskID: String?, wasOnline: Bool?) throws(Violation) {
        posts[number].open -= 1
        guard posts[number].isAccepted else {
            posts[number].answeredStep = step
            posts[number].answeredLife = life
            posts[number].answeredAt = clock.now
            if posts[number].attempts == 1 { journalledTime = max(journalledTime, posts[number].firstSentAt) }
            posts[number].taskID = taskID
            posts[number].wasOnline = wasOnline
            return
        }
        guard (posts[number].taskID == taskID && posts[number].wasOnline == wasOnline) || posts[number].mayBeTwice
        else {
            throw fail(
                "P3",
                "post \(number) was answered with \(posts[number].taskID ?? "-"), its repeat with \(taskID ?? "-")")
        }
    }

    // MARK: - Apps

    /// An app was handed a message. `isExcused`: its state was put back to before it.
    func handed(_ push: PushFrame, device: Int, isRepeat: Bool, isExcused: Bool) throws(Violation) {
        guard let number = post(named: Post.number(inPayload: push.payload), device: device) else {
            throw fail("P1", "an app was handed what nobody posted")
        }
        posts[number].isHanded = true
        // A task that its sender never heard of may be there too: the answer was lost, and the repeat became another.
        let owners = [devices[device].cid, devices[device].formerCID].compactMap { $0 }
        handedTasks.insert(HandedTask(post: number, owners: owners, task: push.taskID.description))
        guard isRepeat, !isExcused, !posts[number].mayBeTwice else { return }
        throw fail("P3", "post \(number) was handed to an app of device \(device) twice")
    }

    /// An app was told of what it misses.
    func gapHanded(_ gap: GapFrame, device: Int) {
        devices[device].gaps[gap.seq] = max(devices[device].gaps[gap.seq] ?? 0, Int(gap.count))
    }

    // MARK: - The end

    /// Everything has healed and been delivered: nothing may be missing.
    func checkEnd() throws(Violation) {
        for device in devices.indices {
            try checkMissing(device) { !mayBeLeftOut($0) }
            try checkOrder(device)
        }
    }

    /// It has been told of every message what became of it: only that excuses that one did not come.
    func checkLeftOut() throws(Violation) {
        for device in devices.indices { try checkMissing(device) { !isLeftOut($0) } }
    }

    private func checkMissing(_ device: Int, where isWanted: (Post) -> Bool) throws(Violation) {
        let missing = posts.filter {
            $0.device == device && $0.isAccepted && $0.isOwed && !$0.isHanded && !$0.isLiveOnly && $0.isOwedToApp
                && $0.stoppingStep == nil && isWanted($0)
        }
        if !scenario.hasCap, let lost = missing.first(where: \.isLong) {
            let kind =
                lost.isTagged ? ", to an audience," : lost.isListed ? ", of a list," : lost.isForAll ? ", to all," : ""
            throw fail("P1", "post \(lost.number)\(kind) for device \(device) was accepted and never handed to its app")
        }
        let told = devices[device].gaps.values.reduce(0, +)
        guard missing.count <= told else {
            let numbers = missing.map(\.number)
            throw fail("P8", "device \(device) misses \(numbers) and was told of \(told) missing messages")
        }
    }

    private func checkOrder(_ device: Int) throws(Violation) {
        let inOrder = devices[device].seqs.sorted { $0.value < $1.value }.map { posts[$0.key] }
            .filter { !$0.mayBeTwice && $0.scheduledAt == nil }
        var latest: Post?
        var lastPlace: [Int: Post] = [:]
        for post in inOrder {
            // Each gets it at its time.
            if post.isByAndBy { continue }
            if let latest, let answered = post.answeredStep, latest.firstSentStep > answered {
                throw fail(
                    "P2", "post \(post.number), answered before \(latest.number) was posted, comes after it")
            }
            if latest.map({ $0.firstSentStep < post.firstSentStep }) ?? true { latest = post }
            // A push to all or for a task is in order with what is posted after its answer.
            guard post.attempts == 1, post.isAccepted, post.first == nil else { continue }
            if let last = lastPlace[post.connection], last.place > post.place {
                throw fail(
                    "P2", "post \(post.number), before \(last.number) on one connection, comes after it")
            }
            lastPlace[post.connection] = post
        }
    }
}
