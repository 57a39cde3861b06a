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

    private struct Row: Sendable, BitwiseCopyable {
        var key: Identifier128
        var answer: RequestAnswer
        var segment: UInt32
    }

    /// What one answered request takes, row and table together.
    package static var bytesPerEntry: Int { MemoryLayout<Row>.stride + 16 }

    /// Rows in order of acceptance, in chunks, so that neither growing nor leaving moves any. Their numbers wrap around.
    private struct Rows: Sendable {
        private static let chunkSize = 1_024
        private var chunks: ContiguousArray<ContiguousArray<Row>> = []
        /// Number of the first row of `chunks`.
        private var base: UInt32 = 0
        /// Positions, counted from `base`, of the oldest row and behind the last.
        private(set) var head = 0
        private(set) var end = 0

        subscript(position: Int) -> Row { chunks[position / Self.chunkSize][position % Self.chunkSize] }

        func number(at position: Int) -> UInt32 { base &+ UInt32(truncatingIfNeeded: position) }
        func position(of number: UInt32) -> Int { Int(number &- base) }
        func row(_ number: UInt32) -> Row { self[position(of: number)] }

        mutating func append(_ row: Row) {
            if end == chunks.count * Self.chunkSize {
                var chunk: ContiguousArray<Row> = []
                chunk.reserveCapacity(Self.chunkSize)
                chunks.append(chunk)
            }
            chunks[chunks.count - 1].append(row)
            end += 1
        }

        mutating func dropFirst() {
            head += 1
            guard head == Self.chunkSize else { return }
            chunks.removeFirst()
            base &+= UInt32(Self.chunkSize)
            head = 0
            end -= Self.chunkSize
        }
    }

    private let length: Duration
    private let capacity: Int
    private var inFlight: [Identifier128: Identifier128] = [:]
    private var table: IdentifierTable
    private var rows = Rows()
    /// Number of the first row that may not be in the tables; never below the oldest row's.
    private var untaken: UInt32 = 0
    /// Answers that left before their time because the budget was used up.
    package private(set) var evictedEarly: UInt64 = 0

    /// `byteBudget` is rounded down to whole entries, at least one. `seed` is secret.
    package init(length: Duration, byteBudget: Int, seed: Identifier128) {
        self.length = length
        // Row numbers are 32 bits wide, so that no more could be told apart.
        capacity = min(max(1, byteBudget / Self.bytesPerEntry), 1 << 30)
        table = IdentifierTable(seed: seed)
    }

    package var count: Int { rows.end - rows.head }

    package func find(_ key: Identifier128) -> Finding {
        if let number = number(of: key) { return .answered(rows.row(number).answer) }
        guard !inFlight.isEmpty, let content = inFlight[key] else { return .unknown }
        return .inFlight(content: content)
    }

    /// The first try was taken in.
    package mutating func begin(_ key: Identifier128, content: Identifier128) { inFlight[key] = content }

    /// The first try came to nothing: the next one is a first try again.
    package mutating func abandon(_ key: Identifier128) { inFlight[key] = nil }

    /// The first try is on disk, in `segment` (0: in the tables).
    package mutating func settle(_ key: Identifier128, _ answer: RequestAnswer, acceptedAt: Instant, segment: UInt32) {
        if !inFlight.isEmpty { inFlight[key] = nil }
        var answer = answer
        answer.acceptedAt = acceptedAt
        rows.append(Row(key: key, answer: answer, segment: segment))
        remember(key)
        if count > capacity {
            evictedEarly += 1
            dropFirst()
        }
    }

    /// Lets go of at most `limit` answers whose window is over, so that no tick takes long.
    package mutating func expire(now: Instant, limit: Int) {
        for _ in 0..<limit {
            guard rows.head < rows.end, rows[rows.head].answer.acceptedAt + length <= now else { return }
            dropFirst()
        }
    }

    /// What lies in segments up to `segment` and not in the tables, in order. It counts as in the tables from then on, so
    /// that no answer is written at more than one retirement.
    package mutating func takeEntries(upTo segment: UInt32) -> [(key: Identifier128, answer: RequestAnswer)] {
        var found: [(key: Identifier128, answer: RequestAnswer)] = []
        var position = rows.position(of: untaken)
        while position < rows.end, rows[position].segment <= segment {
            let row = rows[position]
            if row.segment != 0, number(of: row.key) == rows.number(at: position) {
                found.append((row.key, row.answer))
            }
            position += 1
        }
        untaken = rows.number(at: position)
        return found
    }

    private mutating func remember(_ key: Identifier128) {
        let rows = rows
        table.set(rows.number(at: rows.end - 1), for: key) { rows.row($0).key }
    }

    private func number(of key: Identifier128) -> UInt32? { table.find(key) { rows.row($0).key } }

    private mutating func dropFirst() {
        let rows = rows
        let number = rows.number(at: rows.head)
        // A key that was settled again stands for its later row.
        table.remove(number, rows[rows.head].key) { rows.row($0).key }
        if untaken == number { untaken &+= 1 }
        self.rows.dropFirst()
    }
}
