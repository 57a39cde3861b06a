/// One deadline for each of many small integers (slab indices), at a cost that does not depend on how many there are.
///
/// Four levels of 64 slots; an entry sits in the coarsest level whose slot still lies ahead of it and moves down as time
/// passes, so it is touched at most four times. It fires in the first `advance` at or after its deadline, never before,
/// at most one tick (`tickMilliseconds`) late. A deadline past the horizon (64⁴ ticks, 74 hours at 16 ms) waits in the
/// last slot and is placed again from there; one that is more than 198 days away fires after 198 days.
package struct TimerWheel {
    package static let tickMilliseconds: Int64 = 16
    private static let slotsPerLevel: Int64 = 64
    private static let levels = 4
    /// What the farthest deadline may be away, in ticks: 198 days. A later one fires then.
    private static let farthest: Int64 = 1 << 30

    /// What the wheel holds for each index: 12 bytes, in chunks, so that growing moves nothing and leaves nothing behind.
    /// A chunk none of whose indices ever had a deadline is empty.
    private struct Entry: BitwiseCopyable {
        static let unscheduled = Int32.min

        /// The index behind it in its slot's list; -1 is none.
        var next: Int32 = -1
        /// The index before it; for the first in the list of slot *s*, −1 − *s*.
        var previous = unscheduled
        /// The low bits of the deadline in ticks; all are within `farthest` of the current tick.
        var deadline: UInt32 = 0
    }

    private static let chunkBits = 9
    private var chunks: ContiguousArray<ContiguousArray<Entry>> = []
    /// Head of each slot's doubly linked list; -1 is empty.
    private var heads: [Int32]
    /// Which slots of each level are not empty.
    private var busy: [UInt64]
    /// The last tick that was handled.
    private var currentTick: Int64
    /// How many indices have a deadline.
    package private(set) var count = 0

    package init(now: Instant) {
        heads = Array(repeating: -1, count: Int(Self.slotsPerLevel) * Self.levels)
        busy = Array(repeating: 0, count: Self.levels)
        currentTick = now.milliseconds / Self.tickMilliseconds
    }

    /// Sets or moves the deadline of `index` (0...Int32.max). One already past fires at the next `advance` to a later tick.
    package mutating func schedule(_ index: Int, at deadline: Instant) {
        grow(to: index)
        if isScheduled(index) { unlink(index) } else { count += 1 }
        self[index].deadline = UInt32(truncatingIfNeeded: tick(of: deadline))
        link(index)
    }

    /// The same, but for an index whose deadline is as early already, or that is to have none (`.distantFuture`).
    package mutating func hasten(_ index: Int, to deadline: Instant) {
        guard deadline != .distantFuture else { return }
        let chunk = index >> Self.chunkBits
        if chunk < chunks.count, !chunks[chunk].isEmpty {
            let entry = chunks[chunk][index & (1 << Self.chunkBits - 1)]
            if entry.previous != Entry.unscheduled, self.deadline(entry) <= tick(of: deadline) { return }
        }
        schedule(index, at: deadline)
    }

    /// Rounded up: never early.
    private func tick(of deadline: Instant) -> Int64 {
        let (padded, overflow) = deadline.milliseconds.addingReportingOverflow(Self.tickMilliseconds - 1)
        let tick = (overflow ? Int64.max : padded) / Self.tickMilliseconds
        return min(max(tick, currentTick + 1), currentTick + Self.farthest)
    }

    /// Forgets the deadline of `index`, if it has one.
    package mutating func cancel(_ index: Int) {
        guard isScheduled(index) else { return }
        unlink(index)
        self[index].previous = Entry.unscheduled
        count -= 1
    }

    package func isScheduled(_ index: Int) -> Bool {
        let chunk = index >> Self.chunkBits
        return chunk < chunks.count && !chunks[chunk].isEmpty && self[index].previous != Entry.unscheduled
    }

    /// Moves time on and appends each index whose deadline has come to `fired`, in order of tick.
    package mutating func advance(to now: Instant, fired: inout [Int]) {
        let target = now.milliseconds / Self.tickMilliseconds
        if count == 0 {
            currentTick = max(currentTick, target)
            return
        }
        while currentTick < target {
            currentTick = min(target, nextBusyTick)
            for level in stride(from: Self.levels - 1, through: 1, by: -1) where isStartOfSlot(level: level) {
                redistribute(slot: slot(level: level, tick: currentTick))
            }
            fire(slot: slot(level: 0, tick: currentTick), into: &fired)
            if count == 0 {
                currentTick = target
                return
            }
        }
    }

    /// When `advance` next needs to be called: exact within the first level (about a second), else when the next entries move
    /// down into it.
    package var nextWake: Instant? {
        guard count > 0 else { return nil }
        if busy[0] == 0 { return Instant(milliseconds: nextBusyTick * Self.tickMilliseconds) }
        for ahead in 1...Self.slotsPerLevel {
            let tick = currentTick + ahead
            let startsCoarserSlot = tick % Self.slotsPerLevel == 0
            if startsCoarserSlot || heads[slot(level: 0, tick: tick)] >= 0 {
                return Instant(milliseconds: tick * Self.tickMilliseconds)
            }
        }
        return Instant(milliseconds: (currentTick + Self.slotsPerLevel) * Self.tickMilliseconds)
    }

    // MARK: - Entries and slots

    private subscript(index: Int) -> Entry {
        _read { yield chunks[index >> Self.chunkBits][index & (1 << Self.chunkBits - 1)] }
        _modify { yield &chunks[index >> Self.chunkBits][index & (1 << Self.chunkBits - 1)] }
    }

    /// The next tick in which an entry may fire or move down: where the fine levels are empty, the start of the next slot
    /// of the first that is not, so that a jump costs nothing for what it passes over.
    private var nextBusyTick: Int64 {
        let level = busy.firstIndex { $0 != 0 } ?? 0
        let span = Self.span(level: level)
        return (currentTick / span + 1) * span
    }

    private static func span(level: Int) -> Int64 {
        var span: Int64 = 1
        for _ in 0..<level { span *= slotsPerLevel }
        return span
    }

    private func isStartOfSlot(level: Int) -> Bool { currentTick % Self.span(level: level) == 0 }

    private func slot(level: Int, tick: Int64) -> Int {
        level * Int(Self.slotsPerLevel) + Int(tick / Self.span(level: level) % Self.slotsPerLevel)
    }

    private mutating func grow(to index: Int) {
        let chunk = index >> Self.chunkBits
        if chunk >= chunks.count {
            chunks.append(contentsOf: repeatElement([], count: chunk + 1 - chunks.count))
        }
        if chunks[chunk].isEmpty { chunks[chunk] = ContiguousArray(repeating: Entry(), count: 1 << Self.chunkBits) }
    }

    private func deadline(_ entry: Entry) -> Int64 {
        currentTick + Int64(Int32(truncatingIfNeeded: entry.deadline &- UInt32(truncatingIfNeeded: currentTick)))
    }

    private mutating func setHead(_ slot: Int, _ index: Int32) {
        heads[slot] = index
        let bit: UInt64 = 1 << UInt64(slot % Int(Self.slotsPerLevel))
        if index >= 0 {
            busy[slot / Int(Self.slotsPerLevel)] |= bit
        } else {
            busy[slot / Int(Self.slotsPerLevel)] &= ~bit
        }
    }

    private mutating func link(_ index: Int) {
        let deadline = deadline(self[index])
        let distance = deadline - currentTick
        var place = slot(level: 0, tick: deadline)
        for level in 0..<Self.levels {
            // Strictly inside the level's turn, so that a slot never mixes this turn with the next.
            if distance < Self.span(level: level + 1) {
                place = slot(level: level, tick: deadline)
                break
            }
            if level == Self.levels - 1 {
                place = slot(level: level, tick: currentTick + Self.span(level: Self.levels) - 1)
            }
        }
        let second = heads[place]
        self[index].previous = -1 - Int32(place)
        self[index].next = second
        if second >= 0 { self[Int(second)].previous = Int32(index) }
        setHead(place, Int32(index))
    }

    private mutating func unlink(_ index: Int) {
        let entry = self[index]
        if entry.next >= 0 { self[Int(entry.next)].previous = entry.previous }
        if entry.previous >= 0 {
            self[Int(entry.previous)].next = entry.next
        } else {
            setHead(Int(-1 - entry.previous), entry.next)
        }
    }

    private mutating func redistribute(slot: Int) {
        var cursor = heads[slot]
        setHead(slot, -1)
        while cursor >= 0 {
            let index = Int(cursor)
            cursor = self[index].next
            link(index)
        }
    }

    private mutating func fire(slot: Int, into fired: inout [Int]) {
        var cursor = heads[slot]
        setHead(slot, -1)
        while cursor >= 0 {
            let index = Int(cursor)
            cursor = self[index].next
            self[index].previous = Entry.unscheduled
            count -= 1
            fired.append(index)
        }
    }
}
