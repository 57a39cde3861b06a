/// Which devices have something in each segment of the journal that has not retired: a message, or a change of their record. So
/// a retirement looks at these and not at all. 4 bytes an entry; a device may be there several times, and need no more be
/// the one that it was.
struct SegmentDevices {
    private var lists: [(segment: UInt32, devices: ContiguousArray<Int32>)] = []
    private(set) var count = 0

    mutating func add(_ device: Int, segment: UInt32) {
        count += 1
        // The journal goes on in one segment nearly always.
        var place = lists.count
        while place > 0, lists[place - 1].segment > segment { place -= 1 }
        if place > 0, lists[place - 1].segment == segment {
            lists[place - 1].devices.append(Int32(truncatingIfNeeded: device))
        } else {
            lists.insert((segment, [Int32(truncatingIfNeeded: device)]), at: place)
        }
    }

    /// Takes out all that belong to `segment` or to one before.
    mutating func take(upTo segment: UInt32) -> ContiguousArray<Int32> {
        guard let first = lists.first, first.segment <= segment else { return [] }
        lists.removeFirst()
        var taken = first.devices
        while let next = lists.first, next.segment <= segment {
            taken += next.devices
            lists.removeFirst()
        }
        count -= taken.count
        return taken
    }
}

/// Numbers that were seen, as bits.
struct SeenNumbers {
    private var words: ContiguousArray<UInt64>

    /// Of numbers below `bound`; what is far beyond counts as seen.
    init(below bound: Int) { words = ContiguousArray(repeating: 0, count: (bound + 63) / 64) }

    /// Whether it is the first time.
    mutating func insert(_ number: Int) -> Bool {
        let word = number >> 6
        guard word >= 0, word < words.count else { return false }
        let bit: UInt64 = 1 << UInt64(number & 63)
        guard words[word] & bit == 0 else { return false }
        words[word] |= bit
        return true
    }
}
