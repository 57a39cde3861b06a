internal import FerryCore
internal import FerryStore
internal import Synchronization

/// A shard as the store sees one: it keeps the naive model of what it had written, answers the store's questions from
/// it, and says what a recovery must find.
final class ModelShard {
    struct Kept: Equatable {
        var message: AcceptedMessage
        var location: RecordLocation?
    }

    struct Device: Equatable {
        var record: DeviceRecord
        var kept: [Kept] = []
        /// Segments with committed changes of the record that the tables do not have.
        var changed: Set<UInt32> = []
    }

    struct State: Equatable {
        var devices: [CID: Device] = [:]
        var highest: [Int: Seq] = [:]
        var requests: [Identifier128: RequestAnswer] = [:]
        var revoked: [[UInt8]: Instant] = [:]
        /// By task.
        var broadcasts: [Identifier128: AcceptedBroadcast] = [:]
        var places: [Identifier128: [Int: Seq]] = [:]
        /// Tasks of broadcasts that their senders stopped.
        var stopped: Set<Identifier128> = []
    }

    let shard: Int
    private(set) var state = State()
    private var requestSegments: [Identifier128: UInt32] = [:]
    private var revokedSegments: [[UInt8]: UInt32] = [:]
    private var broadcastSegments: [Identifier128: UInt32] = [:]
    private var placeSegments: [Identifier128: UInt32] = [:]
    private var stopSegments: [Identifier128: UInt32] = [:]
    /// Devices whose removal is in the journal.
    private var removedSegments: [CID: UInt32] = [:]
    private var pending: [UInt64: [Record]] = [:]
    /// The state before each append that is not answered yet, in order.
    private(set) var unanswered: [(ticket: UInt64, before: State)] = []
    private var nextTicket: UInt64 = 1
    private var lastRefused: UInt64 = 0
    private(set) var retired: [UInt32] = []
    private(set) var answers: [StoreEvent] = []
    /// Kept back answers to `.segmentRetiring`, when a test wants to be asked.
    var holdsRemains = false
    private(set) var held: [UInt32] = []
    /// Segments up to here are in the tables, as far as this shard was told.
    private var firstSegment: UInt32 = 1
    private var remainsGiven: UInt32 = 0

    private let inbox = Inbox()
    private let store: any MessageStore

    /// Holds events until the shard's turn comes.
    final class Inbox: Sendable {
        private let events = Mutex<[StoreEvent]>([])
        func post(_ batch: [StoreEvent]) { events.withLock { $0.append(contentsOf: batch) } }
        func drain() -> [StoreEvent] {
            events.withLock { events in
                defer { events = [] }
                return events
            }
        }
    }

    init(_ store: any MessageStore, shard: Int = 0) {
        self.store = store
        self.shard = shard
    }

    var sink: @Sendable ([StoreEvent]) -> Void {
        let inbox = inbox
        return { inbox.post($0) }
    }

    // MARK: - Doing

    func append(_ records: [Record]) {
        let ticket = nextTicket
        nextTicket += 1
        var writer = ByteWriter()
        var highest: [(partition: Partition, seq: Seq)] = []
        unanswered.append((ticket, state))
        for record in records {
            RecordCodec.append(record, to: &writer)
            if case .messageAccepted(let message) = record {
                highest.append((Partition(of: message.cid), message.seq))
            }
            if case .deviceRegistered(let registration) = record {
                highest.append((Partition(of: registration.cid), registration.acknowledged))
            }
            if case .broadcastPlaced(let placement) = record { highest += placement.places }
            apply(record)
        }
        pending[ticket] = records
        store.submit(
            [.append(ticket: ticket, records: writer.bytes, highest: highest, knows: lastRefused)], from: shard)
        endedBy[ticket] = ended
        ended = []
    }

    /// Rows of ended messages that are, or may soon be, in the tables; forgotten when the end is on disk.
    private var ended: [(cid: CID, seq: Seq)] = []
    private var endedBy: [UInt64: [(cid: CID, seq: Seq)]] = [:]

    func read(_ references: [MessageReference], ticket: UInt64 = 0) {
        store.submit([.read(ticket: ticket, references)], from: shard)
    }

    func load(_ cid: CID) { store.submit([.load(cid)], from: shard) }

    /// References to everything kept whose place is known.
    var references: [MessageReference] {
        state.devices.values.sorted { $0.record.cid < $1.record.cid }.flatMap { device in
            device.kept.compactMap { kept in
                kept.location.map {
                    MessageReference(cid: device.record.cid, seq: kept.message.seq, location: $0)
                }
            }
        }
    }

    private func apply(_ record: Record) {
        switch record {
        case .deviceRegistered(let registration):
            if state.devices[registration.cid] == nil {
                state.devices[registration.cid] = Device(record: DeviceRecord(registration: registration))
            }
        case .deviceRemoved(let cid, _):
            end(cid) { _ in true }
            state.devices[cid] = nil
        case .pushTokenChanged(let cid, let token, _): state.devices[cid]?.record.token = token
        case .deviceSeen(let cid, let at):
            if let seen = state.devices[cid]?.record.seenAt { state.devices[cid]?.record.seenAt = max(seen, at) }
        case .messageAccepted(let message):
            state.devices[message.cid]?.kept.append(Kept(message: message))
            state.highest[Partition(of: message.cid).index] = message.seq
            if let request = message.request {
                var answer = RequestAnswer(
                    content: request.content, taskID: message.taskID, wasOnline: message.wasOnline,
                    acceptedAt: message.acceptedAt)
                answer.wasIgnored = !message.wasOnline && message.stub == .none
                state.requests[request.key] = answer
            }
        case .acknowledged(let cid, let upTo):
            end(cid) { $0.message.seq <= upTo }
            state.devices[cid]?.record.acknowledged = upTo
            if let gap = state.devices[cid]?.record.gap, gap.upTo <= upTo { state.devices[cid]?.record.gap = nil }
        case .settled(let cid, let seq, let outcome, _):
            guard let kept = state.devices[cid]?.kept.first(where: { $0.message.seq == seq }) else { return }
            end(cid) { $0.message.seq == seq }
            if !kept.message.isLiveOnly, outcome == .expired || outcome == .overflowed {
                var gap = state.devices[cid]?.record.gap ?? Gap(upTo: seq)
                gap.add(seq, outcome)
                state.devices[cid]?.record.gap = gap
            }
        case .stubDue(let cid, let upTo):
            if let before = state.devices[cid]?.record.stubDueUpTo {
                state.devices[cid]?.record.stubDueUpTo = max(before, upTo)
            }
        case .stubSettled(_, _, .noToken): break
        case .stubSettled(let cid, let upTo, _):
            if let before = state.devices[cid]?.record.stubSettledUpTo {
                state.devices[cid]?.record.stubSettledUpTo = max(before, upTo)
            }
        case .apiTokenRevoked(let digest, let expiresAt): state.revoked[digest] = expiresAt
        case .broadcastAccepted(let broadcast):
            state.broadcasts[broadcast.taskID.value] = broadcast
            state.requests[broadcast.request.key] = RequestAnswer(
                content: broadcast.request.content, taskID: broadcast.taskID, wasOnline: false,
                acceptedAt: broadcast.acceptedAt)
        case .broadcastPlaced(let placement):
            for (partition, seq) in placement.places {
                state.places[placement.task, default: [:]][partition.index] = seq
                state.highest[partition.index] = seq
            }
        case .broadcastExpired, .controlRows: break
        case .broadcastStopped(let task): state.stopped.insert(task)
        }
    }

    private func end(_ cid: CID, _ isEnded: (Kept) -> Bool) {
        guard let kept = state.devices[cid]?.kept else { return }
        for gone in kept where isEnded(gone) {
            if let location = gone.location, location.segment <= max(remainsGiven, firstSegment - 1) {
                ended.append((cid, gone.message.seq))
            }
        }
        state.devices[cid]?.kept.removeAll(where: isEnded)
    }

    // MARK: - Hearing

    /// Takes what the store said since last time; answers whether there was anything.
    @discardableResult
    func pump() -> Bool {
        let events = inbox.drain()
        for event in events {
            switch event {
            case .committed(let ticket, let segment, let offset): commit(ticket, segment, offset)
            case .refused(let ticket, _):
                lastRefused = ticket
                // As if it had never been asked for: what came after it is applied anew.
                guard let index = unanswered.firstIndex(where: { $0.ticket == ticket }) else { continue }
                state = unanswered[index].before
                unanswered.remove(at: index)
                pending[ticket] = nil
                for later in unanswered.indices.dropFirst(index) {
                    unanswered[later].before = state
                    for record in pending[unanswered[later].ticket] ?? [] { apply(record) }
                }
                endedBy[ticket] = nil
                ended = []
            case .segmentRetiring(let segment):
                if holdsRemains { held.append(segment) } else { giveRemains(segment) }
            case .segmentRetired(let segment):
                retired.append(segment)
                firstSegment = segment + 1
            case .messages, .device, .controlRows, .readFailed, .loadFailed, .roomChanged: break
            }
            answers.append(event)
        }
        return !events.isEmpty
    }

    func takeAnswers() -> [StoreEvent] {
        defer { answers = [] }
        return answers
    }

    private func commit(_ ticket: UInt64, _ segment: UInt32, _ offset: UInt32) {
        unanswered.removeAll { $0.ticket == ticket }
        if let rows = endedBy.removeValue(forKey: ticket), !rows.isEmpty {
            store.submit([.forget(rows)], from: shard)
        }
        var place = offset
        for record in pending.removeValue(forKey: ticket) ?? [] {
            var writer = ByteWriter()
            let length = UInt32(RecordCodec.append(record, to: &writer))
            note(record, RecordLocation(segment: segment, offset: place, length: length))
            place += length
        }
    }

    private func note(_ record: Record, _ location: RecordLocation) {
        switch record {
        case .messageAccepted(let message):
            if let index = state.devices[message.cid]?.kept.firstIndex(where: { $0.message.seq == message.seq }) {
                state.devices[message.cid]?.kept[index].location = location
            }
            if let request = message.request { requestSegments[request.key] = location.segment }
        case .apiTokenRevoked(let digest, _): revokedSegments[digest] = location.segment
        case .broadcastAccepted(let broadcast):
            broadcastSegments[broadcast.taskID.value] = location.segment
            requestSegments[broadcast.request.key] = location.segment
        case .broadcastPlaced(let placement): placeSegments[placement.task] = location.segment
        case .broadcastExpired, .controlRows: break
        case .broadcastStopped(let task): stopSegments[task] = location.segment
        case .deviceRemoved(let cid, _): removedSegments[cid] = location.segment
        case .deviceRegistered(let registration):
            state.devices[registration.cid]?.changed.insert(location.segment)
        case .pushTokenChanged(let cid, _, _), .deviceSeen(let cid, _), .acknowledged(let cid, _),
            .settled(let cid, _, _, _), .stubDue(let cid, _), .stubSettled(let cid, _, _):
            state.devices[cid]?.changed.insert(location.segment)
        }
    }

    /// Answers in two parts, as a shard with much to say does.
    func giveRemains(_ segment: UInt32) {
        held.removeAll { $0 == segment }
        remainsGiven = segment
        var remains = SegmentRemains()
        for cid in state.devices.keys.sorted() {
            guard let device = state.devices[cid] else { continue }
            if device.changed.contains(where: { $0 <= segment }) {
                remains.devices.append(device.record)
                state.devices[cid]?.changed = device.changed.filter { $0 > segment }
            }
            for kept in device.kept {
                guard let location = kept.location, location.segment == segment else { continue }
                remains.kept.append(MessageReference(cid: cid, seq: kept.message.seq, location: location))
            }
        }
        for (cid, place) in removedSegments where place <= segment {
            removedSegments[cid] = nil
            if let device = state.devices[cid] {
                remains.devices.append(device.record)
            } else {
                remains.removed.append(cid)
            }
        }
        for (key, answer) in state.requests where requestSegments[key] == segment {
            remains.requests.append((key, answer))
        }
        for (digest, expiresAt) in state.revoked where revokedSegments[digest] == segment {
            remains.revokedTokens.append((digest, expiresAt))
        }
        for (task, broadcast) in state.broadcasts where broadcastSegments[task] == segment {
            remains.broadcasts.append(RetainedBroadcast(broadcast, forgetAt: .distantFuture))
        }
        for (task, places) in state.places where placeSegments[task] == segment {
            let places = places.sorted { $0.key < $1.key }.map { (partition: Partition(index: $0.key), seq: $0.value) }
            remains.placements.append(
                RetainedPlacement(BroadcastPlacement(task: task, places: places), forgetAt: .distantFuture))
        }
        for task in state.stopped where stopSegments[task] == segment {
            remains.stops.append((task, .distantFuture))
        }
        store.submit([.remains(segment: segment, remains, isLast: false)], from: shard)
        store.submit([.remains(segment: segment, SegmentRemains(), isLast: true)], from: shard)
    }

    // MARK: - Restart

    /// Goes on from what a store found, as a gateway does.
    func adopt(_ recovery: Recovery, messages: [AcceptedMessage]) {
        firstSegment = recovery.firstSegment
        let known = Dictionary(grouping: messages, by: \.cid)
        for device in recovery.devices {
            let kept = device.kept.compactMap { found in
                known[device.record.cid]?.first { $0.seq == found.seq }
                    .map { Kept(message: $0, location: found.location) }
            }
            state.devices[device.record.cid] = Device(
                record: device.record, kept: kept,
                changed: device.firstChangedSegment.map { [$0] } ?? [])
        }
        for (cid, segment) in recovery.removed { removedSegments[cid] = segment }
        for (index, seq) in recovery.highest.enumerated() where seq > .zero { state.highest[index] = seq }
        for (key, answer, segment) in recovery.requests {
            state.requests[key] = answer
            requestSegments[key] = segment
        }
        for found in recovery.broadcasts {
            let task = found.broadcast.taskID.value
            state.broadcasts[task] = found.broadcast
            broadcastSegments[task] = found.contentSegment
            if let segment = found.stopSegment {
                state.stopped.insert(task)
                stopSegments[task] = segment
            }
            for (index, seq) in found.places.enumerated() where seq > .zero {
                state.places[task, default: [:]][index] = seq
                placeSegments[task] = found.placeSegments[index]
            }
        }
        for (digest, expiresAt, segment) in recovery.revokedTokens {
            state.revoked[digest] = expiresAt
            revokedSegments[digest] = segment
        }
    }

    /// Devices that a gateway has rows of, but that a recovery has no reason to tell of.
    func adoptQuiet(_ devices: [DeviceRecord]) {
        for record in devices where state.devices[record.cid] == nil {
            state.devices[record.cid] = Device(record: record)
        }
    }
}
