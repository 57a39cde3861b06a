/// Finds numbers by the 128-bit names of what they number: five bytes a slot, the names stay where they are. It is made of
/// many small parts, so that growing never holds up anybody for long.
///
/// Names may be chosen by a peer: slots are told by a product with secret numbers, so that nobody can crowd one.
package struct IdentifierTable: Sendable {
    private struct Part: Sendable {
        /// The number plus one; 0 is empty.
        var entries: ContiguousArray<UInt32> = []
        /// Bits of the name's hash that choose neither part nor slot. Equal ones ask for a look at the name.
        var tags: ContiguousArray<UInt8> = []
        var count = 0

        mutating func fill(_ index: Int, _ entry: UInt32, _ tag: UInt8) {
            entries[index] = entry
            tags[index] = tag
        }
    }

    private var parts: ContiguousArray<Part>
    private let seeds: (UInt64, UInt64)
    package private(set) var count = 0

    private static let partBits: UInt64 = 6
    private static let firstSlots = 8

    /// - Parameter seed: secret and different for each table.
    package init(seed: Identifier128) {
        seeds = (seed.high | 1, seed.low | 1)
        parts = ContiguousArray(repeating: Part(), count: 1 << Int(Self.partBits))
    }

    /// The number that stands for `name`. `nameOf` tells the name of a number that is in the table.
    package func find(_ name: Identifier128, _ nameOf: (UInt32) -> Identifier128) -> UInt32? {
        let hash = hash(name)
        let part = part(hash)
        let mask = parts[part].entries.count - 1
        guard mask >= 0 else { return nil }
        var index = first(hash, mask + 1)
        while true {
            let entry = parts[part].entries[index]
            if entry == 0 { return nil }
            if parts[part].tags[index] == tag(hash), nameOf(entry &- 1) == name { return entry &- 1 }
            index = (index + 1) & mask
        }
    }

    /// `name` stands for `number`, below `UInt32.max`, from now on. Answers the number that it stood for before.
    @discardableResult
    package mutating func set(
        _ number: UInt32, for name: Identifier128, _ nameOf: (UInt32) -> Identifier128
    ) -> UInt32? {
        put(number, for: name, replaces: true, nameOf)
    }

    /// The number that `name` stands for; where it stands for none, it stands for `number` from now on, and the answer is nil.
    package mutating func findOrInsert(
        _ number: UInt32, for name: Identifier128, _ nameOf: (UInt32) -> Identifier128
    ) -> UInt32? {
        put(number, for: name, replaces: false, nameOf)
    }

    @inline(__always)
    private mutating func put(
        _ number: UInt32, for name: Identifier128, replaces: Bool, _ nameOf: (UInt32) -> Identifier128
    ) -> UInt32? {
        let hash = hash(name)
        let part = part(hash)
        if (parts[part].count + 1) * 4 > parts[part].entries.count * 3 { grow(part, nameOf) }
        let mask = parts[part].entries.count - 1
        var index = first(hash, mask + 1)
        while parts[part].entries[index] != 0 {
            let old = parts[part].entries[index] &- 1
            if parts[part].tags[index] == tag(hash), nameOf(old) == name {
                if replaces { parts[part].entries[index] = number &+ 1 }
                return old
            }
            index = (index + 1) & mask
        }
        parts[part].fill(index, number &+ 1, tag(hash))
        parts[part].count += 1
        count += 1
        return nil
    }

    /// Forgets `name`, if it stands for `number`. Both are still what `nameOf` tells.
    package mutating func remove(_ number: UInt32, _ name: Identifier128, _ nameOf: (UInt32) -> Identifier128) {
        let hash = hash(name)
        let part = part(hash)
        guard !parts[part].entries.isEmpty else { return }
        let mask = parts[part].entries.count - 1
        var index = first(hash, mask + 1)
        while parts[part].entries[index] != number &+ 1 {
            if parts[part].entries[index] == 0 { return }
            index = (index + 1) & mask
        }
        // What stands behind moves up as far as it may, so that no search ends too early.
        var hole = index
        while true {
            index = (index + 1) & mask
            let entry = parts[part].entries[index]
            guard entry != 0 else { break }
            let home = first(self.hash(nameOf(entry &- 1)), mask + 1)
            if (index &- home) & mask >= (index &- hole) & mask {
                parts[part].fill(hole, entry, parts[part].tags[index])
                hole = index
            }
        }
        parts[part].fill(hole, 0, 0)
        parts[part].count -= 1
        count -= 1
        if parts[part].count == 0 { parts[part] = Part() }
    }

    private mutating func grow(_ part: Int, _ nameOf: (UInt32) -> Identifier128) {
        let old = parts[part].entries
        let size = max(Self.firstSlots, old.count * 2)
        var grown = Part()
        grown.entries = ContiguousArray(repeating: 0, count: size)
        grown.tags = ContiguousArray(repeating: 0, count: size)
        grown.count = parts[part].count
        for entry in old where entry != 0 {
            let hash = hash(nameOf(entry &- 1))
            var index = first(hash, size)
            while grown.entries[index] != 0 { index = (index + 1) & (size - 1) }
            grown.fill(index, entry, tag(hash))
        }
        parts[part] = grown
    }

    private func hash(_ name: Identifier128) -> UInt64 {
        let product = (name.high ^ seeds.0).multipliedFullWidth(by: name.low ^ seeds.1)
        let mixed = (product.high ^ product.low ^ seeds.0).multipliedFullWidth(by: seeds.1)
        return mixed.high ^ mixed.low
    }

    private func part(_ hash: UInt64) -> Int { Int(hash & ((1 << Self.partBits) - 1)) }
    private func tag(_ hash: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: hash >> 56) }

    /// `count` is a power of two, up to 2^26.
    private func first(_ hash: UInt64, _ count: Int) -> Int {
        Int(truncatingIfNeeded: hash >> Self.partBits) & (count - 1)
    }
}
