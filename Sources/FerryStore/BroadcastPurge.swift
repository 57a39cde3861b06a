internal import FerryCore

/// Finds the rows of broadcasts that nobody will ask for again: those that are forgotten by their time; of one app all that
/// are over but the newest `AcceptedBroadcast.overAtMost`; places whose content is gone. Of what is over the payload goes. So the table is as small as what a gateway holds in memory of it, whatever backends do.
struct BroadcastPurge {
    private let now: Instant
    /// Rows of places, by the task that they are of, of what is over.
    private var places: [Identifier128: [[UInt8]]] = [:]
    private var ended: [AppID: [(acceptedAt: Instant, task: Identifier128)]] = [:]
    /// A task's content comes before its other rows. What of its rows follows is over, live, or nobody's.
    private var current: (task: Identifier128, isOver: Bool)?
    /// The content's row of the current task while that is live: when it turns out to be stopped its payload goes.
    private var live: (key: [UInt8], broadcast: AcceptedBroadcast, forgetAt: Instant, places: [[UInt8]])?

    private init(now: Instant) { self.now = now }

    /// Adds to `write` what is to go of `tables` at the time `now`.
    static func add(to write: inout TableWrite, from tables: any Tables, now: Instant) throws(StoreFailure) {
        var purge = BroadcastPurge(now: now)
        try tables.scan(.broadcasts) { key, value throws(StoreFailure) in
            purge.take(key, value, &write)
            return true
        }
        for ended in purge.ended.values {
            for task in AcceptedBroadcast.surplus(ended) {
                write.delete(.broadcasts, key: BroadcastRow.contentKey(task))
                for key in purge.places[task] ?? [] { write.delete(.broadcasts, key: key) }
            }
        }
    }

    private mutating func take(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ write: inout TableWrite
    ) {
        guard let task = BroadcastRow.task(key) else { return }
        if BroadcastRow.isContent(key) {
            takeContent(key, value, task, &write)
        } else if current?.task != task {
            // The content of a broadcast is on disk before any place of it is, and in no later segment. Places without it are
            // nobody's; content without places would be placed again by the next start, so they go together.
            write.delete(.broadcasts, key: [UInt8](key))
        } else if current?.isOver == true {
            places[task, default: []].append([UInt8](key))
        } else if BroadcastRow.isStop(key) {
            takeStop(key, task, &write)
        } else {
            live?.places.append([UInt8](key))
        }
    }

    /// The row comes behind the content and the places: the broadcast is over before its time.
    private mutating func takeStop(
        _ key: UnsafeRawBufferPointer, _ task: Identifier128, _ write: inout TableWrite
    ) {
        guard var stopped = live.take() else { return }
        current = (task, true)
        ended[stopped.broadcast.app, default: []].append((stopped.broadcast.acceptedAt, task))
        places[task] = stopped.places + [[UInt8](key)]
        guard !stopped.broadcast.payload.isEmpty else { return }
        stopped.broadcast.payload = []
        let value = BroadcastRow.value(stopped.broadcast, forgetAt: stopped.forgetAt)
        write.put(.broadcasts, key: stopped.key, value: value)
    }

    private mutating func takeContent(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ task: Identifier128,
        _ write: inout TableWrite
    ) {
        live = nil
        // A row that cannot be read is left to the next start, which says so.
        guard let forgetAt = BroadcastRow.forgetAt(value),
            case .content(var broadcast)? = BroadcastRow.read(key: key, value: value)
        else {
            current = (task, false)
            return
        }
        guard forgetAt > now else {
            current = nil
            write.delete(.broadcasts, key: [UInt8](key))
            return
        }
        let isOver = broadcast.expiresAt <= now
        current = (task, isOver)
        guard isOver else {
            live = ([UInt8](key), broadcast, forgetAt, [])
            return
        }
        ended[broadcast.app, default: []].append((broadcast.acceptedAt, task))
        // A live-only one that has no places yet still goes out when it gets them.
        guard !broadcast.payload.isEmpty, !broadcast.isLiveOnly else { return }
        broadcast.payload = []
        write.put(.broadcasts, key: [UInt8](key), value: BroadcastRow.value(broadcast, forgetAt: forgetAt))
    }
}
