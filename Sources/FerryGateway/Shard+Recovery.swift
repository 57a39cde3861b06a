internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// What a shard starts with: its part of what the store found.
struct ShardRecovery: Sendable {
    var devices: [RecoveredDevice] = []
    var requests: [(key: Identifier128, answer: RequestAnswer, segment: UInt32)] = []
    var revokedTokens: [(digest: [UInt8], expiresAt: Instant, segment: UInt32)] = []
    /// By token digest.
    var tokenHolders: [UInt64: CID] = [:]
    /// Devices of this shard whose token a later device holds.
    var tokenLosses: [(claim: TokenClaim, holder: CID)] = []
    /// A broadcast's places in this shard's partitions. `content` nil: it is over.
    struct Broadcast: Sendable {
        let broadcast: AcceptedBroadcast
        let content: BroadcastContent?
        let seqs: [Seq]
        let segment: UInt32
        /// Devices of this shard that it is still to come to.
        let waiting: Int
        let isStopped: Bool
    }

    var broadcasts: [Broadcast] = []
    var controlRows: [(row: ControlRow, segment: UInt32)] = []
    var reportCorrections = ReportCorrections()
    /// All devices, of all shards.
    var known: [KnownDevice] = []
    /// Devices of this shard that are gone, with the segment of the record.
    var removed: [CID: UInt32] = [:]
    var unplaced: [WantedPlaces] = []
    // Of the owner of the app.
    var placing: [(task: Identifier128, content: BroadcastContent, missing: Int)] = []
    var ownBroadcasts: [OwnBroadcast] = []
    /// Tasks that were stopped and the record of which is in a segment of the journal.
    var stops: [StoppedTask] = []
    /// Of tasks with stored content, those of all apps.
    var listStops: [ListStop] = []
    /// Devices of each app in all partitions.
    var registered: [AppID: [UInt32]] = [:]
    var highest: [Seq]
    var firstSegment: UInt32

    /// Divides `recovery` among shards. A request id's key ends in its device's partition. Every shard refuses every revoked
    /// token, but only the first keeps them on disk.
    static func divide(_ recovery: Recovery, among shards: Int, _ environment: ShardEnvironment) -> [ShardRecovery] {
        var parts = (0..<shards).map { _ in
            ShardRecovery(highest: recovery.highest, firstSegment: recovery.firstSegment)
        }
        for device in recovery.devices {
            parts[Partition(of: device.record.cid).owner(among: shards)].devices.append(device)
        }
        for request in recovery.requests {
            let partition = Partition(index: Int(request.key.low % UInt64(Limits.partitions)))
            parts[partition.owner(among: shards)].requests.append(request)
        }
        for shard in parts.indices {
            parts[shard].registered = recovery.registered
            parts[shard].known = recovery.known
        }
        for (cid, segment) in recovery.removed {
            parts[Partition(of: cid).owner(among: shards)].removed[cid] = segment
        }
        let listStops = recovery.controlRows.filter { $0.row.table == .stoppedTask }.compactMap {
            $0.row.value.flatMap { ListStop($0) }
        }
        for shard in parts.indices { parts[shard].listStops = listStops }
        for found in recovery.controlRows {
            let owner = found.row.partition.owner(among: shards)
            parts[owner].controlRows.append(found)
            // Its devices may be any shard's now.
            guard found.row.table == .broadcastWake else { continue }
            for other in parts.indices where other != owner { parts[other].controlRows.append((found.row, 0)) }
        }
        let audit = ReportAudit(recovery)
        for shard in parts.indices {
            parts[shard].reportCorrections = audit.corrections {
                Partition(of: $0).owner(among: shards) == shard
            }
        }
        var compressor = PayloadCompressor()
        for found in recovery.broadcasts {
            let payload = found.broadcast.payload
            environment.broadcastBudget.change(by: payload.count)
            let content = BroadcastContent(
                found.broadcast,
                compressed: compressor.compressed(payload, environment.configuration.compressionBytes),
                budget: environment.broadcastBudget)
            divide(found, content, among: &parts)
        }
        for shard in parts.indices {
            parts[shard].revokedTokens = recovery.revokedTokens.map {
                ($0.digest, $0.expiresAt, shard == 0 ? $0.segment : 0)
            }
        }
        var holders: [UInt64: TokenHolder] = [:]
        for holder in recovery.tokenHolders {
            let digest = holder.token.digest(app: holder.app)
            guard let other = holders[digest], other.app == holder.app, other.token == holder.token else {
                holders[digest] = holder
                continue
            }
            let (winner, loser) = other.seenAt <= holder.seenAt ? (holder, other) : (other, holder)
            holders[digest] = winner
            let claim = TokenClaim(app: winner.app, token: winner.token, cid: winner.cid)
            parts[Partition(of: loser.cid).owner(among: shards)].tokenLosses.append((claim, loser.cid))
        }
        for (digest, holder) in holders {
            parts[Int(digest % UInt64(shards))].tokenHolders[digest] = holder.cid
        }
        return parts
    }

    /// A shard that has not placed it in all of its partitions does so at once, its end or not: it was accepted.
    private static func divide(
        _ found: RecoveredBroadcast, _ content: BroadcastContent, among parts: inout [ShardRecovery]
    ) {
        let shards = parts.count
        var missing = 0
        for shard in parts.indices {
            let partitions = Array(stride(from: shard, to: Limits.partitions, by: shards))
            let seqs = partitions.map { found.places[$0] }
            if seqs.contains(where: { $0 > .zero }) {
                parts[shard].broadcasts.append(
                    Broadcast(
                        broadcast: found.broadcast, content: found.isOver ? nil : content, seqs: seqs,
                        segment: partitions.map { found.placeSegments[$0] }.filter { $0 != 0 }.min() ?? 0,
                        waiting: partitions.reduce(0) { $0 + Int(found.waiting[$1]) },
                        isStopped: found.stopSegment != nil))
            }
            guard seqs.contains(.zero) else { continue }
            missing += 1
            parts[shard].unplaced.append(
                WantedPlaces(
                    content: content, lacking: seqs.map { $0 == .zero }, isStopped: found.stopSegment != nil))
        }
        let owner = Partition(of: found.broadcast.app).owner(among: shards)
        if missing > 0 { parts[owner].placing.append((found.broadcast.taskID.value, content, missing)) }
        if let segment = found.stopSegment, segment != 0 {
            parts[owner].stops.append(
                StoppedTask(
                    task: found.broadcast.taskID.value, expiresAt: found.broadcast.expiresAt, segment: segment))
        }
        if found.contentSegment != 0 {
            parts[owner].ownBroadcasts.append(
                OwnBroadcast(broadcast: found.broadcast, segment: found.contentSegment))
        }
    }
}

extension Shard {
    mutating func restore(_ recovery: ShardRecovery) {
        let policy = environment.configuration.delivery
        restoreReports(recovery)
        restoreBroadcasts(recovery)
        restoreControl(recovery.controlRows)
        restoreListStops(recovery.listStops)
        for known in recovery.known where environment.owner(of: known.cid) == index {
            audience.register(
                devices.number(of: known.app), known.cid, seenAt: known.seenAt, hasToken: known.hasToken)
        }
        users.removals.devices = recovery.removed
        for found in recovery.devices {
            let device = insertDevice(found.record)
            if let segment = found.firstChangedSegment { markChanged(device, segment: segment) }
            if receiptDesk.isActive { nameForReceipts(found, device) }
            devices[device].machine.willRestore(found.kept.count)
            let missed = restoreLog(of: device, found.kept)
            var listed: UInt32 = 0
            for message in found.kept {
                if message.location.segment != listed {
                    listed = message.location.segment
                    segmentDevices.add(device, segment: listed)
                }
                tally.restore()
                if !message.isReference { keepRoom(Int(message.payloadBytes)) }
            }
            // Spread over a second per thousand devices, so that their stubs do not come all at once.
            let spread = UInt64.random(in: 0...UInt64(min(60_000, recovery.devices.count)), using: &random)
            devices[device].machine.finishRestoring(
                now: now, wait: policy.reattachGrace + .milliseconds(Int64(spread)))
            tell(device: device, .timePassed)
            tellMissed(missed, device)
        }
        let slots = taskSlots
        tasks.lists.sweepOnly { slots.number(of: $0) != nil }
        for request in recovery.requests {
            requests.settle(
                request.key, request.answer, acceptedAt: request.answer.acceptedAt, segment: request.segment)
        }
        tokenHolders = recovery.tokenHolders
        for (claim, holder) in recovery.tokenLosses { loseToken(claim, holder: holder) }
        for token in recovery.revokedTokens {
            revokedTokens[token.digest] = RevokedToken(expiresAt: token.expiresAt, segment: token.segment)
        }
    }
}

extension KeptMessage {
    /// After a restart the device counts as having been away.
    init(restoring message: RecoveredMessage, taskSlot: UInt16) {
        let stub: Stub =
            switch message.stub {
            case .due: .due
            case .noToken: .noToken
            case .notWanted: .notWanted
            case .none?: .none
            case nil: .settled
            }
        self.init(
            seq: message.seq, expiresAt: message.expiresAt, location: message.location,
            payloadBytes: message.payloadBytes, isLiveOnly: message.isLiveOnly, hasOwnAlert: message.hasOwnAlert,
            wasOffline: true, stub: stub, isReference: message.isReference, route: message.route, taskSlot: taskSlot)
    }
}
