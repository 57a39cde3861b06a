internal import FerryCore

/// Values by device, in the order of cids. They lie in short runs, so that one more or one less moves little memory, and a
/// walk may stop at any cid and go on behind it, whatever came and went meanwhile.
struct OrderedDevices<Value: Sendable>: Sendable {
    struct Element: Sendable {
        let cid: CID
        var value: Value
    }

    /// Where an element is. Good until the next insertion or removal.
    struct Place: Sendable {
        fileprivate(set) var run: Int
        fileprivate(set) var slot: Int
    }

    private static var runLimit: Int { 256 }

    /// None is empty.
    private var runs: ContiguousArray<ContiguousArray<Element>> = []
    private(set) var count = 0

    subscript(place: Place) -> Element {
        get { runs[place.run][place.slot] }
        _modify { yield &runs[place.run][place.slot] }
    }

    func place(of cid: CID) -> Place? {
        let place = lowerBound(cid)
        return isThere(place) && self[place].cid == cid ? place : nil
    }

    /// Of the first element behind `cid`, of the very first for nil.
    func place(after cid: CID?) -> Place? {
        guard let cid else { return count > 0 ? Place(run: 0, slot: 0) : nil }
        var place = lowerBound(cid)
        guard isThere(place) else { return nil }
        if self[place].cid == cid { place = next(place) }
        return isThere(place) ? place : nil
    }

    /// Of the element behind; nil at the end.
    func place(after place: Place) -> Place? {
        let next = next(place)
        return isThere(next) ? next : nil
    }

    /// The device is not in it yet.
    mutating func insert(_ cid: CID, _ value: Value) {
        count += 1
        let element = Element(cid: cid, value: value)
        guard !runs.isEmpty else {
            runs.append([element])
            return
        }
        var place = lowerBound(cid)
        if place.run == runs.count { place = Place(run: runs.count - 1, slot: runs[runs.count - 1].count) }
        runs[place.run].insert(element, at: place.slot)
        guard runs[place.run].count > Self.runLimit else { return }
        // What comes in order, as at a start, leaves full runs behind.
        let isAtEnd = place.run == runs.count - 1 && place.slot == Self.runLimit
        let cut = isAtEnd ? Self.runLimit : Self.runLimit / 2
        let tail = ContiguousArray(runs[place.run][cut...])
        runs[place.run].removeSubrange(cut...)
        runs.insert(tail, at: place.run + 1)
    }

    @discardableResult
    mutating func remove(_ cid: CID) -> Value? {
        guard let place = place(of: cid) else { return nil }
        count -= 1
        let removed = runs[place.run].remove(at: place.slot)
        if runs[place.run].isEmpty { runs.remove(at: place.run) }
        return removed.value
    }

    private func isThere(_ place: Place) -> Bool { place.run < runs.count && place.slot < runs[place.run].count }

    private func next(_ place: Place) -> Place {
        place.slot + 1 < runs[place.run].count
            ? Place(run: place.run, slot: place.slot + 1) : Place(run: place.run + 1, slot: 0)
    }

    /// The place of `cid`, or the one that it would push back: in the first run that does not end before it.
    private func lowerBound(_ cid: CID) -> Place {
        var low = 0
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if let last = runs[middle].last, last.cid < cid { low = middle + 1 } else { high = middle }
        }
        guard low < runs.count else { return Place(run: low, slot: 0) }
        var first = 0
        var end = runs[low].count
        while first < end {
            let middle = (first + end) / 2
            if runs[low][middle].cid < cid { first = middle + 1 } else { end = middle }
        }
        return Place(run: low, slot: first)
    }
}
