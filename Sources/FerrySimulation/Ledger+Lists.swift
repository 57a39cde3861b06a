internal import FerryCore

/// What is known of a task with stored content.
struct ListFacts {
    /// The earliest by the gateway's clock at which it can have been made.
    var sentAt: Instant
    var taskID: String?
}

/// Tasks with stored content.
extension Ledger {
    /// The task that a post is of.
    func list(of number: Int) -> ListFacts? { posts[number].first.flatMap { lists[$0] } }

    func listCreated(_ first: Int, _ task: String) throws(Violation) {
        let known = lists[first]?.taskID
        lists[first]?.taskID = task
        guard let known, known != task else { return }
        throw fail("P3", "the task \(first) was answered with \(known), its repeat with \(task)")
    }

    /// Nothing can be added to the task any more.
    func listWasOver(_ number: Int) throws(Violation) {
        posts[number].open -= 1
        if posts[number].stoppingStep != nil { return }
        // Live-only ones are open for the usual time.
        let ttl = posts[number].isLiveOnly ? Limits.timeToLiveDefaultMilliseconds : Int64(posts[number].ttl)
        guard let sentAt = list(of: number)?.sentAt, clock.now >= sentAt + .milliseconds(ttl) else {
            throw fail("API", "the task of post \(number) is called over before its time")
        }
    }
}
