internal import FerryAudience
internal import FerryCore
internal import FerryRouting

/// A push to those that an expression describes.
final class TagAudience: Sendable {
    let task: ListTask
    let audience: AudienceExpression
    /// Targets a second over all shards; 0 for no limit.
    let speed: Int64

    init(_ task: ListTask, _ audience: AudienceExpression, speed: Int64) {
        self.task = task
        self.audience = audience
        self.speed = speed
    }

    var name: Identifier128 { task.taskID.value }

    // MARK: - Bytes

    private static let version: UInt8 = 1

    /// As it stands in its row, which is there until all shards have fixed who gets it.
    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.version)
        writer.varint(UInt64(max(0, speed)))
        writer.varint(UInt64(audience.conditions.count))
        for condition in audience.conditions {
            writer.byte(condition.field.rawValue)
            writer.byte(condition.operation.rawValue)
            writer.varint(UInt64(condition.values.count))
            for value in condition.values { writer.string(value.utf8) }
        }
        return writer.bytes
    }

    /// nil when the bytes are no such row.
    convenience init?(_ task: ListTask, encoded: [UInt8]) {
        let read: (speed: Int64, audience: AudienceExpression)? = encoded.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == Self.version, let speed = reader.varint().flatMap({ Int64(exactly: $0) }),
                let count = reader.varint(), count <= UInt64(reader.remaining)
            else { return nil }
            var conditions: [AudienceExpression.Condition] = []
            for _ in 0..<count {
                guard let condition = Self.condition(&reader) else { return nil }
                conditions.append(condition)
            }
            return reader.isAtEnd ? (speed, AudienceExpression(conditions)) : nil
        }
        guard let read else { return nil }
        self.init(task, read.audience, speed: read.speed)
    }

    private static func condition(_ reader: inout ByteReader) -> AudienceExpression.Condition? {
        guard let field = reader.byte().flatMap({ AudienceExpression.Field(rawValue: $0) }),
            let operation = reader.byte().flatMap({ AudienceExpression.Operation(rawValue: $0) }),
            let count = reader.varint(), count <= UInt64(reader.remaining)
        else { return nil }
        var values: [String] = []
        for _ in 0..<count {
            guard let text = reader.string(limit: reader.remaining),
                let value = String(validating: text, as: UTF8.self)
            else { return nil }
            values.append(value)
        }
        return AudienceExpression.Condition(field, operation, values)
    }
}

/// What the owner of an app knows of a push whose targets are not fixed in all shards.
struct TagCall {
    let order: TagAudience
    /// Shards that have not said that theirs are.
    var missing: Set<Int>
    /// Calls that wait for the answer.
    var waiting: [APIOrigin]
}

/// Such a call as a start found it.
struct RestoredTagCall {
    let task: Identifier128
    let row: [UInt8]
    var waiting: [APIOrigin] = []
}

/// A shard looks for its devices of an audience.
struct TagGathering {
    let order: TagAudience
    var cursor: CID?
    /// By the shard's own numbers of its partitions.
    var found: [[CID]]
    var foundCount = 0
}

/// The next targets of a push, while their records are loaded or on their way to the disk.
struct TagStep {
    let task: Identifier128
    /// nil: none of them gets it, for this reason.
    let content: TaskContent?
    let reason: EndReason?
    let slice: TagExpansion.Slice
    /// Devices that are being loaded.
    var loading = 0
    /// Devices that the store does not have, and those of which it could not tell.
    var absent: Set<CID> = []
    var failed: Set<CID> = []
}

/// Of a device that a push waits for: what the store said.
enum TagTargetLoad {
    case known, absent, failed
}

/// Devices that could not be loaded, and whether to try again: whoever can be reached later must be, and one record that is
/// damaged must not hold up everybody behind it.
struct TagTroubles {
    private var tries: [CID: (count: Int, answersBefore: Int)] = [:]
    /// Loads that the store has answered.
    private var answers = 0

    /// While the store answers for others.
    private static let mostTries = 20
    private static let mostTriesAlone = 600

    var isEmpty: Bool { tries.isEmpty }

    mutating func note(_ load: TagTargetLoad, _ cid: CID) {
        switch load {
        case .known, .absent:
            answers += 1
            tries[cid] = nil
        case .failed: tries[cid] = ((tries[cid]?.count ?? 0) + 1, tries[cid]?.answersBefore ?? answers)
        }
    }

    func isHopeless(_ cid: CID) -> Bool {
        guard let found = tries[cid] else { return false }
        return found.count >= (answers > found.answersBefore ? Self.mostTries : Self.mostTriesAlone)
    }

    mutating func forget(_ cid: CID) { tries[cid] = nil }
}

/// What a shard has under way for pushes to audiences.
struct TagWork {
    // Of the owner of the app, by task.
    var calls: [Identifier128: TagCall] = [:]
    /// Calls that were found at the start, to be gone on with.
    var restored: [RestoredTagCall] = []
    /// Calls whose last record the disk refused, to be tried again.
    var unfinished: [Identifier128] = []

    // Of every shard.
    var gatherings: [TagGathering] = []
    /// Nothing is gathered before this: memory is short.
    var gatherAfter = Instant.distantPast
    private(set) var expansions: [Identifier128: TagExpansion] = [:]
    /// Of all expansions.
    private var expansionBytes = 0
    /// Tasks of `expansions`, in their turn.
    var turns: [Identifier128] = []
    var step: TagStep?
    /// Devices that the step which is being made passes over, by their place in it.
    var leftOut: [TagExpansion.Cursor.LeftOut] = []
    var troubles = TagTroubles()
    /// Whose content is asked for, for the next step.
    var awaited: Identifier128?
    var awaitedSince = Instant.distantPast
    /// Whose content does not come: the others go on without them.
    var late: Set<Identifier128> = []
    /// Whose time is over, as was told.
    var overdue: Set<Identifier128> = []
    /// Of these one device is waited for: the others go on.
    var resting: [Identifier128: Instant] = [:]
    /// Nothing is begun before this.
    var pausedUntil = Instant.distantPast
    /// The owners have not been asked about expansions that were found at the start.
    var mustAsk = false
    /// What the last steps did before the start.
    var lastSteps = LastTagSteps()

    /// For so long a content is waited for before others have their turn.
    static let patience = Duration.seconds(10)

    /// Memory, about. At each push it is looked at.
    var bytes: Int { expansionBytes + gatherings.reduce(0) { $0 + $1.foundCount * 16 } }

    /// Nothing when it is there.
    mutating func begin(_ content: ListTask, speed: Int64, shards: Int) {
        let task = content.taskID.value
        guard expansions[task] == nil else { return }
        expansions[task] = TagExpansion(content, speed: speed, shards: shards)
        turns.append(task)
    }

    mutating func add(_ part: TagExpansion.Part, to task: Identifier128) {
        guard expansions[task] != nil else { return }
        expansions[task]?.add(part)
        expansionBytes += TagExpansion.bytes(of: part)
    }

    /// Lends it for a change.
    mutating func change<Answer>(_ task: Identifier128, _ change: (inout TagExpansion) -> Answer) -> Answer? {
        guard let place = expansions.index(forKey: task) else { return nil }
        return change(&expansions.values[place])
    }

    mutating func remove(_ task: Identifier128) {
        expansionBytes -= expansions.removeValue(forKey: task)?.bytes ?? 0
        turns.removeAll { $0 == task }
        late.remove(task)
        overdue.remove(task)
        resting[task] = nil
    }

    /// When the expansion may go on; nil: not before something else happens.
    func nextTurn(of task: Identifier128, now: Instant) -> Instant? {
        guard let expansion = expansions[task], let next = expansion.nextAt(now: now) else { return nil }
        // Whose content does not come has its turn when its time is over.
        let time = late.contains(task) ? max(next, expansion.endsAt) : next
        return max(time, resting[task] ?? time)
    }

    /// Pushes of one app that are under way, here or anywhere.
    func open(of app: AppID) -> Int {
        var open = Set(calls.values.lazy.filter { $0.order.task.app == app }.map(\.order.name))
        for (task, expansion) in expansions where expansion.app == app { open.insert(task) }
        return open.count
    }

    /// When there is something to do; nil for nothing.
    func nextTurn(now: Instant) -> Instant? {
        var next: Instant?
        func consider(_ time: Instant?) {
            if let time { next = min(next ?? time, time) }
        }
        if mustAsk || !restored.isEmpty || !unfinished.isEmpty { consider(now) }
        if !gatherings.isEmpty { consider(max(now, gatherAfter)) }
        if step == nil, !expansions.isEmpty {
            if awaited != nil {
                consider(awaitedSince + Self.patience)
            } else {
                for task in turns { consider(nextTurn(of: task, now: now)) }
            }
        }
        return next.map { max($0, pausedUntil) }
    }
}
