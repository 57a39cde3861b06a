internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryReceipts
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// One push's way: from where it came in to its device's owner, there to the journal, and once it is on disk into the
/// device's stream and back as an answer. On the way it is numbers and bytes in buffers that are used again: nothing is made
/// for one push alone.
extension Shard {
    // MARK: - Where it came in

    mutating func order(
        _ push: SinglePush, _ app: App, _ origin: APIOrigin, place: Int32 = -1, names: PushNames = .own
    ) {
        let order = PushOrder(
            app: app.number, cid: push.cid, key: Self.requestKey(app.id, push), origin: origin, ttl: push.ttl,
            names: names, place: place)
        push.payload.withUnsafeBytes { payload in
            orders[environment.owner(of: push.cid)].append(
                order, requestID: push.requestID, traits: push.traits, payload: payload, alert: push.alert)
        }
    }

    /// The digests of (app, request id, cid) and of the content. The key's low bits are the device's partition, so that after
    /// a restart each shard takes the keys of its own devices.
    static func requestKey(_ app: AppID, _ push: SinglePush) -> RequestKey {
        var name = ByteWriter()
        name.bytes.reserveCapacity(160)
        name.string(app.text.utf8)
        name.string(push.requestID.utf8)
        name.identifier(push.cid.value)
        var key = name.bytes.withUnsafeBytes { Cryptography.sha256Half($0) }
        let partition = UInt64(Partition(of: push.cid).index)
        key.low = key.low / UInt64(Limits.partitions) * UInt64(Limits.partitions) + partition
        let content = push.contentDigestInput.withUnsafeBytes { Cryptography.sha256Half($0) }
        return RequestKey(key: key, content: content)
    }

    /// What this shard ordered of itself.
    mutating func takeOwnOrders() {
        guard !orders[index].isEmpty else { return }
        var own = PushOrders()
        swap(&own, &orders[index])
        take(own)
        own.removeAll()
        swap(&own, &orders[index])
    }

    /// What this shard ordered of others goes with its mail.
    mutating func mailOrders() {
        for shard in orders.indices where shard != index && !orders[shard].isEmpty {
            mail[shard].append(.order(.pushes(orders[shard])))
            orders[shard] = PushOrders()
        }
    }

    // MARK: - The owner

    mutating func take(_ pushes: PushOrders) {
        pushes.withContents { contents in
            for order in pushes.orders { take(order, contents) }
        }
    }

    private mutating func take(_ order: PushOrder, _ contents: UnsafeRawBufferPointer) {
        switch requests.begin(order.key.key, content: order.key.content) {
        case .answered(let first):
            guard first.content == order.key.content else { return refuseRepeat(order, contents) }
            answer(
                order,
                PushReceipt(
                    taskID: first.taskID, cid: order.cid, wasOnline: first.wasOnline, isIgnored: first.wasIgnored))
        case .inFlight(let content):
            guard content == order.key.content else { return refuseRepeat(order, contents) }
            if let shortage = shortage(for: order) { return refuse(order, refusal(shortage)) }
            waitingBytes += order.weight
            requestWaiters[order.key.key, default: []].append(order)
        case .unknown:
            if let shortage = shortage(for: order) { return giveUp(order, refusal(shortage)) }
            if let device = devices.index(of: order.cid) {
                if order.kind == .revoke, looksFirst(order, contents, device) { return }
                accept(order, PushOrders.content(of: order, in: contents), device: device)
            } else {
                waitingBytes += order.weight
                wait(for: order.cid, .push(PushOrders.alone(order, in: contents)))
            }
        }
    }

    private mutating func refuseRepeat(_ order: PushOrder, _ contents: UnsafeRawBufferPointer) {
        let requestID = PushOrders.content(of: order, in: contents).requestID
        refuse(order, .requestIDReused(order.link?.message.hex ?? String(decoding: requestID, as: UTF8.self)))
    }

    /// The device is known, or known not to exist: the message gets its place in the device's stream and goes to the journal.
    mutating func accept(_ order: PushOrder, _ content: PushContent, device: Int?) {
        guard let device, devices.appNumber(of: device) == Int(order.app), !devices[device].isLeaving else {
            return giveUp(order, .targetInvalid(order.cid.description))
        }
        guard unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes, !isDraining else {
            return giveUp(order, refusal(.sync))
        }
        guard order.hasTraits else { return write(order, content, device) }
        switch terms(of: order, content, device) {
        case .refused(let error, _): giveUp(order, error)
        case .ignored: ignore(order)
        case .taken(let terms):
            var order = order
            order.route = terms.traits.route
            terms.traits.encoded.withUnsafeBytes { traits in
                let content = PushContent(
                    requestID: content.requestID, traits: traits, payload: content.payload, alert: content.alert)
                write(order, content, device, terms)
            }
        }
    }

    private mutating func write(
        _ order: PushOrder, _ content: PushContent, _ device: Int, _ terms: AcceptanceTerms? = nil
    ) {
        if let error = takeRoom(for: order, device: device) { return giveUp(order, error) }
        let partition = Partition(of: order.cid).index
        let seq = sequences[partition].next
        sequences[partition] = seq
        journal.partitions.insert(partition)
        let fields = fields(of: order, content, seq: seq, device: device, terms)
        let offset = journal.writer.bytes.count
        let length = RecordCodec.append(fields, to: &journal.writer)
        devices[device].pendingChanges += 1
        countAccepted(Int(order.app))
        journal.accepts.append(
            PendingAccept(
                order: order, seq: seq, messageID: fields.messageID, taskID: fields.taskID,
                acceptedAt: fields.acceptedAt, expiresAt: fields.expiresAt, device: Int32(truncatingIfNeeded: device),
                absences: devices[device].absences, stub: fields.stub, wasOnline: fields.wasOnline,
                isIgnored: devices[device].isBlocked, offset: UInt32(offset), length: UInt32(length)))
        if let terms { countBadge(terms, device) }
        if devices[device].isBlocked {
            // Right behind it, so that whoever finds the one finds the other.
            append(.settled(cid: order.cid, seq: seq, state: .skipped, isTold: false), nil)
            countEnd(.deviceBlocked, device)
        }
        if order.kind == .revoke { takeBackRevoked(content.payload, device) }
    }

    private mutating func fields(
        of order: PushOrder, _ content: PushContent, seq: Seq, device: Int, _ terms: AcceptanceTerms?
    ) -> AcceptedFields {
        var expiresAt: Instant =
            switch order.ttl {
            case .liveOnly: now
            case .milliseconds(let milliseconds): now + .milliseconds(milliseconds)
            }
        let isBlocked = devices[device].isBlocked
        let isOnline = devices[device].machine.presence.isOnline && !isBlocked
        let stub: StubNeed
        if let terms { expiresAt = min(expiresAt, terms.endsAt) }
        // Offline and without any need is nothing but blocked: see `RequestAnswer.wasIgnored`.
        if isBlocked {
            stub = .none
        } else if let wanted = terms?.stub {
            stub = wanted
        } else if isOnline {
            stub = .none
        } else if order.ttl == .liveOnly && content.alert == nil {
            stub = .notWanted
        } else {
            stub = devices[device].machine.hasToken ? .due : .noToken
        }
        return AcceptedFields(
            cid: order.cid, seq: seq, messageID: MessageID(order.link?.message ?? randomIdentifier()),
            taskID: task(of: order),
            acceptedAt: now, expiresAt: expiresAt, stub: stub, wasOnline: isOnline && order.route != .wakeOnly,
            request: order.key,
            traits: content.traits, alert: content.alert, payload: content.payload)
    }

    private mutating func task(of order: PushOrder) -> TaskID {
        let name: Identifier128
        switch order.names {
        case .task(let task): return task
        case .link(let names): name = names.task
        case .own: name = randomIdentifier()
        }
        return TaskID(name.ending(in: Partition(of: order.cid).index), monthDay: now.monthDay, kind: .single)
    }

    mutating func randomIdentifier() -> Identifier128 {
        Identifier128(high: random.next(), low: random.next())
    }

    // MARK: - After the sync

    /// The message is on disk, in `records`.
    mutating func accepted(_ pending: PendingAccept, _ records: [UInt8], _ location: RecordLocation) {
        let order = pending.order
        note(.accepted(Acceptance(pending)), of: order.cid)
        var first = RequestAnswer(
            content: order.key.content, taskID: pending.taskID, wasOnline: pending.wasOnline,
            acceptedAt: pending.acceptedAt)
        first.wasIgnored = pending.isIgnored
        requests.settle(order.key.key, first, acceptedAt: pending.acceptedAt, segment: location.segment)
        answer(order, pending.receipt)
        for waiter in takeRequestWaiters(order) { answer(waiter, pending.receipt) }
        let device = Int(pending.device)
        guard holds(device, order.cid) else { return giveBackRoom(Int(order.payloadBytes)) }
        devices[device].pendingChanges -= 1
        devices[device].pending.remove(bytes: Int(order.payloadBytes))
        if pending.isIgnored {
            note(.ended(pending.seq, .deviceBlocked), device)
            return giveBackRoom(Int(order.payloadBytes))
        }
        segmentDevices.add(device, segment: location.segment)
        if case .task(let task) = order.names { noteOfSeveral(task.value, order.cid, pending.seq) }
        if receiptDesk.isActive {
            let callback = order.hasTraits ? Self.message(pending, records)?.traits.callback : nil
            let name = MessageName(
                taskID: pending.taskID, messageID: pending.messageID, callback: Array((callback ?? "").utf8))
            nameForReceipts(pending.seq, name, isShared: false, device)
        }
        // What was for everybody before it comes before it.
        catchUp(device)
        // The device may have gone and come back while the record was on its way to the disk.
        let wasAway = !pending.wasOnline || devices[device].absences != pending.absences
        let message = KeptMessage(pending, location: location, wasOffline: wasAway)
        if deliverAtOnce(message, pending, records, device) { return }
        // Only who may be sent to at once, or has an alert that may be, is worth a copy of the content.
        if devices[device].connection != nil || order.hasAlert, let content = Self.message(pending, records) {
            atHand.append(content)
            atHandCursor = 0
        }
        tell(device: device, .messageSynced(message))
        if !atHand.isEmpty { atHand.removeAll(keepingCapacity: true) }
    }

    private static func message(_ pending: PendingAccept, _ records: [UInt8]) -> AcceptedMessage? {
        records.withUnsafeBytes { bytes in
            let start = Int(pending.offset) + RecordCodec.headerBytes
            let end = Int(pending.offset) + Int(pending.length)
            return RecordCodec.message(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        }
    }

    private func holds(_ device: Int, _ cid: CID) -> Bool { devices.isInUse(device) && devices[device].cid == cid }

    /// The message is not on disk and will not be.
    mutating func refused(_ pending: PendingAccept) {
        let bytes = Int(pending.order.payloadBytes)
        countAccepted(Int(pending.order.app), -1)
        if pending.isIgnored { book.end(Int(pending.order.app), .deviceBlocked, count: -1) }
        giveBackRoom(bytes)
        let device = Int(pending.device)
        if holds(device, pending.order.cid) {
            devices[device].pendingChanges -= 1
            devices[device].pending.remove(bytes: bytes)
        }
        giveUp(pending.order, .busy(retryAfterSeconds: 5))
    }

    /// By its own wish it is not for this device: nothing is accepted, and a repeat is judged anew.
    private mutating func ignore(_ order: PushOrder) {
        requests.abandon(order.key.key)
        let receipt = PushReceipt(taskID: task(of: order), cid: order.cid, wasOnline: false, isIgnored: true)
        answer(order, receipt)
        for waiter in takeRequestWaiters(order) { answer(waiter, receipt) }
    }

    /// Nothing came of the first try, nor of those that waited for it.
    mutating func giveUp(_ order: PushOrder, _ error: APIError) {
        requests.abandon(order.key.key)
        refuse(order, error)
        for waiter in takeRequestWaiters(order) { refuse(waiter, error) }
    }

    private mutating func takeRequestWaiters(_ order: PushOrder) -> [PushOrder] {
        guard !requestWaiters.isEmpty, let waiters = requestWaiters.removeValue(forKey: order.key.key) else {
            return []
        }
        for waiter in waiters { waitingBytes -= waiter.weight }
        return waiters
    }

    // MARK: - The answer

    private mutating func answer(_ order: PushOrder, _ receipt: PushReceipt) {
        if order.link != nil {
            noteLinkAccepted(order.origin)
        } else if order.place >= 0 {
            noteBatchAccepted(order.origin, order.place, receipt)
        } else if receipt.isIgnored {
            settle(order.origin, .success(.pushed(task: receipt.taskID, cid: receipt.cid, .ignored)))
        } else if order.origin.shard == index {
            fill(order.origin, receipt)
        } else {
            receipts[order.origin.shard].append((order.origin, receipt))
        }
    }

    private mutating func refuse(_ order: PushOrder, _ error: APIError) {
        if order.link != nil {
            noteLinkRefused(order.origin, error)
        } else if order.place >= 0 {
            noteBatchRefused(order.origin, order.place, error)
        } else {
            post(.reply(.refused(order.origin, error)), to: order.origin.shard)
        }
    }

    /// At the end of the turn.
    mutating func sendReceipts() {
        for shard in receipts.indices where !receipts[shard].isEmpty {
            mail[shard].append(.reply(.accepted(receipts[shard])))
            receipts[shard] = []
        }
    }
}

extension KeptMessage {
    fileprivate init(_ pending: PendingAccept, location: RecordLocation, wasOffline: Bool) {
        let stub: Stub =
            switch pending.stub {
            case .none: .none
            case .due: .due
            case .noToken: .noToken
            case .notWanted: .notWanted
            }
        self.init(
            seq: pending.seq, expiresAt: pending.expiresAt, location: location,
            payloadBytes: pending.order.payloadBytes, isLiveOnly: pending.expiresAt == pending.acceptedAt,
            hasOwnAlert: pending.order.hasAlert, wasOffline: wasOffline, stub: stub, route: pending.order.route)
    }
}

extension Acceptance {
    fileprivate init(_ pending: PendingAccept) {
        let stub: Stub =
            switch pending.stub {
            case .none: .none
            case .due: .due
            case .noToken: .noToken
            case .notWanted: .notWanted
            }
        self.init(
            seq: pending.seq, messageID: pending.messageID, taskID: pending.taskID, acceptedAt: pending.acceptedAt,
            expiresAt: pending.expiresAt, payloadBytes: pending.order.payloadBytes, wasOnline: pending.wasOnline,
            hasOwnAlert: pending.order.hasAlert, stub: stub)
    }
}
