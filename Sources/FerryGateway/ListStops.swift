internal import FerryCore
internal import FerryStore

/// That the sender of a task with stored content stopped it: a row at the owner of the app, for as long as a message of the task
/// could still be kept.
struct ListStop: Sendable, Equatable {
    let app: AppID
    let task: TaskID
    let forgetAt: Instant

    private static let version: UInt8 = 1

    init(app: AppID, task: TaskID, forgetAt: Instant) {
        self.app = app
        self.task = task
        self.forgetAt = forgetAt
    }

    /// As it stands in its row; nil when the bytes are none.
    init?(_ bytes: [UInt8]) {
        let read: ListStop? = bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.byte() == Self.version, let name = reader.string(limit: reader.remaining),
                let app = String(validating: name, as: UTF8.self).flatMap({ AppID($0) }),
                let value = reader.identifier(), let monthDay = reader.varint().flatMap({ UInt16(exactly: $0) }),
                let kind = reader.byte().flatMap({ TaskID.Kind(rawValue: $0) }), let time = reader.uint64(),
                reader.isAtEnd
            else { return nil }
            return ListStop(
                app: app, task: TaskID(value, monthDay: monthDay, kind: kind),
                forgetAt: Instant(milliseconds: Int64(bitPattern: time)))
        }
        guard let read else { return nil }
        self = read
    }

    private var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.version)
        writer.string(app.text.utf8)
        writer.identifier(task.value)
        writer.varint(UInt64(task.monthDay))
        writer.byte(task.kind.rawValue)
        writer.uint64(UInt64(bitPattern: forgetAt.milliseconds))
        return writer.bytes
    }

    var row: ControlRow { row(encoded) }
    /// Takes the row away.
    var end: ControlRow { row(nil) }

    private func row(_ value: [UInt8]?) -> ControlRow {
        ControlRow(.stoppedTask, Partition(of: app), key: task.value.bytes, value: value)
    }
}

/// What a shard knows of tasks with stored content that were stopped.
struct ListStops {
    // Of the owner of the app.
    private var own: [ListStop] = []

    // Of every shard.
    private var stopped: [Identifier128: Instant] = [:]
    /// Those that the sweep under way looks for, and how far it is in the table of devices.
    private var swept: [Identifier128] = []
    var cursor = 0
    /// Those that the next one looks for.
    private var waiting: [Identifier128] = []
    /// Nothing is to be forgotten before this.
    private(set) var nextEnd = Instant.distantFuture

    /// What one takes of memory, about.
    static let bytesPerStop = 256

    var count: Int { stopped.count }
    var isSweeping: Bool { !swept.isEmpty || !waiting.isEmpty }
    func contains(_ task: Identifier128) -> Bool { !stopped.isEmpty && stopped[task] != nil }

    /// From now on nothing of the task is sent.
    mutating func add(_ stop: ListStop) {
        let known = stopped.updateValue(stop.forgetAt, forKey: stop.task.value)
        nextEnd = min(nextEnd, stop.forgetAt)
        if known == nil { waiting.append(stop.task.value) }
    }

    mutating func addOwn(_ stop: ListStop) {
        own.append(stop)
        nextEnd = min(nextEnd, stop.forgetAt)
    }

    /// The tasks that are looked for in the devices from `cursor` on.
    mutating func continueSweep() -> [Identifier128] {
        if swept.isEmpty {
            swap(&swept, &waiting)
            cursor = 0
        }
        return swept
    }

    mutating func endSweep() { swept = [] }

    /// Of those that wait only these have messages.
    mutating func sweepOnly(_ isThere: (Identifier128) -> Bool) { waiting.removeAll { !isThere($0) } }

    /// All devices are to be looked at once more.
    mutating func sweepAgain() {
        swept = []
        waiting = Array(stopped.keys)
    }

    /// No message can be of these any more; answers the own ones, whose rows are to go.
    mutating func takeEnded(now: Instant) -> [ListStop] {
        let ended = own.filter { $0.forgetAt <= now }
        own.removeAll { $0.forgetAt <= now }
        stopped = stopped.filter { $0.value > now }
        nextEnd = min(stopped.values.min() ?? .distantFuture, own.map(\.forgetAt).min() ?? .distantFuture)
        return ended
    }
}
