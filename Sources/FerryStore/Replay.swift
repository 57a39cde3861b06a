internal import FerryCore

/// The state that the tables and the journal hold together, built at opening: first the kept rows of the tables, then the
/// journal's records in order. What a retirement that broke off has put into the tables already changes nothing when its
/// records come.
struct Replay {
    private struct Device {
        var cid: CID
        /// nil for a device that only its messages tell of.
        var record: DeviceRecord?
        /// Drops before this are counted in the row's gap.
        var asOf = JournalPosition.start
        var log = ReplayLog()
        var firstChangedSegment: UInt32?
        /// Of the record that says that the device, as it was before, is gone.
        var removedSegment: UInt32?
    }

    private let tables: any Tables
    private let requestWindow: Duration
    private let meta: TablesMeta
    private var devices: [Device] = []
    private var index: [CID: Int] = [:]
    private var highest: [Seq]
    private var requests: [(key: Identifier128, answer: RequestAnswer, segment: UInt32)] = []
    private var revoked: [[UInt8]: (expiresAt: Instant, segment: UInt32)] = [:]
    private var broadcasts: BroadcastReplay
    /// Of messages that are kept; nil: nobody asked for them.
    private var names: [MessageKey: RecoveredName]?
    private var control: [ControlName: (value: [UInt8]?, segment: UInt32)] = [:]
    /// Table rows of messages that have ended.
    private(set) var deadRows: [MessageKey] = []

    init(
        tables: any Tables, meta: TablesMeta, requestWindow: Duration, namesMessages: Bool
    ) throws(StoreFailure) {
        if namesMessages { names = [:] }
        self.tables = tables
        self.meta = meta
        self.requestWindow = requestWindow
        highest = meta.highest
        broadcasts = BroadcastReplay(at: meta.lastTime)
        try readTables()
    }

    // MARK: - Tables

    private mutating func readTables() throws(StoreFailure) {
        var last = -1
        try tables.scan(.queue) { key, value throws(StoreFailure) in
            guard let fields = AcceptedFields(body: value), QueueRow.isKey(key, fields.cid, fields.seq) else {
                throw StoreFailure(.corrupted, "A row of kept messages cannot be read")
            }
            // A device's rows lie together.
            if last < 0 || devices[last].cid != fields.cid { last = try device(fields.cid) }
            let none = RecordLocation(segment: 0, offset: 0, length: 0)
            devices[last].log.append(Self.message(fields, at: none, hasRow: true))
            names?[MessageKey(cid: fields.cid, seq: fields.seq)] = RecoveredName(fields)
            raise(fields.cid, fields.seq)
            return true
        }
        let oldest = meta.lastTime + (.zero - requestWindow)
        try tables.scan(.requests, from: RequestRow.key(since: oldest)) { key, value throws(StoreFailure) in
            guard let row = RequestRow(key: key, value: value) else {
                throw StoreFailure(.corrupted, "A row of request ids cannot be read")
            }
            requests.append((row.key, row.answer, 0))
            return true
        }
        try tables.scan(.revoked) { key, value throws(StoreFailure) in
            guard let expiresAt = RevokedRow.expiry(value) else {
                throw StoreFailure(.corrupted, "A row of revoked tokens cannot be read")
            }
            revoked[[UInt8](key)] = (expiresAt, 0)
            return true
        }
        try tables.scan(.control) { key, value throws(StoreFailure) in
            guard let name = ControlName(key) else {
                throw StoreFailure(.corrupted, "A control row cannot be read")
            }
            // Queues come behind all others.
            guard !name.isQueue else { return false }
            control[name] = ([UInt8](value), 0)
            return true
        }
        try tables.scan(.broadcasts) { key, value throws(StoreFailure) in
            switch BroadcastRow.read(key: key, value: value) {
            case .content(let broadcast):
                if let forgetAt = BroadcastRow.forgetAt(value), forgetAt <= meta.lastTime {
                    broadcasts.drop(broadcast.taskID.value)
                } else {
                    broadcasts.take(broadcast, segment: 0)
                }
            case .places(let placement): self.place(placement, segment: 0)
            case .stopped(let task): broadcasts.stop(task, segment: 0)
            case nil: throw StoreFailure(.corrupted, "A row of broadcasts cannot be read")
            }
            return true
        }
    }

    private mutating func device(_ cid: CID) throws(StoreFailure) -> Int {
        if let known = index[cid] { return known }
        var device = Device(cid: cid)
        if let row = try DeviceRow.read(cid, from: tables) { take(row, into: &device) }
        index[cid] = devices.count
        devices.append(device)
        return devices.count - 1
    }

    private mutating func take(_ row: DeviceRow, into device: inout Device) {
        device.record = row.record
        device.asOf = row.asOf
        raise(device.cid, row.record.acknowledged)
        if let gap = row.record.gap { raise(device.cid, gap.upTo) }
    }

    private static func message(
        _ fields: AcceptedFields, at location: RecordLocation, hasRow: Bool
    ) -> ReplayedMessage {
        ReplayedMessage(
            message: RecoveredMessage(
                seq: fields.seq, expiresAt: fields.expiresAt, isLiveOnly: fields.expiresAt == fields.acceptedAt,
                payloadBytes: fields.payloadBytes, hasOwnAlert: fields.hasAlert, route: fields.route, stub: fields.stub,
                location: location, isReference: fields.reference != nil,
                task: fields.reference == nil && !fields.taskID.mayHaveSeveralDevices ? nil : fields.taskID.value),
            accepted: fields.stub, hasRow: hasRow)
    }

    /// Whatever names a `seq` proves that it was given out.
    private mutating func raise(_ cid: CID, _ seq: Seq) {
        let partition = Partition(of: cid).index
        highest[partition] = max(highest[partition], seq)
    }

    // MARK: - Journal

    /// Takes the record whose body is `body`; `position` is that of its header.
    mutating func apply(_ body: UnsafeRawBufferPointer, at position: JournalPosition) throws(StoreFailure) {
        if let fields = AcceptedFields(body: body) { return try accept(fields, body.count, position) }
        guard let record = RecordCodec.decode(body) else {
            throw StoreFailure(
                .refused,
                "The journal holds a record of an unknown kind (segment \(position.segment), byte \(position.offset)): "
                    + "start the version of the gateway that wrote it, or a later one")
        }
        try apply(record, at: position)
    }

    private mutating func accept(
        _ fields: AcceptedFields, _ count: Int, _ position: JournalPosition
    ) throws(StoreFailure) {
        raise(fields.cid, fields.seq)
        if let request = fields.request {
            var answer = RequestAnswer(
                content: request.content, taskID: fields.taskID, wasOnline: fields.wasOnline,
                acceptedAt: fields.acceptedAt)
            // There is no other reason to be offline without any need of a stub.
            answer.wasIgnored = !fields.wasOnline && fields.stub == .none
            requests.append((request.key, answer, position.segment))
        }
        let place = try device(fields.cid)
        guard fields.seq > devices[place].record?.acknowledged ?? .zero else { return }
        let location = RecordLocation(
            segment: position.segment, offset: position.offset,
            length: UInt32(truncatingIfNeeded: RecordCodec.headerBytes + count))
        let (slot, isThere) = devices[place].log.search(fields.seq)
        if isThere {
            // Its row was written by a retirement that did not come to its end.
            devices[place].log[slot].message.location = location
        } else {
            devices[place].log.insert(Self.message(fields, at: location, hasRow: false), at: slot)
            names?[MessageKey(cid: fields.cid, seq: fields.seq)] = RecoveredName(fields)
        }
    }

    private mutating func apply(_ record: Record, at position: JournalPosition) throws(StoreFailure) {
        switch record {
        case .messageAccepted:
            return
        case .deviceRegistered(let registration):
            let place = try device(registration.cid)
            guard devices[place].record == nil else { return }
            raise(registration.cid, registration.acknowledged)
            devices[place].record = DeviceRecord(registration: registration)
            devices[place].firstChangedSegment = position.segment
        case .deviceRemoved(let cid, _):
            let place = try device(cid)
            end(place, upTo: Seq(.max))
            devices[place].record = nil
            devices[place].asOf = .start
            devices[place].firstChangedSegment = nil
            devices[place].removedSegment = position.segment
        case .pushTokenChanged(let cid, let token, _):
            try change(cid, position) { $0.token = token }
        case .deviceSeen(let cid, let at):
            try change(cid, position) { $0.seenAt = max($0.seenAt, at) }
        case .acknowledged(let cid, let upTo):
            raise(cid, upTo)
            let place = try device(cid)
            end(place, upTo: upTo)
            try change(cid, position) { record in
                record.acknowledged = max(record.acknowledged, upTo)
                if let gap = record.gap, gap.upTo <= upTo { record.gap = nil }
            }
        case .settled(let cid, let seq, let state, let isTold):
            raise(cid, seq)
            try settle(cid, seq, state, isTold: isTold, position)
        case .stubDue(let cid, let upTo):
            try change(cid, position) { $0.stubDueUpTo = max($0.stubDueUpTo, upTo) }
        // For want of a token nothing is settled: with the first token the stub is due.
        case .stubSettled(_, _, .noToken): return
        case .stubSettled(let cid, let upTo, _):
            try change(cid, position) { $0.stubSettledUpTo = max($0.stubSettledUpTo, upTo) }
        case .apiTokenRevoked(let digest, let expiresAt):
            revoked[digest] = (expiresAt, position.segment)
        case .broadcastAccepted(let broadcast):
            let answer = RequestAnswer(
                content: broadcast.request.content, taskID: broadcast.taskID, wasOnline: false,
                acceptedAt: broadcast.acceptedAt)
            requests.append((broadcast.request.key, answer, position.segment))
            broadcasts.take(broadcast, segment: position.segment)
        case .broadcastPlaced(let placement): place(placement, segment: position.segment)
        case .broadcastExpired: return
        case .broadcastStopped(let task): broadcasts.stop(task, segment: position.segment)
        case .controlRows(let rows):
            for row in rows { control[row.name] = (row.value, position.segment) }
        }
    }

    private mutating func place(_ placement: BroadcastPlacement, segment: UInt32) {
        broadcasts.take(placement, segment: segment)
        for (partition, seq) in placement.places {
            highest[partition.index] = max(highest[partition.index], seq)
        }
    }

    private mutating func change(
        _ cid: CID, _ position: JournalPosition, _ change: (inout DeviceRecord) -> Void
    ) throws(StoreFailure) {
        let place = try device(cid)
        guard var record = devices[place].record else { return }
        change(&record)
        guard record != devices[place].record else { return }
        devices[place].record = record
        if devices[place].firstChangedSegment == nil { devices[place].firstChangedSegment = position.segment }
    }

    private mutating func settle(
        _ cid: CID, _ seq: Seq, _ state: DeliveryState, isTold: Bool, _ position: JournalPosition
    ) throws(StoreFailure) {
        let place = try device(cid)
        let (slot, isThere) = devices[place].log.search(seq)
        var wasLiveOnly = false
        if isThere {
            wasLiveOnly = devices[place].log[slot].message.isLiveOnly
            end(place, slot)
        }
        // A drop that is not known as kept may be one whose row is already forgotten: it counts all the same.
        guard isTold, !wasLiveOnly, position >= devices[place].asOf else { return }
        try change(cid, position) { record in
            guard seq > record.acknowledged else { return }
            var gap = record.gap ?? Gap(upTo: .zero)
            gap.add(seq, state)
            if gap.count > 0 { record.gap = gap }
        }
    }

    private mutating func end(_ place: Int, upTo: Seq) {
        while let ended = devices[place].log.endFirst(upTo: upTo) { noteEnd(ended, place) }
    }

    private mutating func end(_ place: Int, _ slot: Int) {
        noteEnd(devices[place].log[slot], place)
        devices[place].log.end(at: slot)
    }

    private mutating func noteEnd(_ ended: ReplayedMessage, _ place: Int) {
        names?[MessageKey(cid: devices[place].cid, seq: ended.message.seq)] = nil
        if ended.hasRow { deadRows.append(MessageKey(cid: devices[place].cid, seq: ended.message.seq)) }
    }

    // MARK: - Result

    /// What the gateway starts from. `lastTime` is the journal's.
    mutating func finish(epoch: Epoch, lastTime: Instant) throws(StoreFailure) -> Recovery {
        let time = max(lastTime, meta.lastTime)
        broadcasts.settle(at: time)
        var known: [KnownDevice] = []
        let quietHolders = try readQuietDevices(&known)
        var recovery = Recovery(epoch: epoch, lastTime: time, highest: highest, firstSegment: meta.firstSegment)
        index = [:]
        recovery.devices.reserveCapacity(devices.count)
        for place in devices.indices {
            if let acknowledged = devices[place].record?.acknowledged { end(place, upTo: acknowledged) }
            if let record = devices[place].record {
                broadcasts.count(record)
                known.append(KnownDevice(record))
            }
            if let segment = devices[place].removedSegment {
                recovery.removed.append((devices[place].cid, segment))
            }
            guard let device = recovered(devices[place]) else { continue }
            recovery.devices.append(device)
            devices[place].log = ReplayLog()
        }
        recovery.known = known
        (recovery.broadcasts, recovery.registered) = broadcasts.finish()
        // In the same order at each start.
        recovery.controlRows = control.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }
            .compactMap { name, change in name.row(change.value).map { ($0, change.segment) } }
        control = [:]
        recovery.tokenHolders = quietHolders + devices.compactMap { $0.record.flatMap(TokenHolder.init) }
        let oldest = time + (.zero - requestWindow)
        recovery.requests = requests.filter { $0.answer.acceptedAt >= oldest }
        recovery.revokedTokens = revoked.filter { $0.value.expiresAt > time }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
            .map { ($0.key, $0.value.expiresAt, $0.value.segment) }
        return recovery
    }

    /// Devices that nothing else led to: those whose row holds a gap are taken in; of the others the tokens are answered.
    private mutating func readQuietDevices(_ known: inout [KnownDevice]) throws(StoreFailure) -> [TokenHolder] {
        var holders: [TokenHolder] = []
        try tables.scan(.devices) { key, value throws(StoreFailure) in
            guard let row = DeviceRow(key: key, value: value) else {
                throw StoreFailure(.corrupted, "A row of the devices cannot be read")
            }
            guard index[row.record.cid] == nil else { return true }
            guard row.record.gap != nil else {
                if let holder = TokenHolder(row.record) { holders.append(holder) }
                known.append(KnownDevice(row.record))
                broadcasts.count(row.record)
                return true
            }
            var device = Device(cid: row.record.cid)
            take(row, into: &device)
            index[device.cid] = devices.count
            devices.append(device)
            return true
        }
        return holders
    }

    private func recovered(_ device: Device) -> RecoveredDevice? {
        guard let record = device.record else { return nil }
        let isWorthTelling = !device.log.isEmpty || record.gap != nil || device.firstChangedSegment != nil
        guard isWorthTelling else { return nil }
        let kept = device.log.kept.map { kept in
            var message = kept.message
            if message.seq <= record.stubSettledUpTo {
                message.stub = nil
            } else if kept.accepted == .none, message.seq <= record.stubDueUpTo {
                message.stub = .due
            }
            return message
        }
        var recovered = RecoveredDevice(record: record, kept: kept, firstChangedSegment: device.firstChangedSegment)
        if let names {
            recovered.names = kept.compactMap { names[MessageKey(cid: device.cid, seq: $0.seq)] }
        }
        return recovered
    }
}
