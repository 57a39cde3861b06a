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

        subscript(position: Int) -> Row {
            _read { yield chunks[position / Self.chunkSize][position % Self.chunkSize] }
        }

        func number(at position: Int) -> UInt32 { (base &+ UInt32(truncatingIfNeeded: position)) & Tried.rowBits }
        func position(of number: UInt32) -> Int { Int((number &- base) & Tried.rowBits) }
        func key(_ number: UInt32) -> Identifier128 { self[position(of: number)].key }
        func answer(_ number: UInt32) -> RequestAnswer { self[position(of: number)].answer }

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
            base = (base &+ UInt32(Self.chunkSize)) & Tried.rowBits
            head = 0
            end -= Self.chunkSize
        }
    }

    /// First tries that are on their way to the disk, by number; the numbers of those that ended are used again.
    private struct Tried: Sendable {
        /// Of a number in the table: set, it is a first try's and no row's.
        static let mark: UInt32 = 1 << 31
        static let rowBits = mark - 1

        private var entries: ContiguousArray<RequestName> = []
        private var free: ContiguousArray<UInt32> = []

        var isEmpty: Bool { entries.count == free.count }
        subscript(number: UInt32) -> RequestName { entries[Int(number & Self.rowBits)] }

        mutating func add(_ name: RequestName) -> UInt32 {
            if let number = free.popLast() {
                entries[Int(number)] = name
                return number | Self.mark
            }
            entries.append(name)
            return UInt32(truncatingIfNeeded: entries.count - 1) | Self.mark
        }

        /// After a rush nothing stays behind.
        mutating func remove(_ number: UInt32) {
            free.append(number & Self.rowBits)
            guard isEmpty, entries.count > 4_096 else { return }
            entries = []
            free = []
        }
    }

    private struct RequestName: Sendable, BitwiseCopyable {
        var key: Identifier128
        var content: Identifier128
    }

    private let length: Duration
    private let capacity: Int
    private var tried = Tried()
    /// Each key that was tried or answered, by the number of its try or row.
    private var table: IdentifierTable
    private var rows = Rows()
    /// Number of the first row that may not be in the tables; never below the oldest row's.
    private var untaken: UInt32 = 0
    /// Answers that left before their time because the budget was used up.
    package private(set) var evictedEarly: UInt64 = 0

    /// `byteBudget` is rounded down to whole entries, at least one. `seed` is secret.
    package init(length: Duration, byteBudget: Int, seed: Identifier128) {
        self.length = length
        // Row numbers are 31 bits wide, so that no more could be told apart.
        capacity = min(max(1, byteBudget / Self.bytesPerEntry), 1 << 30)
        table = IdentifierTable(seed: seed)
    }

    package var count: Int { rows.end - rows.head }

    package func find(_ key: Identifier128) -> Finding {
        guard let number = number(of: key) else { return .unknown }
        return finding(number)
    }

    /// What `find` says; where it is `.unknown`, this is the first try from now on.
    package mutating func begin(_ key: Identifier128, content: Identifier128) -> Finding {
        let number = tried.add(RequestName(key: key, content: content))
        guard let known = Self.findOrInsert(&table, number, key, rows, tried) else { return .unknown }
        tried.remove(number)
        return finding(known)
    }

    /// The first try came to nothing: the next one is a first try again.
    package mutating func abandon(_ key: Identifier128) {
        guard let number = number(of: key), number & Tried.mark != 0 else { return }
        Self.remove(&table, number, key, rows, tried)
        tried.remove(number)
    }

    private func finding(_ number: UInt32) -> Finding {
        number & Tried.mark == 0 ? .answered(rows.answer(number)) : .inFlight(content: tried[number].content)
    }

    private static func key(_ number: UInt32, _ rows: Rows, _ tried: Tried) -> Identifier128 {
        number & Tried.mark == 0 ? rows.key(number) : tried[number].key
    }

    /// The first try is on disk, in `segment` (0: in the tables).
    package mutating func settle(_ key: Identifier128, _ answer: RequestAnswer, acceptedAt: Instant, segment: UInt32) {
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
        let before = Self.set(&table, rows.number(at: rows.end - 1), key, rows, tried)
        if let before, before & Tried.mark != 0 { tried.remove(before) }
    }

    private func number(of key: Identifier128) -> UInt32? { table.find(key) { Self.key($0, rows, tried) } }

    private mutating func dropFirst() {
        let number = rows.number(at: rows.head)
        // A key that was settled again stands for its later row.
        Self.remove(&table, number, rows[rows.head].key, rows, tried)
        if untaken == number { untaken = (untaken &+ 1) & Tried.rowBits }
        rows.dropFirst()
    }

    // The table asks for names while it changes, so it cannot be changed through `self` that holds them.

    private static func findOrInsert(
        _ table: inout IdentifierTable, _ number: UInt32, _ key: Identifier128, _ rows: Rows, _ tried: Tried
    ) -> UInt32? {
        table.findOrInsert(number, for: key) { self.key($0, rows, tried) }
    }

    private static func set(
        _ table: inout IdentifierTable, _ number: UInt32, _ key: Identifier128, _ rows: Rows, _ tried: Tried
    ) -> UInt32? {
        table.set(number, for: key) { self.key($0, rows, tried) }
    }

    private static func remove(
        _ table: inout IdentifierTable, _ number: UInt32, _ key: Identifier128, _ rows: Rows, _ tried: Tried
    ) {
        table.remove(number, key) { self.key($0, rows, tried) }
    }
}
