internal import FerryCore

/// What a replay knows of one kept message.
struct ReplayedMessage {
    var message: RecoveredMessage
    /// What its accept record said; `message.stub` is settled at the end.
    var accepted: StubNeed
    /// It has a row in the tables.
    var hasRow: Bool
    fileprivate var hasEnded = false

    init(message: RecoveredMessage, accepted: StubNeed, hasRow: Bool) {
        self.message = message
        self.accepted = accepted
        self.hasRow = hasRow
    }
}

/// A device's messages during a replay, in order of `seq`. One that ends keeps its place until as many have ended as are
/// kept: so the end of each costs the same wherever it stands, and however many a device has.
struct ReplayLog {
    private var entries: [ReplayedMessage] = []
    /// Everything before this has ended.
    private var start = 0
    private var endedCount = 0

    var isEmpty: Bool { endedCount == entries.count }
    /// In order of `seq`.
    var kept: some Sequence<ReplayedMessage> { entries[start...].lazy.filter { !$0.hasEnded } }

    subscript(index: Int) -> ReplayedMessage {
        _read { yield entries[index] }
        _modify { yield &entries[index] }
    }

    /// The index of the message, or where it belongs; good until the next change.
    func search(_ seq: Seq) -> (index: Int, isThere: Bool) {
        // New messages come at the end.
        if let last = entries.last, last.message.seq < seq { return (entries.count, false) }
        var low = start
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].message.seq < seq { low = middle + 1 } else { high = middle }
        }
        return (low, low < entries.count && entries[low].message.seq == seq && !entries[low].hasEnded)
    }

    mutating func insert(_ message: ReplayedMessage, at index: Int) {
        if index == entries.count { entries.append(message) } else { entries.insert(message, at: index) }
    }

    mutating func append(_ message: ReplayedMessage) { entries.append(message) }

    /// The message at `index` has ended.
    mutating func end(at index: Int) {
        guard !entries[index].hasEnded else { return }
        entries[index].hasEnded = true
        endedCount += 1
        while start < entries.count, entries[start].hasEnded { start += 1 }
        guard endedCount >= 64, endedCount * 2 >= entries.count else { return }
        entries.removeAll(where: \.hasEnded)
        start = 0
        endedCount = 0
    }

    /// The first message, if it is not above `seq`, has ended.
    mutating func endFirst(upTo seq: Seq) -> ReplayedMessage? {
        guard start < entries.count, entries[start].message.seq <= seq else { return nil }
        let first = entries[start]
        end(at: start)
        return first
    }
}
