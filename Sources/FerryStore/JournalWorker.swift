internal import FerryCore
internal import FerryIO
internal import Synchronization

/// What the journal's thread is asked.
enum JournalItem: Sendable {
    case request(StoreRequest, shard: Int)
    /// The tables have taken over this segment.
    case retired(UInt32)
    case stop
}

/// The journal's thread: takes what was submitted since the last sync, makes it durable in one, and answers.
struct JournalWorker {
    private var journal: Journal
    /// Of what is synced.
    private var highest: [Seq]
    private var room: DiskRoom
    private let options: StoreOptions
    private let files: SegmentFiles
    private let inbox: Mailbox<JournalItem>
    private let tables: Mailbox<TablesItem>
    private let sinks: [@Sendable ([StoreEvent]) -> Void]
    private let closing: ClosingFlag

    /// Items that were drained, and how many of them are done.
    private var queue: [JournalItem] = []
    private var next = 0
    private var incoming: [JournalItem] = []
    /// A batch was refused for want of room.
    private var wasFull = false
    /// The batch must be committed once more.
    private var isStuck = false
    private var isStopping = false

    /// Each shard's last refused append, and why.
    private var refusals: [(ticket: UInt64, failure: StoreFailure)?]
    private var retiring: UInt32?
    private var batch: [Append] = []
    private var batchBytes = 0
    /// What waits for the batch, each with the count of appends that were asked for before it.
    private var followers: [(after: Int, shard: Int, request: StoreRequest)] = []

    private struct Append {
        var shard: Int
        var ticket: UInt64
        var records: [UInt8]
        var highest: [(partition: Partition, seq: Seq)]
    }

    init(
        journal: Journal, highest: [Seq], room: DiskRoom, options: StoreOptions, files: SegmentFiles,
        inbox: Mailbox<JournalItem>, tables: Mailbox<TablesItem>, sinks: [@Sendable ([StoreEvent]) -> Void],
        closing: ClosingFlag
    ) {
        self.journal = journal
        self.highest = highest
        self.room = room
        self.options = options
        self.files = files
        self.inbox = inbox
        self.tables = tables
        self.sinks = sinks
        self.closing = closing
        refusals = Array(repeating: nil, count: sinks.count)
    }

    /// What a step came to.
    enum Progress {
        case idle
        /// The disk does not let anybody say whether the last batch is on it; step again after a pause.
        case stuck
        case stopped
    }

    /// Works until it is told to stop.
    mutating func run() throws(SystemError) {
        defer { tables.post(.stop) }
        let poller = try Poller()
        try poller.add(inbox.descriptor, .readable, token: 0)
        var pause = Self.firstPause
        while true {
            switch step() {
            case .idle:
                pause = Self.firstPause
                _ = poller.wait(milliseconds: room.isShort ? DiskRoom.pause : -1)
            case .stuck:
                // Whoever closes gets no answer for what the disk does not decide.
                if closing.isSet { return }
                closing.wait(milliseconds: pause)
                pause = min(pause * 2, Self.longestPause)
            case .stopped:
                return
            }
        }
    }

    private static let firstPause: Int32 = 10
    private static let longestPause: Int32 = 1000

    /// Does what there is to do, without waiting for anything but the disk.
    mutating func step() -> Progress {
        inbox.drain(into: &incoming)
        if queue.isEmpty { swap(&queue, &incoming) } else { queue.append(contentsOf: incoming) }
        incoming.removeAll(keepingCapacity: true)
        if isStuck { commit() }
        while !isStuck, next < queue.count { take(queue[next]) }
        if !isStuck { commit() }
        if isStuck { return .stuck }
        queue.removeAll(keepingCapacity: true)
        next = 0
        watchRoom()
        retireOldest()
        guard isStopping else { return .idle }
        // An empty batch behind the last one: from now on, damage to that one cannot pass for a torn tail.
        _ = try? journal.commit([], time: options.clock())
        return .stopped
    }

    /// Takes the next item of the queue, or makes room for it first and leaves it there if that does not work out.
    private mutating func take(_ item: JournalItem) {
        switch item {
        case .request(.append(let ticket, _, _, let knows), let shard) where isVoid(shard, knows):
            // All of the shard's before it have their answers: the last of those that were tried is the refusal.
            if let failure = refusals[shard]?.failure { sinks[shard]([.refused(ticket: ticket, failure)]) }
        case .request(.append(let ticket, let records, let highest, _), let shard):
            let isFull = batch.count >= options.batchPieces || batchBytes + records.count > options.batchBytes
            if isFull, !batch.isEmpty {
                commit()
                if isStuck { return }
            }
            batch.append(Append(shard: shard, ticket: ticket, records: records, highest: highest))
            batchBytes += records.count
        case .request(let request, let shard):
            followers.append((batch.count, shard, request))
        case .retired(let segment):
            if retiring == segment { retiring = nil }
        case .stop:
            isStopping = true
        }
        next += 1
    }

    /// It was asked for by who did not know of a refusal.
    private func isVoid(_ shard: Int, _ knows: UInt64) -> Bool {
        refusals[shard].map { knows < $0.ticket } ?? false
    }

    private mutating func commit() {
        isStuck = false
        var events = [[StoreEvent]](repeating: [], count: sinks.count)
        var locations: [RecordLocation] = []
        do throws(JournalFailure) {
            if !batch.isEmpty { locations = try journal.commit(batch.map(\.records), time: options.clock()) }
            for (append, location) in zip(batch, locations) {
                for (partition, seq) in append.highest {
                    highest[partition.index] = max(highest[partition.index], seq)
                }
                events[append.shard].append(
                    .committed(ticket: append.ticket, segment: location.segment, offset: location.offset))
            }
        } catch {
            switch error {
            case .undecided(let failure):
                // Neither answer would be honest yet. Appends wait; whoever sends them has a bound.
                options.report(failure)
                isStuck = true
                return
            case .refused(let failure):
                wasFull = failure.kind == .full
                for append in batch {
                    if events[append.shard].isEmpty { refusals[append.shard] = (append.ticket, failure) }
                    events[append.shard].append(.refused(ticket: append.ticket, failure))
                }
            }
        }
        post(events)
        follow(locations)
        batch.removeAll(keepingCapacity: true)
        batchBytes = 0
        followers.removeAll(keepingCapacity: true)
    }

    private func post(_ events: [[StoreEvent]]) {
        for (shard, batch) in events.enumerated() where !batch.isEmpty { sinks[shard](batch) }
    }

    /// Hands on what was to happen after the batch, in order.
    private func follow(_ locations: [RecordLocation]) {
        for (after, shard, request) in followers {
            switch request {
            case .forget(let rows):
                tables.post(.forget(rows))
            case .remains(let segment, let remains, let isLast):
                // The shard's appends before this one are counted in it, its later ones are not.
                let asOf =
                    if after > 0, after <= locations.count {
                        JournalPosition(
                            segment: locations[after - 1].segment,
                            offset: locations[after - 1].offset &+ locations[after - 1].length)
                    } else {
                        locations.first.map { JournalPosition(segment: $0.segment, offset: $0.offset) } ?? journal.end
                    }
                let part = RemainsPart(
                    segment: segment, shard: shard, remains: remains, isLast: isLast, asOf: asOf, highest: highest,
                    time: options.clock())
                tables.post(.remains(part))
            case .append, .read, .load, .readControl:
                break
            }
        }
    }

    private mutating func watchRoom() {
        let changed = room.look(segment: journal.segment, wasRefused: wasFull)
        wasFull = false
        guard changed else { return }
        for sink in sinks { sink([.roomChanged(isShort: room.isShort)]) }
    }

    private mutating func retireOldest() {
        guard retiring == nil else { return }
        let sealed = files.segments.filter { $0 < journal.segment }
        guard sealed.count > options.keptSegments, let oldest = sealed.first else { return }
        retiring = oldest
        tables.post(.retire(oldest))
        for sink in sinks { sink([.segmentRetiring(oldest)]) }
    }
}

/// Tells a thread that waits for the disk that nobody waits for it any more.
final class ClosingFlag: Sendable {
    private let flag = Atomic<Bool>(false)
    private let wake: Mailbox<Void>

    init() throws(SystemError) { wake = try Mailbox() }

    var isSet: Bool { flag.load(ordering: .acquiring) }

    func set() {
        flag.store(true, ordering: .releasing)
        wake.post(())
    }

    /// Returns after the time, or when the flag is set.
    func wait(milliseconds: Int32) {
        guard !isSet, let poller = try? Poller() else { return }
        try? poller.add(wake.descriptor, .readable, token: 0)
        _ = poller.wait(milliseconds: milliseconds)
    }
}
