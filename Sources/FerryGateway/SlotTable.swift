/// What some connections have beside their slot, found by the slot's number without hashing: four bytes for each slot, and
/// a place for each value.
struct SlotTable<Value> {
    /// Place of a slot's value plus one; 0 for a slot that has none.
    private var places: ContiguousArray<Int32> = []
    private var values: ContiguousArray<Value?> = []
    private var free: [Int32] = []

    var count: Int { values.count - free.count }

    /// `slot` is a slot of the shard's connections, 0 or above.
    subscript(slot: Int) -> Value? {
        _read {
            if let place = place(of: slot) { yield values[place] } else { yield nil }
        }
        _modify {
            if let place = place(of: slot) {
                yield &values[place]
                if values[place] == nil { vacate(slot, place) }
            } else {
                var value: Value?
                yield &value
                if let value { insert(value, slot) }
            }
        }
    }

    mutating func removeValue(forKey slot: Int) -> Value? {
        guard let place = place(of: slot) else { return nil }
        let value = values[place]
        values[place] = nil
        vacate(slot, place)
        return value
    }

    /// All values, in no order.
    var all: some Sequence<Value> { values.lazy.compactMap { $0 } }

    private func place(of slot: Int) -> Int? {
        guard slot < places.count, places[slot] != 0 else { return nil }
        return Int(places[slot]) - 1
    }

    private mutating func insert(_ value: Value, _ slot: Int) {
        if slot >= places.count {
            places.append(contentsOf: repeatElement(0, count: max(64, slot + 1 - places.count)))
        }
        let place: Int
        if let reused = free.popLast() {
            place = Int(reused)
            values[place] = value
        } else {
            place = values.count
            values.append(value)
        }
        places[slot] = Int32(place + 1)
    }

    private mutating func vacate(_ slot: Int, _ place: Int) {
        places[slot] = 0
        free.append(Int32(place))
        // After a rush nothing stays behind but the places.
        guard count == 0 else { return }
        values = []
        free = []
    }
}
