internal import FerryCore
internal import FerryStore
internal import Testing

/// A recovery in a form that can be compared with the model.
struct Summary: Equatable {
    struct Message: Equatable {
        var seq: Seq
        var expiresAt: Instant
        var isLiveOnly: Bool
        var payloadBytes: UInt32
        var hasOwnAlert: Bool
        var isReference: Bool
        var stub: StubNeed?
    }

    /// All devices, whether a recovery tells of them or the tables know them.
    var devices: [CID: DeviceRecord] = [:]
    var kept: [CID: [Message]] = [:]
    var highest: [Int: Seq] = [:]
    var requests: [Identifier128: RequestAnswer] = [:]
    var revoked: [[UInt8]: Instant] = [:]
    struct Broadcast: Equatable {
        var broadcast: AcceptedBroadcast
        var places: [Int: Seq] = [:]
        /// By partition, how many devices have it before them.
        var waiting: [Int: UInt32] = [:]
        var isStopped = false
    }
    var broadcasts: [Identifier128: Broadcast] = [:]
    /// By partition.
    var registered: [Int: UInt32] = [:]
    /// Every device that there is.
    var known: Set<CID> = []

    init(_ recovery: Recovery) {
        for device in recovery.devices {
            devices[device.record.cid] = device.record
            if device.kept.isEmpty { continue }
            kept[device.record.cid] = device.kept.map {
                Message(
                    seq: $0.seq, expiresAt: $0.expiresAt, isLiveOnly: $0.isLiveOnly, payloadBytes: $0.payloadBytes,
                    hasOwnAlert: $0.hasOwnAlert, isReference: $0.isReference, stub: $0.stub)
            }
        }
        for (index, seq) in recovery.highest.enumerated() where seq > .zero { highest[index] = seq }
        for (key, answer, _) in recovery.requests { requests[key] = answer }
        for (digest, expiresAt, _) in recovery.revokedTokens { revoked[digest] = expiresAt }
        for found in recovery.broadcasts {
            var summary = Broadcast(broadcast: found.broadcast)
            summary.isStopped = found.stopSegment != nil
            for (index, seq) in found.places.enumerated() where seq > .zero { summary.places[index] = seq }
            for (index, count) in found.waiting.enumerated() where count > 0 { summary.waiting[index] = count }
            broadcasts[found.broadcast.taskID.value] = summary
        }
        for (index, count) in recovery.registered.values.first?.enumerated() ?? [].enumerated() where count > 0 {
            registered[index] = count
        }
        known = Set(recovery.known.map(\.cid))
    }

    init(_ state: ModelShard.State) {
        for (cid, device) in state.devices {
            devices[cid] = device.record
            if device.kept.isEmpty { continue }
            kept[cid] = device.kept.map { kept in
                let message = kept.message
                var stub: StubNeed? = message.stub
                if message.seq <= device.record.stubSettledUpTo {
                    stub = nil
                } else if stub == StubNeed.none, message.seq <= device.record.stubDueUpTo {
                    stub = .due
                }
                return Message(
                    seq: message.seq, expiresAt: message.expiresAt, isLiveOnly: message.isLiveOnly,
                    payloadBytes: message.reference?.payloadBytes ?? UInt32(message.payload.count),
                    hasOwnAlert: message.reference?.hasAlert ?? (message.alert != nil),
                    isReference: message.reference != nil, stub: stub)
            }
        }
        highest = state.highest
        requests = state.requests
        revoked = state.revoked
        for (task, broadcast) in state.broadcasts {
            var summary = Broadcast(broadcast: broadcast, places: state.places[task] ?? [:])
            summary.isStopped = state.stopped.contains(task)
            if summary.isStopped {
                // It waits for nobody, and nobody is sent it any more.
                summary.broadcast.payload = []
                broadcasts[task] = summary
                continue
            }
            for device in state.devices.values {
                let partition = Partition(of: device.record.cid).index
                guard let place = summary.places[partition], device.record.acknowledged < place else { continue }
                summary.waiting[partition, default: 0] += 1
            }
            broadcasts[task] = summary
        }
        for device in state.devices.values {
            registered[Partition(of: device.record.cid).index, default: 0] += 1
        }
        known = Set(state.devices.keys)
    }
}

/// Runs a store and its shard until neither has anything left to say.
func settle(_ store: SteppedStore, _ shards: ModelShard...) {
    var isBusy = true
    while isBusy {
        store.step()
        isBusy = false
        for shard in shards where shard.pump() { isBusy = true }
    }
}

/// Checks what `store` found and holds against one of the states that it may hold.
func expectRecovered(
    _ store: SteppedStore, _ recovery: Recovery, isOneOf states: [ModelShard.State],
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    var found = Summary(recovery)
    let shard = ModelShard(store)
    // It knows nothing: its remains would be none.
    shard.holdsRemains = true
    try store.start(sinks: [shard.sink])
    // The tables may still have the row of a device that is gone.
    let removed = Set(recovery.removed.map(\.cid))
    for cid in Set(states.flatMap(\.devices.keys)) where found.devices[cid] == nil && !removed.contains(cid) {
        shard.load(cid)
        store.step()
        shard.pump()
        if case .device(_, let record)? = shard.takeAnswers().last { found.devices[cid] = record }
    }
    guard let state = states.last(where: { Summary($0) == found }) else {
        let wanted = states.last.map { Summary($0) }
        Issue.record("\(difference(found, wanted))", sourceLocation: sourceLocation)
        return
    }
    // Every kept message is readable where the recovery says.
    for device in recovery.devices {
        let references = device.kept.map {
            MessageReference(cid: device.record.cid, seq: $0.seq, location: $0.location)
        }
        shard.read(references)
        store.step()
        shard.pump()
        for case .messages(_, let messages) in shard.takeAnswers() {
            let wanted = state.devices[device.record.cid]?.kept.map(\.message)
            let isSame = messages == wanted
            #expect(isSame, "messages of \(device.record.cid)", sourceLocation: sourceLocation)
        }
    }
}

private func difference(_ found: Summary, _ wanted: Summary?) -> String {
    guard let wanted else { return "no state to compare with" }
    var lines = ["The recovery is none of the states it may be; against the last:"]
    for cid in Set(found.devices.keys).union(wanted.devices.keys).sorted() {
        if found.devices[cid] != wanted.devices[cid] {
            lines.append("record of \(cid):")
            if let record = found.devices[cid] { lines.append("  \(record)") }
            if let record = wanted.devices[cid] { lines.append("  \(record)") }
        }
        if found.kept[cid] != wanted.kept[cid] {
            lines.append(
                "kept \(found.kept[cid]?.map(\.seq.rawValue) ?? []) / \(wanted.kept[cid]?.map(\.seq.rawValue) ?? [])")
        }
    }
    if found.highest != wanted.highest { lines.append("highest \(found.highest) / \(wanted.highest)") }
    if found.requests != wanted.requests { lines.append("requests") }
    if found.revoked != wanted.revoked { lines.append("revoked") }
    if found.broadcasts != wanted.broadcasts { lines.append("broadcasts") }
    if found.known != wanted.known { lines.append("known") }
    if found.registered != wanted.registered { lines.append("registered \(found.registered) / \(wanted.registered)") }
    return lines.joined(separator: "\n")
}
