internal import FerryCore
internal import FerryReceipts

/// What backends are told of ended messages: at least once, across all crashes.
extension World {
    func takeReceipts() {
        guard let receipts else { return }
        waitingReceipts += receipts.takeFresh()
        guard waitingReceipts.count > Self.lanesAtMost else { return }
        report(Violation(promise: "P7", what: "\(waitingReceipts.count) batches of receipts are under way at once"))
    }

    /// One lane for each partition that ever was a shard's own, and one more.
    private static var lanesAtMost: Int { 2 * shardsAtMost }

    /// The endpoint answers, or cannot now: it does so later, or never, where a crash comes between.
    func answerReceipts() {
        guard !waitingReceipts.isEmpty else { return }
        let index = receiptDice.below(waitingReceipts.count)
        let offer = waitingReceipts[index]
        if receiptDice.chance(isHealing ? 100 : 400) {
            return offer.told(.delayed(failures: 1, until: gatewayClock.now + .seconds(1)))
        }
        waitingReceipts.remove(at: index)
        check { () throws(Violation) in
            for entry in offer.batch.entries { try ledger.receiptTold(entry.row) }
        }
        offer.told(receiptDice.chance(200) ? .refused(status: 404) : .taken)
    }
}

extension Ledger {
    struct ToldReceipt: Hashable {
        let cid: CID
        let task: String
    }

    /// `owners`: what the device was called, or before that: it may have been handed as either.
    struct HandedTask: Hashable {
        let post: Int
        let owners: [CID]
        let task: String
    }

    func receiptTold(_ row: [UInt8]) throws(Violation) {
        guard let receipt = Receipt(row) else { throw fail("receipts", "a receipt cannot be read") }
        guard case .ended(let message) = receipt else { return }
        toldReceipts.insert(ToldReceipt(cid: message.cid, task: message.name.taskID.description))
    }

    /// A push to many is answered before anybody knows who gets it: it is owed where it was handed.
    func isOwedReceipt(_ post: Post) -> Bool { post.isAccepted && !post.isForAll && !post.isTagged }

    /// Everything has ended: each message that a backend was told to be accepted has been told to be over, and each that an app
    /// was handed.
    func checkReceipts() throws(Violation) {
        for handed in handedTasks {
            guard handed.owners.contains(where: { toldReceipts.contains(ToldReceipt(cid: $0, task: handed.task)) })
            else { throw fail("receipts", "post \(handed.post) was handed to an app, and no receipt told of it") }
        }
        for post in posts where isOwedReceipt(post) {
            guard let task = post.taskID, let cid = devices[post.device].cid else { continue }
            // What was under way when its device was erased came to the one or to the other.
            let owners = post.endedAs.map { [$0] } ?? [cid, devices[post.device].formerCID].compactMap { $0 }
            guard owners.contains(where: { toldReceipts.contains(ToldReceipt(cid: $0, task: task)) }) else {
                throw fail("receipts", "post \(post.number) has ended, and no receipt told of it")
            }
        }
    }
}
