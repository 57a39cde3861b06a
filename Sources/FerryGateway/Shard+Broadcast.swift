internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// `POST /push/all`: from the call to the owner of the app, who takes it once, and to all shards, who give it its places. The
/// call is answered when every place is on disk, so that what is posted after the answer comes after it everywhere (P2).
extension Shard {
    mutating func order(_ push: BroadcastPush, _ app: App, _ origin: APIOrigin) {
        let partition = Partition(of: app.id)
        let key = Self.requestKey(app.id, push.requestID, "all", push.contentDigestInput)
        post(
            .order(.broadcast(BroadcastOrder(app: app.id, push: push, key: key, origin: origin))),
            to: partition.owner(among: environment.shards))
    }

    /// The digests of (app, request id) and of the content, for calls of the same kind. The key's low bits are the app's partition,
    /// so that after a restart the owner takes it. No push to one device has the same: its name ends in 16 bytes of a cid.
    static func requestKey(_ app: AppID, _ requestID: String, _ kind: StaticString, _ content: [UInt8]) -> RequestKey {
        var name = ByteWriter()
        name.string(app.text.utf8)
        name.string(requestID.utf8)
        name.string("\(kind)".utf8)
        let zero = Identifier128(high: 0, low: 0)
        var key = Identifier128(bytes: Cryptography.sha256(name.bytes)) ?? zero
        key.low = key.low / UInt64(Limits.partitions) * UInt64(Limits.partitions) + UInt64(Partition(of: app).index)
        return RequestKey(key: key, content: Identifier128(bytes: Cryptography.sha256(content)) ?? zero)
    }

    // MARK: - The owner's part

    mutating func take(_ order: BroadcastOrder) {
        if answerRepeat(order.key, order.push.requestID, order.origin) { return }
        if let error = shortage(for: order.push, order.app) { return answer(order.origin, .failure(error)) }
        accept(order.push, order.app, order.key, origins: [order.origin])
    }

    /// The call's request id is known, and it is answered with what is known of it, or when that is there; false: it is new.
    mutating func answerRepeat(_ key: RequestKey, _ requestID: String, _ origin: APIOrigin) -> Bool {
        switch requests.find(key.key) {
        case .answered(let first):
            if first.content != key.content {
                answer(origin, .failure(.requestIDReused(requestID)))
            } else if let known = placing[first.taskID.value], known.content.broadcast.terms.speed == 0 {
                placing[first.taskID.value]?.waiting.append(origin)
            } else {
                answer(origin, .success(first.taskID))
            }
        case .inFlight(let content):
            if content == key.content {
                openBroadcasts[key.key, default: []].append(origin)
            } else {
                answer(origin, .failure(.requestIDReused(requestID)))
            }
        case .unknown: return false
        }
        return true
    }

    /// Why it cannot be taken; nil, and its content's bytes taken of the budget, when it can.
    mutating func shortage(for push: BroadcastPush, _ app: AppID) -> APIError? {
        if let window = push.traits.window, window.upperBound <= now { return .windowOver(window) }
        if isDiskShort { return refusal(.disk) }
        if isMemoryShort(for: push.payload.count + MemoryCost.order) { return refusal(.memory) }
        guard unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes, !isDraining else {
            return refusal(.sync)
        }
        let number = broadcastLine(of: app)
        let live = broadcasts.lines[number].liveCount + broadcasts.lines[number].coming
        guard live < environment.configuration.broadcastsPerApp else {
            counters.refused[Shortage.broadcasts.rawValue] += 1
            return .tooManyBroadcasts("the app has \(live) live pushes to all (broadcastsPerApp)")
        }
        let recent = broadcasts.recentCount(number, since: now + .seconds(-3_600))
        guard recent < environment.configuration.broadcastsPerHour else {
            counters.refused[Shortage.broadcasts.rawValue] += 1
            return .tooManyBroadcasts("the app had \(recent) pushes to all within an hour (broadcastsPerHour)")
        }
        guard environment.broadcastBudget.take(push.payload.count) else {
            counters.refused[Shortage.broadcasts.rawValue] += 1
            return .tooManyBroadcasts("live pushes to all hold as much memory as they may (broadcastBytes)")
        }
        return nil
    }

    /// `task`: the name that a scheduled one had from the beginning.
    mutating func accept(
        _ push: BroadcastPush, _ app: AppID, _ key: RequestKey, origins: [APIOrigin], task: TaskID? = nil
    ) {
        _ = requests.begin(key.key, content: key.content)
        if !origins.isEmpty { openBroadcasts[key.key] = origins }
        var expiresAt: Instant =
            switch push.ttl {
            case .liveOnly: now
            case .milliseconds(let milliseconds): now + .milliseconds(milliseconds)
            }
        if let window = push.traits.window { expiresAt = min(expiresAt, window.upperBound) }
        let broadcast = AcceptedBroadcast(
            app: app, taskID: task ?? TaskID(randomIdentifier(), monthDay: now.monthDay, kind: .app),
            messageID: MessageID(randomIdentifier()), acceptedAt: now, expiresAt: expiresAt, request: key,
            traits: push.traits,
            terms: BroadcastTerms(
                speed: push.speed, wakes: push.wakes,
                alert: push.alert.map {
                    OwnAlert(
                        body: $0.payload, collapseID: $0.collapseID, isBackground: $0.pushType == .background)
                }), payload: push.payload)
        let content = BroadcastContent(
            broadcast, compressed: compressor.compressed(push.payload, environment.configuration.compressionBytes),
            budget: environment.broadcastBudget)
        let number = broadcastLine(of: app)
        broadcasts.expect(number)
        broadcasts.noteAccepted(number, at: now)
        append(.broadcastAccepted(broadcast), .broadcastAccepted(content))
        if push.traits.kind == .revoke { push.payload.withUnsafeBytes { stopRevoked($0, app) } }
    }

    /// The record is on disk.
    mutating func broadcastAccepted(_ content: BroadcastContent, segment: UInt32) {
        let broadcast = content.broadcast
        let answer = RequestAnswer(
            content: broadcast.request.content, taskID: broadcast.taskID, wasOnline: false,
            acceptedAt: broadcast.acceptedAt)
        requests.settle(broadcast.request.key, answer, acceptedAt: broadcast.acceptedAt, segment: segment)
        keepOnDisk(broadcast, segment: segment)
        var waiting = openBroadcasts.removeValue(forKey: broadcast.request.key) ?? []
        if broadcast.terms.speed > 0 {
            // It takes its time, and nobody waits for that.
            for origin in waiting { self.answer(origin, .success(broadcast.taskID)) }
            waiting = []
        }
        placing[broadcast.taskID.value] = PlacingBroadcast(
            content: content, missing: environment.shards, waiting: waiting)
        for shard in 0..<environment.shards { post(.place(content), to: shard) }
    }

    mutating func keepOnDisk(_ broadcast: AcceptedBroadcast, segment: UInt32) {
        var known = broadcast
        known.payload = []
        ownBroadcasts.append(OwnBroadcast(broadcast: known, segment: segment))
    }

    /// It is not on disk and will not be.
    mutating func broadcastRefused(_ content: BroadcastContent) {
        requests.abandon(content.broadcast.request.key)
        broadcasts.takeBack(broadcastLine(of: content.broadcast.app), acceptedAt: content.broadcast.acceptedAt)
        for origin in openBroadcasts.removeValue(forKey: content.broadcast.request.key) ?? [] {
            answer(origin, .failure(.busy(retryAfterSeconds: 5)))
        }
    }

    /// The places of one more shard are on disk.
    mutating func placesKnown(_ task: Identifier128) {
        guard var known = placing.removeValue(forKey: task) else { return }
        known.missing -= 1
        guard known.missing <= 0 else {
            placing[task] = known
            return
        }
        for origin in known.waiting { answer(origin, .success(known.content.broadcast.taskID)) }
    }

    mutating func answer(_ origin: APIOrigin, _ result: Result<TaskID, APIError>) {
        post(.reply(.broadcast(origin, result)), to: origin.shard)
    }

    // MARK: - Every shard's part

    /// The app's line, which begins here if there is none.
    mutating func broadcastLine(of app: AppID) -> Int {
        let number = devices.number(of: app)
        broadcasts.begin(number, app)
        return number
    }

    /// A broadcast draws one `seq` in each partition, as a message does in one.
    mutating func place(_ wanted: WantedPlaces) {
        var seqs = [Seq](repeating: .zero, count: broadcasts.partitions)
        var places: [(partition: Partition, seq: Seq)] = []
        places.reserveCapacity(seqs.count)
        for local in seqs.indices where wanted.isWanted(local) {
            let partition = broadcasts.partition(local)
            sequences[partition.index] = sequences[partition.index].next
            journal.partitions.insert(partition.index)
            seqs[local] = sequences[partition.index]
            places.append((partition, seqs[local]))
        }
        tasks.placing.insert(wanted.content.broadcast.taskID.value)
        let placement = BroadcastPlacement(task: wanted.content.broadcast.taskID.value, places: places)
        let counted = countPlaces(wanted.content.broadcast, seqs)
        append(.broadcastPlaced(placement), .broadcastPlaced(PendingPlaces(wanted, seqs: seqs, counted: counted)))
    }

    /// The places are on disk: from now on it is in the streams. Whoever was registered before is in the count, and nobody else,
    /// since registrations go through the same journal in the same order.
    mutating func broadcastPlaced(_ pending: PendingPlaces, segment: UInt32) {
        if pacedPlaced(pending, segment: segment) { return }
        let content = pending.wanted.content
        let number = broadcastLine(of: content.broadcast.app)
        let targets = broadcasts.targets(number, pending.seqs)
        broadcasts.add(
            number, content.broadcast, content, seqs: pending.seqs, segment: segment, unreached: targets)
        note(.broadcastPlaced(targets: UInt64(targets)), ofTask: content.broadcast.taskID)
        countPlaces(pending, targets: targets)
        let owner = Partition(of: content.broadcast.app).owner(among: environment.shards)
        if owner == index { broadcasts.arrived(number) }
        post(.placesKnown(content.broadcast.taskID.value), to: owner)
        let task = content.broadcast.taskID.value
        tasks.placing.remove(task)
        if tasks.stoppedEarly.remove(task) != nil || pending.wanted.isStopped {
            endStopped(number, task)
        } else {
            broadcasts.wantPass(number)
            beginWakes(number, content.broadcast)
        }
        trimBroadcasts(number)
    }

    /// Other places are drawn in a while: what was drawn is below what others may have by now. Who waits for the answer goes on
    /// waiting: a refusal would be a lie, since the broadcast is on disk.
    mutating func placesRefused(_ pending: PendingPlaces) {
        countPlaces(pending, targets: 0)
        unplaced.append(pending.wanted)
        deferredUntil = min(deferredUntil, now + .seconds(1))
    }

    mutating func placeAgain() {
        guard !unplaced.isEmpty else { return }
        let again = unplaced
        unplaced = []
        for wanted in again { place(wanted) }
    }

    // MARK: - The end

    /// At each tick: the end of a broadcast is on disk before anybody is told of it.
    mutating func endBroadcastsInTime() {
        guard now >= broadcasts.nextEnd else { return }
        for (number, ordinal) in broadcasts.takeEnding(now: now) {
            guard let index = broadcasts.index(number, ordinal: ordinal) else { continue }
            let task = broadcasts.lines[number].placed[index].broadcast.taskID.value
            append(.broadcastExpired(task: task), .broadcastExpired(number, ordinal: ordinal))
        }
    }

    mutating func broadcastExpired(_ number: Int, ordinal: UInt32) {
        // It may have been stopped meanwhile.
        guard let index = broadcasts.index(number, ordinal: ordinal),
            broadcasts.lines[number].placed[index].state != .over
        else { return }
        end(number, index, .ttlRanOut)
        if broadcasts.lines[number].hasEnded { broadcasts.wantPass(number) }
        trimBroadcasts(number)
    }

    /// What is over takes memory only as long as somebody is to be told of it. Never between finding an index and using it.
    mutating func trimBroadcasts(_ number: Int) {
        broadcasts.trim(number, endedBefore: now + (.zero - environment.configuration.broadcastRetention))
    }

    mutating func end(_ number: Int, _ index: Int, _ reason: EndReason) {
        let task = broadcasts.lines[number].placed[index].broadcast.taskID
        let count = broadcasts.end(number, index, isStopped: reason == .taskStopped)
        guard count > 0 else { return }
        note(.broadcastOver(reason, targets: UInt64(count)), ofTask: task)
        countEnds(ofTask: task, number, reason, count)
    }

    /// Every device that had a session when they came has been looked at.
    mutating func endLiveOnlyBroadcasts(_ number: Int) {
        for index in broadcasts.passed(number) { end(number, index, .noLiveSession) }
        trimBroadcasts(number)
    }

    private mutating func note(_ fact: Fact, ofTask task: TaskID) { note(fact, of: CID(task.value)) }

    // MARK: - Retirement

    /// What this shard keeps of broadcasts on disk goes to the tables.
    mutating func gatherBroadcasts(upTo segment: UInt32, into remains: inout SegmentRemains) {
        let retention = environment.configuration.broadcastRetention
        remains.placements = broadcasts.takePlacements(upTo: segment, retention: retention)
        for own in ownBroadcasts where own.segment <= segment {
            var broadcast = own.broadcast
            broadcast.payload =
                placing[broadcast.taskID.value]?.content.broadcast.payload ?? broadcasts.payload(of: broadcast) ?? []
            remains.broadcasts.append(
                RetainedBroadcast(broadcast, forgetAt: broadcast.expiresAt + retention))
        }
        ownBroadcasts.removeAll { $0.segment <= segment }
        remains.stops = tasks.takeStops(upTo: segment).map { ($0.task, $0.expiresAt + retention) }
    }
}

extension APIError {
    /// 30019: the app, or the gateway, has or had as many broadcasts as it may. A repeat makes sense later.
    static func tooManyBroadcasts(_ why: String) -> APIError {
        APIError(code: 30019, message: "please retry later: \(why)", retryAfterSeconds: 60)
    }
}
