internal import FerryCore

/// Table rows of messages that have ended, held until the append that tells of the ends is on disk.
struct HeldRows {
    typealias Row = (cid: CID, seq: Seq)

    /// By the ticket of the append, rising.
    private var held: [(ticket: UInt64, rows: [Row])] = []
    /// What tells of these the disk refused, and nobody has tried it again.
    private var refused: [Row] = []
    /// What tells of them goes with the next append.
    private var isTelling = false

    var count: Int { held.reduce(refused.count) { $0 + $1.rows.count } }
    /// The disk has to be tried again.
    var mustWait: Bool { !refused.isEmpty }

    /// `ticket` is that of the last append.
    mutating func hold(_ rows: [Row], until ticket: UInt64) {
        let all = isTelling ? refused + rows : rows
        if isTelling { refused = [] }
        isTelling = false
        if !all.isEmpty { held.append((ticket, all)) }
    }

    /// All appends from this one on are not on disk.
    mutating func refused(from ticket: UInt64) {
        let first = held.firstIndex { $0.ticket >= ticket } ?? held.count
        for (_, rows) in held[first...] { refused += rows }
        held.removeSubrange(first...)
    }

    /// All that was refused is tried again, by the next append.
    mutating func tellAgain() { isTelling = true }

    /// Appends before this one are on disk: the rows may go.
    mutating func take(before ticket: UInt64) -> [Row] {
        guard !held.isEmpty else { return [] }
        let end = held.firstIndex { $0.ticket >= ticket } ?? held.count
        defer { held.removeSubrange(..<end) }
        return held[..<end].flatMap(\.rows)
    }
}
