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
    /// All of it is of one task.
    let isOneTask: Bool
    let isNative: Bool
    /// By place in the batch, as the results.
    let cids: [CID]
    var results: [Result<PushReceipt, APIError>?]
    var missing: Int
    /// Of names that the answer is to tell of: their devices.
    var aliases: [(alias: String, cids: [CID])] = []
    /// Targets that were refused before, and why.
    let refused: [(target: String, reason: String)]

    init(_ batch: PushBatch) {
        self.init(
            batch.pushes.map(\.cid), isOneTask: false, isAsync: batch.isAsync, isNative: batch.isNative, refused: [])
    }

    init(_ targets: ListTargets) {
        self.init(targets.cids, isOneTask: true, isAsync: targets.isAsync, isNative: false, refused: [])
    }

    /// `devices`: of each name. A device has one name at most.
    init(_ targets: ListTargets, _ devices: [(alias: String, cids: [CID])]) {
        self.init(
            devices.flatMap(\.cids), isOneTask: true, isAsync: targets.isAsync, isNative: false,
            refused: devices.filter(\.cids.isEmpty).map { ($0.alias, APIError.aliasInvalid($0.alias).message) })
        if targets.needsAliasDetail { aliases = devices }
    }

    init(_ pushes: [SinglePush], isAsync: Bool, refused: [(target: String, reason: String)]) {
        self.init(pushes.map(\.cid), isOneTask: false, isAsync: isAsync, isNative: false, refused: refused)
    }

    private init(
        _ cids: [CID], isOneTask: Bool, isAsync: Bool, isNative: Bool, refused: [(target: String, reason: String)]
    ) {
        self.isAsync = isAsync
        self.isOneTask = isOneTask
        self.isNative = isNative
        self.refused = refused
        self.cids = cids
        results = Array(repeating: nil, count: cids.count)
        missing = cids.count
    }

    mutating func fill(_ place: Int32, _ result: Result<PushReceipt, APIError>) {
        guard results.indices.contains(Int(place)), results[Int(place)] == nil else { return }
        results[Int(place)] = result
        missing -= 1
    }
}

private struct PushedTarget: Hashable {
    let task: TaskID
    let cid: CID
}

/// Batches of pushes: each becomes one mail to every owner of some of its devices, and as many mails back.
extension Shard {
    mutating func order(_ batch: PushBatch, _ app: App, _ origin: APIOrigin) {
        batches[origin] = BatchQuestion(batch)
        for (place, push) in batch.pushes.enumerated() {
            order(push, app, origin, place: Int32(truncatingIfNeeded: place))
        }
    }

    /// Of an order of this shard's devices: it travels with all others of its batch that have their outcome in this turn.
    mutating func noteBatchAccepted(_ origin: APIOrigin, _ place: Int32, _ receipt: PushReceipt) {
        batchOutcomes[placeOfOutcomes(origin)].accepted.append((place, receipt))
    }

    mutating func noteBatchRefused(_ origin: APIOrigin, _ place: Int32, _ error: APIError) {
        batchOutcomes[placeOfOutcomes(origin)].refused.append((place, error))
    }

    /// What belongs together comes together.
    private mutating func placeOfOutcomes(_ origin: APIOrigin) -> Int {
        if batchOutcomes.last?.origin != origin { batchOutcomes.append(BatchOutcomes(origin: origin)) }
        return batchOutcomes.count - 1
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
        for (place, receipt) in found.accepted { question.fill(place, .success(receipt)) }
        for (place, error) in found.refused { question.fill(place, .failure(error)) }
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
        var refused = question.refused.map { APIAnswer.RefusedPush(target: $0.target, reason: $0.reason) }
        // What stands twice in the list is told once: the answer is an object.
        var told: Set<PushedTarget> = []
        var targets: Set<CID> = []
        var first: APIError?
        for (cid, result) in zip(question.cids, question.results) {
            switch result {
            case .success(let receipt):
                guard told.insert(PushedTarget(task: receipt.taskID, cid: receipt.cid)).inserted else { continue }
                pushed.append(
                    APIAnswer.Pushed(task: receipt.taskID, cid: cid, status: receipt.status))
            case .failure(let error):
                if error.isGatewayBusy { return .failure(error) }
                first = first ?? error
                if targets.insert(cid).inserted {
                    refused.append(APIAnswer.RefusedPush(target: cid.description, reason: error.message))
                }
            case nil: continue
            }
        }
        if pushed.isEmpty, let first { return .failure(first) }
        if question.isNative { return .success(.native(.pushed(pushed, refused: refused))) }
        if question.isAsync { return .success(.taken) }
        guard question.isOneTask, let task = pushed.first?.task else {
            return .success(.pushedBatch(pushed, refused: refused))
        }
        let sent = pushed.map { ListAnswer.Sent(cid: $0.cid, status: $0.status) }
        guard !question.aliases.isEmpty else { return .success(.list(.sent(task: task, sent, refused: refused))) }
        let statuses = Dictionary(sent.map { ($0.cid, $0) }, uniquingKeysWith: { first, _ in first })
        let named = question.aliases.map { (alias, cids) in
            ListAnswer.Named(alias: alias, devices: cids.compactMap { statuses[$0] })
        }
        return .success(.list(.sentByName(task: task, named.filter { !$0.devices.isEmpty }, refused: refused)))
    }
}
