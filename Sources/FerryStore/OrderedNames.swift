/// Names in their order. They lie in short runs, so that one more or one less moves little memory.
struct OrderedNames: Sendable {
    /// Where a name is. Good until the next insertion or removal.
    struct Place {
        fileprivate var run: Int
        fileprivate var slot: Int
    }

    private static let runLimit = 256

    /// None is empty.
    private var runs: ContiguousArray<ContiguousArray<ControlName>> = []

    var isEmpty: Bool { runs.isEmpty }

    /// nil at the end.
    func name(at place: Place) -> ControlName? {
        place.run < runs.count && place.slot < runs[place.run].count ? runs[place.run][place.slot] : nil
    }

    /// Of the first that is not before `name`.
    func place(from name: ControlName) -> Place {
        var low = 0
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if let last = runs[middle].last, last < name { low = middle + 1 } else { high = middle }
        }
        guard low < runs.count else { return Place(run: low, slot: 0) }
        var first = 0
        var end = runs[low].count
        while first < end {
            let middle = (first + end) / 2
            if runs[low][middle] < name { first = middle + 1 } else { end = middle }
        }
        return Place(run: low, slot: first)
    }

    /// Of the first behind `name`.
    func place(after name: ControlName) -> Place {
        let place = place(from: name)
        return self.name(at: place) == name ? next(place) : place
    }

    func next(_ place: Place) -> Place {
        guard place.run < runs.count, place.slot + 1 < runs[place.run].count else {
            return Place(run: place.run + 1, slot: 0)
        }
        return Place(run: place.run, slot: place.slot + 1)
    }

    /// Nothing is done when it is there.
    mutating func insert(_ name: ControlName) {
        var place = place(from: name)
        guard self.name(at: place) != name else { return }
        if place.run == runs.count {
            // What comes in order leaves full runs behind.
            if runs.last.map({ $0.count >= Self.runLimit }) ?? true { runs.append([]) }
            place = Place(run: runs.count - 1, slot: runs[runs.count - 1].count)
        }
        runs[place.run].insert(name, at: place.slot)
        guard runs[place.run].count > Self.runLimit else { return }
        let tail = ContiguousArray(runs[place.run][(Self.runLimit / 2)...])
        runs[place.run].removeSubrange((Self.runLimit / 2)...)
        runs.insert(tail, at: place.run + 1)
    }

    mutating func remove(_ name: ControlName) {
        let place = place(from: name)
        guard self.name(at: place) == name else { return }
        runs[place.run].remove(at: place.slot)
        if runs[place.run].isEmpty { runs.remove(at: place.run) }
    }
}

extension ControlName: Comparable {
    package static func < (left: ControlName, right: ControlName) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}
