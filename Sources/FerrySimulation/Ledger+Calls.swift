internal import FerryCore

/// One token that backends call with.
struct APITokenFacts {
    let text: String
    /// A backend has asked to end it.
    var isEnding = false
    /// A backend was told that it has ended.
    var hasEnded = false
}

/// Calls of backends other than the acceptance of a push.
extension Ledger {
    /// What the answer to a status call says of one device, nil for nothing. `asked`: the step of the call.
    func status(_ device: Int, _ word: String?, asked: Int) throws(Violation) {
        trace.note("status", device, asked, 0, word ?? "unknown")
        guard let word else { throw fail("P1", "the gateway does not know device \(device), which it registered") }
        let facts = devices[device]
        switch word {
        case "online":
            guard facts.offlineSince != nil, facts.offlineSinceStep < asked else { return }
            throw fail("API", "device \(device) is called online, and has been offline since before the call")
        case "offline":
            guard let since = facts.onlineSinceStep, since < asked, facts.current != nil else { return }
            throw fail("API", "device \(device) is called offline, and has been online since before the call")
        default: throw fail("API", "device \(device) is called \(word)")
        }
    }

    // MARK: - Stops

    /// The first posts of tasks whose sender knows their name.
    var stoppable: [Int] {
        posts.indices.filter { (posts[$0].first ?? $0) == $0 && !posts[$0].mayBeTwice && task(of: $0) != nil }
    }

    func task(of number: Int) -> String? {
        posts[number].isListed ? list(of: number)?.taskID : posts[number].taskID
    }

    private func ofOneTask(_ number: Int) -> Range<Int> {
        posts[number].first.map { $0..<$0 + devices.count } ?? number..<number + 1
    }

    func stopping(_ number: Int) {
        for post in ofOneTask(number) where posts[post].stoppingStep == nil { posts[post].stoppingStep = step }
    }

    func stopped(_ number: Int) {
        trace.note("stopped", number)
        for post in ofOneTask(number) where posts[post].stoppedStep == nil { posts[post].stoppedStep = step }
    }

    /// Nothing of a task is sent after the answer that it is stopped, in no session and in no life. What was sent before is with
    /// the network.
    func checkStopped(_ post: Post) throws(Violation) {
        // Where peers read slowly, what was sent in time leaves late.
        guard scenario.sendBuffer == nil, !post.mayBeTwice, let stopped = post.stoppedStep, stopped < step else {
            return
        }
        throw fail("P1", "post \(post.number) was sent after the answer that it is stopped")
    }

    // MARK: - Tokens

    /// A call was refused for its token. `token` is its index in `apiTokens`.
    func tokenRefused(_ token: Int) throws(Violation) {
        guard !apiTokens[token].isEnding else { return }
        throw fail("API", "a token that nobody ended was refused")
    }

    /// A call was served. `hadEnded`: its token had ended, and its backend knew, when it was sent.
    func tokenTaken(hadEnded: Bool) throws(Violation) {
        if hadEnded { throw fail("API", "a call was served with a token that had ended before") }
    }
}
