internal import FerryCore
internal import FerryWire

/// The naive model: what backends were told, what apps were handed, what was seen on the wires. It knows nothing of how the
/// gateway works, only what it promises.
final class Ledger {
    let scenario: Scenario
    let clock: VirtualClock
    let trace: Trace
    var posts: [Post] = []
    var devices: [DeviceFacts]
    /// Posts whose own alert was asked for, in any life.
    var wokenByOwn: Set<Int> = []
    /// Posts that the device acknowledged in this life, within the session that sent them.
    var delivered: Set<Int> = []
    /// Counts the lives of the gateway.
    var life = 0
    /// When each shard last had a turn: step and time.
    var turns: [(step: Int, at: Instant)] = []

    init(_ scenario: Scenario, _ clock: VirtualClock, _ trace: Trace) {
        self.scenario = scenario
        self.clock = clock
        self.trace = trace
        devices = Array(repeating: DeviceFacts(), count: scenario.devices)
    }

    var step: Int { trace.step }

    func fail(_ promise: String, _ what: String) -> Violation { Violation(promise: promise, what: what) }

    // MARK: - Backends

    func sent(_ number: Int, connection: Int, place: Int) {
        if posts[number].attempts == 0 {
            posts[number].firstSentStep = step
            posts[number].firstSentAt = clock.now
            posts[number].connection = connection
            posts[number].place = place
        }
        posts[number].attempts += 1
        posts[number].open += 1
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
            posts[number].taskID = taskID
            posts[number].wasOnline = wasOnline
            return
        }
        guard posts[number].taskID == taskID, posts[number].wasOnline == wasOnline else {
            throw fail(
                "P3",
                "post \(number) was answered with \(posts[number].taskID ?? "-"), its repeat with \(taskID ?? "-")")
        }
    }

    // MARK: - Apps

    /// An app was handed a message. `isExcused`: its state was put back to before it.
    func handed(_ push: PushFrame, device: Int, isRepeat: Bool, isExcused: Bool) throws(Violation) {
        guard let number = Post.number(inPayload: push.payload), posts.indices.contains(number) else {
            throw fail("P1", "an app was handed what nobody posted")
        }
        posts[number].isHanded = true
        if isRepeat && !isExcused { throw fail("P3", "post \(number) was handed to an app of device \(device) twice") }
    }

    // MARK: - The end

    /// Everything has healed and been delivered: nothing may be missing.
    func checkEnd() throws(Violation) {
        for device in devices.indices {
            try checkMissing(device)
            try checkOrder(device)
        }
    }

    private func checkMissing(_ device: Int) throws(Violation) {
        let missing = posts.filter { $0.device == device && $0.isAccepted && !$0.isHanded && !$0.isLiveOnly }
        if !scenario.hasCap, let lost = missing.first(where: \.isLong) {
            throw fail("P1", "post \(lost.number) for device \(device) was accepted and never handed to its app")
        }
        let told = devices[device].gaps.values.reduce(0, +)
        guard missing.count <= told else {
            let numbers = missing.map(\.number)
            throw fail("P8", "device \(device) misses \(numbers) and was told of \(told) missing messages")
        }
    }

    private func checkOrder(_ device: Int) throws(Violation) {
        let inOrder = devices[device].seqs.sorted { $0.value < $1.value }.map { posts[$0.key] }
        var latest: Post?
        var lastPlace: [Int: Post] = [:]
        for post in inOrder {
            if let latest, let answered = post.answeredStep, latest.firstSentStep > answered {
                throw fail(
                    "P2", "post \(post.number), answered before \(latest.number) was posted, comes after it")
            }
            if latest.map({ $0.firstSentStep < post.firstSentStep }) ?? true { latest = post }
            guard post.attempts == 1, post.isAccepted else { continue }
            if let last = lastPlace[post.connection], last.place > post.place {
                throw fail(
                    "P2", "post \(post.number), before \(last.number) on one connection, comes after it")
            }
            lastPlace[post.connection] = post
        }
    }
}
