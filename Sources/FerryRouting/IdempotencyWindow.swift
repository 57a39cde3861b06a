package import FerryCore

/// The first answers to request ids, for a window of time and a budget of memory, so that a repeat finds what the first try
/// got. Kept in order of acceptance: the oldest leave first, and what one journal segment holds lies together.
package struct IdempotencyWindow<Answer: Sendable>: Sendable {
    /// What a request id means at this moment.
    package enum Finding {
        case unknown
        /// The first try is on its way to the disk.
        case inFlight(content: Identifier128)
        case answered(Answer)
    }

    @usableFromInline struct Row {
        @usableFromInline var key: Identifier128
        @usableFromInline var acceptedAt: Instant
        @usableFromInline var segment: UInt32

        @inlinable init(key: Identifier128, acceptedAt: Instant, segment: UInt32) {
            self.key = key
            self.acceptedAt = acceptedAt
            self.segment = segment
        }
    }

    @usableFromInline enum Slot {
        case inFlight(content: Identifier128)
        case answered(Answer)
    }

    /// What one answered request takes, rows and hash table together, as measured.
    package static var bytesPerEntry: Int { 160 }

    @usableFromInline let length: Duration
    @usableFromInline let capacity: Int
    @usableFromInline var slots: [Identifier128: Slot] = [:]
    @usableFromInline var rows: [Row] = []
    @usableFromInline var head = 0
    /// Answers that left before their time because the budget was used up.
    @usableFromInline package private(set) var evictedEarly: UInt64 = 0

    /// `byteBudget` is rounded down to whole entries, at least one.
    package init(length: Duration, byteBudget: Int) {
        self.length = length
        capacity = max(1, byteBudget / Self.bytesPerEntry)
    }

    @inlinable package var count: Int { rows.count - head }

    @inlinable package func find(_ key: Identifier128) -> Finding {
        switch slots[key] {
        case nil: .unknown
        case .inFlight(let content): .inFlight(content: content)
        case .answered(let answer): .answered(answer)
        }
    }

    /// The first try was taken in.
    @inlinable package mutating func begin(_ key: Identifier128, content: Identifier128) {
        slots[key] = .inFlight(content: content)
    }

    /// The first try came to nothing: the next one is a first try again.
    @inlinable package mutating func abandon(_ key: Identifier128) {
        if case .inFlight = slots[key] { slots[key] = nil }
    }

    /// The first try is on disk, in `segment` (0: in the tables).
    @inlinable package mutating func settle(
        _ key: Identifier128, _ answer: Answer, acceptedAt: Instant, segment: UInt32
    ) {
        slots[key] = .answered(answer)
        rows.append(Row(key: key, acceptedAt: acceptedAt, segment: segment))
        if count > capacity {
            evictedEarly += 1
            dropFirst()
        }
    }

    /// Lets go of at most `limit` answers whose window is over, so that no tick takes long.
    @inlinable package mutating func expire(now: Instant, limit: Int) {
        for _ in 0..<limit {
            guard head < rows.count, rows[head].acceptedAt + length <= now else { return }
            dropFirst()
        }
    }

    /// What lies in segments up to `segment` and not in the tables, in order.
    @inlinable package func entries(upTo segment: UInt32) -> [(key: Identifier128, answer: Answer)] {
        var found: [(key: Identifier128, answer: Answer)] = []
        for row in rows[head...] where row.segment != 0 {
            guard row.segment <= segment else { break }
            if case .answered(let answer)? = slots[row.key] { found.append((row.key, answer)) }
        }
        return found
    }

    @inlinable mutating func dropFirst() {
        slots[rows[head].key] = nil
        head += 1
        if head >= 1024 && head * 2 >= rows.count {
            rows.removeFirst(head)
            head = 0
        }
    }
}
