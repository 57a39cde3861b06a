internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// A batch of pushes that waits for the owners of its devices.
struct BatchQuestion {
    let isAsync: Bool
    /// By place in the batch, as the results.
    let cids: [CID]
    var results: [Result<PushReceipt, APIError>?]
    var missing: Int

    init(_ batch: PushBatch) {
        isAsync = batch.isAsync
        cids = batch.pushes.map(\.cid)
        results = Array(repeating: nil, count: cids.count)
        missing = cids.count
    }
}

/// Batches of pushes: each becomes one mail to every owner of some of its devices, and as many mails back.
extension Shard {
    mutating func order(_ batch: PushBatch, _ app: App, _ origin: APIOrigin) {
        batches[origin] = BatchQuestion(batch)
        var parts = [[PushOrder]](repeating: [], count: environment.shards)
        for (place, push) in batch.pushes.enumerated() {
            let order = PushOrder(
                app: app.id, push: push, key: Self.requestKey(app.id, push), origin: origin, place: place)
            parts[environment.owner(of: push.cid)].append(order)
        }
        for (owner, orders) in parts.enumerated() where !orders.isEmpty { post(.order(.pushes(orders)), to: owner) }
    }

    /// Of an order of this shard's devices: it travels with all others of its batch that have their outcome in this turn.
    mutating func noteBatchOutcome(_ origin: APIOrigin, _ place: Int, _ result: Result<PushReceipt, APIError>) {
        // What belongs together comes together.
        if batchOutcomes.last?.origin != origin { batchOutcomes.append(BatchOutcomes(origin: origin)) }
        batchOutcomes[batchOutcomes.count - 1].outcomes.append((place, result))
    }

    /// At the end of the turn.
    mutating func sendBatchOutcomes() {
        guard !batchOutcomes.isEmpty else { return }
        let gathered = batchOutcomes
        batchOutcomes.removeAll(keepingCapacity: true)
        for outcomes in gathered { post(.reply(.batch(outcomes)), to: outcomes.origin.shard) }
    }

    mutating func collect(_ found: BatchOutcomes) {
        guard var question = batches.removeValue(forKey: found.origin) else { return }
        for (place, result) in found.outcomes where question.results[place] == nil {
            question.results[place] = result
            question.missing -= 1
        }
        guard question.missing == 0 else {
            batches[found.origin] = question
            return
        }
        fill(found.origin, Self.answer(question))
    }

    /// Where any push found the gateway busy, all of the call does: what was taken is known by its request id when it comes
    /// again. Where none was taken, for reasons of their own, the first reason is the answer.
    private static func answer(_ question: BatchQuestion) -> Result<APIAnswer, APIError> {
        var pushed: [APIAnswer.Pushed] = []
        var refused: [APIAnswer.RefusedPush] = []
        // What stands twice in the list is told once: the answer is an object.
        var tasks: Set<TaskID> = []
        var targets: Set<CID> = []
        var first: APIError?
        for (cid, result) in zip(question.cids, question.results) {
            switch result {
            case .success(let receipt):
                guard tasks.insert(receipt.taskID).inserted else { continue }
                pushed.append(
                    APIAnswer.Pushed(
                        task: receipt.taskID, cid: cid, status: receipt.wasOnline ? .online : .offline))
            case .failure(let error):
                if error.isGatewayBusy { return .failure(error) }
                first = first ?? error
                if targets.insert(cid).inserted {
                    refused.append(APIAnswer.RefusedPush(cid: cid, reason: error.message))
                }
            case nil: continue
            }
        }
        if pushed.isEmpty, let first { return .failure(first) }
        return .success(question.isAsync ? .taken : .pushedBatch(pushed, refused: refused))
    }
}
