internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryReceipts
internal import FerryRouting
internal import FerryStats
internal import FerryStore

/// A task's content and its devices. A device gets a reference: a record without a payload, in the device's stream like any
/// other message and with the same life. Its content is taken from memory, or asked of the owner of the app.
extension Shard {
    mutating func place(_ placement: ListPlacement) {
        lists.contents.add(placement.content)
        for target in placement.targets.indices { place(placement, target) }
    }

    private mutating func place(_ placement: ListPlacement, _ target: Int) {
        let (cid, place) = placement.targets[target]
        let key = RequestKey(task: placement.content.task.taskID, cid: cid)
        guard let origin = placement.origin else { return }
        switch requests.begin(key.key, content: key.content) {
        case .answered(let first):
            let receipt = PushReceipt(
                taskID: first.taskID, cid: cid, wasOnline: first.wasOnline, isIgnored: first.wasIgnored)
            noteBatchAccepted(origin, place, receipt)
        case .inFlight: lists.repeats[key.key, default: []].append((origin, place))
        case .unknown:
            if isDiskShort { return giveUp(placement, target, refusal(.disk)) }
            if isMemoryShort(for: MemoryCost.order) { return giveUp(placement, target, refusal(.memory)) }
            if let device = devices.index(of: cid) {
                accept(placement, target, device: device)
            } else {
                wait(for: cid, .list(placement, target))
            }
        }
    }

    /// The device is known, or known not to exist.
    mutating func accept(_ placement: ListPlacement, _ target: Int, device: Int?) {
        let task = placement.content.task
        let cid = placement.targets[target].cid
        guard let device, devices.appNumber(of: device) == Int(placement.number), !devices[device].isLeaving
        else {
            return giveUp(placement, target, .targetInvalid(cid.description))
        }
        if isStopped(task.taskID.value) { return giveUp(placement, target, .taskStopped(task.taskID.description)) }
        // A step of a push to an audience has looked at this for all of its targets.
        guard placement.origin == nil || isListening else { return giveUp(placement, target, refusal(.sync)) }
        if placement.origin == nil, devices[device].isBlocked { return leaveOut(placement, target, .deviceBlocked) }
        let terms: AcceptanceTerms
        switch self.terms(of: placement.content.traits, cid, device) {
        case .taken(let found): terms = found
        case .refused(let error, let reason): return giveUp(placement, target, error, leftOutAs: reason)
        case .ignored: return ignore(placement, target)
        }
        let bytes = Int(task.payloadBytes)
        let exceeded = devices[device].machine.exceededCap(
            bytes: bytes, isLiveOnly: task.isLiveOnly, pending: devices[device].pending,
            policy: environment.configuration.delivery)
        if let exceeded {
            counters.refused[Shortage.device.rawValue] += 1
            return giveUp(placement, target, .deviceFull(exceeded, cid: cid), leftOutAs: .deviceFull)
        }
        devices[device].pending.add(bytes: bytes)
        let partition = Partition(of: cid).index
        sequences[partition] = sequences[partition].next
        journal.partitions.insert(partition)
        let message = reference(placement, target, seq: sequences[partition], device: device, terms)
        let offset = journal.writer.bytes.count
        let length = RecordCodec.append(message, to: &journal.writer)
        devices[device].pendingChanges += 1
        countReference(placement.content, Int(placement.number), 1)
        openAcceptance(placement).entries.append(
            ListAcceptance.Entry(
                target: Int32(truncatingIfNeeded: target), device: Int32(truncatingIfNeeded: device), seq: message.seq,
                acceptedAt: message.acceptedAt, expiresAt: message.expiresAt, absences: devices[device].absences,
                stub: message.stub, wasOnline: message.wasOnline, route: terms.traits.route,
                endedAs: devices[device].isBlocked ? .deviceBlocked : nil, offset: UInt32(offset),
                length: UInt32(length)))
        countBadge(terms, device)
        if devices[device].isBlocked {
            // Right behind it, so that whoever finds the one finds the other.
            append(.settled(cid: cid, seq: message.seq, state: .skipped, isTold: false), nil)
            countEnds(ofTask: task.taskID, Int(placement.number), .deviceBlocked, 1)
        }
        if placement.content.traits.kind == .revoke {
            placement.content.payload.withUnsafeBytes { takeBackRevoked($0, device) }
        }
    }

    private var isListening: Bool {
        unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes && !isDraining
    }

    private func reference(
        _ placement: ListPlacement, _ target: Int, seq: Seq, device: Int, _ terms: AcceptanceTerms
    ) -> AcceptedMessage {
        let task = placement.content.task
        let cid = placement.targets[target].cid
        let isBlocked = devices[device].isBlocked
        let isOnline = devices[device].machine.presence.isOnline && !isBlocked
        let stub: StubNeed
        let route = terms.traits.route
        if isBlocked {
            stub = .none
        } else if let wanted = terms.stub {
            stub = wanted
        } else if isOnline {
            stub = .none
        } else if task.isLiveOnly && !task.hasAlert {
            stub = .notWanted
        } else {
            stub = devices[device].machine.hasToken ? .due : .noToken
        }
        let request = RequestKey(task: task.taskID, cid: cid)
        return AcceptedMessage(
            cid: cid, seq: seq, messageID: request.messageID, taskID: task.taskID, acceptedAt: now,
            expiresAt: min(now + .milliseconds(task.timeToLive), terms.endsAt), stub: stub,
            wasOnline: isOnline && route != .wakeOnly, request: placement.origin == nil ? nil : request, alert: nil,
            payload: [], reference: placement.content.reference(route))
    }

    /// References of one placement that come one after the other are one effect of the batch.
    private mutating func openAcceptance(_ placement: ListPlacement) -> ListAcceptance {
        if let last = journal.effects.last, last.after == journal.accepts.count,
            case .listed(let acceptance) = last.effect, acceptance.placement === placement
        {
            return acceptance
        }
        let acceptance = ListAcceptance(placement)
        journal.add(.listed(acceptance))
        return acceptance
    }

    // MARK: - After the sync

    /// The references are on disk, in a batch that lies at `offset` of `segment`.
    mutating func listed(_ acceptance: ListAcceptance, segment: UInt32, offset: UInt32) {
        for entry in acceptance.entries {
            let location = RecordLocation(segment: segment, offset: offset + entry.offset, length: entry.length)
            listed(entry, acceptance.placement, location)
        }
    }

    private mutating func listed(
        _ entry: ListAcceptance.Entry, _ placement: ListPlacement, _ location: RecordLocation
    ) {
        let task = placement.content.task
        let (cid, place) = placement.targets[Int(entry.target)]
        let key = RequestKey(task: task.taskID, cid: cid)
        note(.accepted(Acceptance(entry, task, key.messageID)), of: cid)
        if let origin = placement.origin {
            var first = RequestAnswer(
                content: key.content, taskID: task.taskID, wasOnline: entry.wasOnline, acceptedAt: entry.acceptedAt)
            first.wasIgnored = entry.endedAs != nil
            requests.settle(key.key, first, acceptedAt: entry.acceptedAt, segment: location.segment)
            let receipt = PushReceipt(
                taskID: task.taskID, cid: cid, wasOnline: entry.wasOnline, isIgnored: entry.endedAs != nil)
            noteBatchAccepted(origin, place, receipt)
            for waiter in takeRepeats(key.key) { noteBatchAccepted(waiter.origin, waiter.place, receipt) }
        }
        if let reason = entry.endedAs { note(.ended(entry.seq, reason), of: cid) }
        let device = Int(entry.device)
        guard device >= 0, devices.isInUse(device), devices[device].cid == cid else { return }
        devices[device].pendingChanges -= 1
        devices[device].pending.remove(bytes: Int(task.payloadBytes))
        if entry.endedAs != nil { return }
        if receiptDesk.isActive {
            let name = MessageName(
                taskID: task.taskID, messageID: key.messageID, callback: placement.content.callback)
            nameForReceipts(entry.seq, name, isShared: true, device)
        }
        segmentDevices.add(device, segment: location.segment)
        // What was for everybody before it comes before it.
        catchUp(device)
        // The device may have gone and come back while the record was on its way to the disk.
        let wasAway = !entry.wasOnline || devices[device].absences != entry.absences
        let message = KeptMessage(
            entry, task, location: location, wasOffline: wasAway, taskSlot: taskSlots.retain(task.taskID.value))
        // Its record was on its way when its sender stopped it.
        if isStopped(task.taskID.value) { return end(message, .taskStopped, device) }
        if devices[device].connection != nil || task.hasAlert {
            atHand.append(AcceptedMessage(entry, placement.content, cid: cid))
            atHandCursor = 0
        }
        tell(device: device, .messageSynced(message))
        if !atHand.isEmpty { atHand.removeAll(keepingCapacity: true) }
    }

    /// The references are not on disk and will not be.
    mutating func listRefused(_ acceptance: ListAcceptance) {
        let placement = acceptance.placement
        for entry in acceptance.entries {
            let device = Int(entry.device)
            let target = Int(entry.target)
            countReference(placement.content, Int(placement.number), -1)
            if let reason = entry.endedAs {
                countEnds(ofTask: placement.content.task.taskID, Int(placement.number), reason, -1)
            }
            if device >= 0, devices.isInUse(device), devices[device].cid == placement.targets[target].cid {
                devices[device].pendingChanges -= 1
                devices[device].pending.remove(bytes: Int(placement.content.task.payloadBytes))
            }
            giveUp(placement, target, .busy(retryAfterSeconds: 5))
        }
    }

    /// Nothing came of the first try, nor of those that waited for it.
    mutating func giveUp(
        _ placement: ListPlacement, _ target: Int, _ error: APIError, leftOutAs reason: EndReason? = nil
    ) {
        let (cid, place) = placement.targets[target]
        guard let origin = placement.origin else {
            if let reason { leaveOut(placement, target, reason) }
            return
        }
        let key = RequestKey(task: placement.content.task.taskID, cid: cid)
        requests.abandon(key.key)
        noteBatchRefused(origin, place, error)
        for waiter in takeRepeats(key.key) { noteBatchRefused(waiter.origin, waiter.place, error) }
    }

    /// By the sender's filter it is not for this device: nothing is accepted.
    private mutating func ignore(_ placement: ListPlacement, _ target: Int) {
        let (cid, place) = placement.targets[target]
        guard let origin = placement.origin else { return leaveOut(placement, target, .filtered) }
        let task = placement.content.task.taskID
        let key = RequestKey(task: task, cid: cid)
        requests.abandon(key.key)
        let receipt = PushReceipt(taskID: task, cid: cid, wasOnline: false, isIgnored: true)
        noteBatchAccepted(origin, place, receipt)
        for waiter in takeRepeats(key.key) { noteBatchAccepted(waiter.origin, waiter.place, receipt) }
    }

    /// No call can be told why the device gets nothing of the push: its timeline and the task's counters are. It is accepted, and
    /// ends at once; nothing needs the device's own record.
    mutating func leaveOut(_ placement: ListPlacement, _ target: Int, _ reason: EndReason) {
        let task = placement.content.task
        let cid = placement.targets[target].cid
        let partition = Partition(of: cid).index
        sequences[partition] = sequences[partition].next
        journal.partitions.insert(partition)
        let seq = sequences[partition]
        // The number is not given out again.
        append(.settled(cid: cid, seq: seq, state: reason.state, isTold: false), nil)
        countReference(placement.content, Int(placement.number), 1)
        countEnds(ofTask: task.taskID, Int(placement.number), reason, 1)
        openAcceptance(placement).entries.append(
            ListAcceptance.Entry(
                target: Int32(truncatingIfNeeded: target), device: -1, seq: seq, acceptedAt: now,
                expiresAt: now + .milliseconds(task.timeToLive), absences: 0, stub: .none, wasOnline: false,
                route: .ownFirst, endedAs: reason, offset: 0, length: 0))
        lists.tags.leftOut.append(TagExpansion.Cursor.LeftOut(place: target, seq: seq, reason: reason))
    }

    private mutating func takeRepeats(_ key: Identifier128) -> [(origin: APIOrigin, place: Int32)] {
        lists.repeats.isEmpty ? [] : lists.repeats.removeValue(forKey: key) ?? []
    }

    // MARK: - Delivery

    /// Puts the contents of their tasks into messages that were read. nil, and the read goes on when they have come, where some
    /// are not in memory.
    mutating func withContents(
        _ messages: [AcceptedMessage?], _ ticket: UInt64, _ read: PendingRead
    ) -> [AcceptedMessage?]? {
        guard messages.contains(where: { $0?.reference != nil }) else { return messages }
        var messages = messages
        var missing: Set<Identifier128> = []
        for place in messages.indices {
            guard let task = messages[place]?.referredTask else { continue }
            if let content = lists.contents.find(task) {
                messages[place]?.take(content)
            } else {
                missing.insert(task)
            }
        }
        guard !missing.isEmpty else { return messages }
        // Without a device nobody waits for it any more.
        guard let cid = read.cid, let device = devices.index(of: cid) else { return messages }
        let app = devices.app(of: device)
        lists.held[ticket] = HeldRead(read: read, messages: messages, missing: missing)
        for task in missing { want(task, of: app, .read(ticket)) }
        return nil
    }

    /// `content` nil: the messages of the task cannot be read any more.
    mutating func complete(_ ticket: UInt64, _ task: Identifier128, _ content: TaskContent?) {
        guard var held = lists.held.removeValue(forKey: ticket) else { return }
        for place in held.messages.indices where held.messages[place]?.referredTask == task {
            if let content { held.messages[place]?.take(content) } else { held.messages[place] = nil }
        }
        held.missing.remove(task)
        guard held.missing.isEmpty else {
            lists.held[ticket] = held
            return
        }
        messagesRead(held.read, held.messages)
    }
}

extension PendingRead {
    fileprivate var cid: CID? {
        switch self {
        case .stream(let cid, _, _), .alert(let cid, _): cid
        case .control, .stopping, .revoking: nil
        }
    }
}

extension AcceptedMessage {
    /// The task whose content it refers to and does not hold yet.
    fileprivate var referredTask: Identifier128? { reference == nil ? nil : taskID.value }

    fileprivate mutating func take(_ content: TaskContent) {
        payload = content.payload
        alert = content.alert
        traits = content.traits
        reference = nil
    }

    fileprivate init(_ entry: ListAcceptance.Entry, _ content: TaskContent, cid: CID) {
        let request = RequestKey(task: content.task.taskID, cid: cid)
        self.init(
            cid: cid, seq: entry.seq, messageID: request.messageID, taskID: content.task.taskID,
            acceptedAt: entry.acceptedAt, expiresAt: entry.expiresAt, stub: entry.stub, wasOnline: entry.wasOnline,
            request: request, traits: content.traits, alert: content.alert, payload: content.payload)
    }
}

extension KeptMessage {
    fileprivate init(
        _ entry: ListAcceptance.Entry, _ task: ListTask, location: RecordLocation, wasOffline: Bool, taskSlot: UInt16
    ) {
        let stub: Stub =
            switch entry.stub {
            case .none: .none
            case .due: .due
            case .noToken: .noToken
            case .notWanted: .notWanted
            }
        self.init(
            seq: entry.seq, expiresAt: entry.expiresAt, location: location, payloadBytes: task.payloadBytes,
            isLiveOnly: task.isLiveOnly, hasOwnAlert: task.hasAlert, wasOffline: wasOffline, stub: stub,
            isReference: true, route: entry.route, taskSlot: taskSlot)
    }
}

extension Acceptance {
    fileprivate init(_ entry: ListAcceptance.Entry, _ task: ListTask, _ messageID: MessageID) {
        let stub: Stub =
            switch entry.stub {
            case .none: .none
            case .due: .due
            case .noToken: .noToken
            case .notWanted: .notWanted
            }
        self.init(
            seq: entry.seq, messageID: messageID, taskID: task.taskID, acceptedAt: entry.acceptedAt,
            expiresAt: entry.expiresAt, payloadBytes: task.payloadBytes, wasOnline: entry.wasOnline,
            hasOwnAlert: task.hasAlert, stub: stub)
    }
}
