package import FerryCore

/// The first answers to request ids, for a window of time and a budget of memory, so that a repeat finds what the first try
/// got. Kept in order of acceptance: the oldest leave first, and what one journal segment holds lies together.
package struct IdempotencyWindow: Sendable {
    /// What a request id means at this moment.
    package enum Finding {
        case unknown
        /// The first try is on its way to the disk.
        case inFlight(content: Identifier128)
        case answered(RequestAnswer)
    }

    private struct Row {
        var key: Identifier128
        var acceptedAt: Instant
        var segment: UInt32
    }

    private enum Slot {
        case inFlight(content: Identifier128)
        case answered(RequestAnswer)
    }

    /// What one answered request takes, rows and hash table together, as measured.
    package static var bytesPerEntry: Int { 160 }

    private let length: Duration
    private let capacity: Int
    private var slots: [Identifier128: Slot] = [:]
    private var rows: [Row] = []
    private var head = 0
    /// Answers that left before their time because the budget was used up.
    package private(set) var evictedEarly: UInt64 = 0

    /// `byteBudget` is rounded down to whole entries, at least one.
    package init(length: Duration, byteBudget: Int) {
        self.length = length
        capacity = max(1, byteBudget / Self.bytesPerEntry)
    }

    package var count: Int { rows.count - head }

    package func find(_ key: Identifier128) -> Finding {
        switch slots[key] {
        case nil: .unknown
        case .inFlight(let content): .inFlight(content: content)
        case .answered(let answer): .answered(answer)
        }
    }

    /// The first try was taken in.
    package mutating func begin(_ key: Identifier128, content: Identifier128) {
        slots[key] = .inFlight(content: content)
    }

    /// The first try came to nothing: the next one is a first try again.
    package mutating func abandon(_ key: Identifier128) {
        if case .inFlight = slots[key] { slots[key] = nil }
    }

    /// The first try is on disk, in `segment` (0: in the tables).
    package mutating func settle(_ key: Identifier128, _ answer: RequestAnswer, acceptedAt: Instant, segment: UInt32) {
        slots[key] = .answered(answer)
        rows.append(Row(key: key, acceptedAt: acceptedAt, segment: segment))
        if count > capacity {
            evictedEarly += 1
            dropFirst()
        }
    }

    /// Lets go of at most `limit` answers whose window is over, so that no tick takes long.
    package mutating func expire(now: Instant, limit: Int) {
        for _ in 0..<limit {
            guard head < rows.count, rows[head].acceptedAt + length <= now else { return }
            dropFirst()
        }
    }

    /// What lies in segments up to `segment` and not in the tables, in order. It counts as in the tables from then on, so
    /// that no answer is written at more than one retirement.
    package mutating func takeEntries(upTo segment: UInt32) -> [(key: Identifier128, answer: RequestAnswer)] {
        var found: [(key: Identifier128, answer: RequestAnswer)] = []
        for index in head..<rows.count where rows[index].segment != 0 {
            guard rows[index].segment <= segment else { break }
            rows[index].segment = 0
            if case .answered(let answer)? = slots[rows[index].key] { found.append((rows[index].key, answer)) }
        }
        return found
    }

    private mutating func dropFirst() {
        slots[rows[head].key] = nil
        head += 1
        if head >= 1024 && head * 2 >= rows.count {
            rows.removeFirst(head)
            head = 0
        }
    }
}
