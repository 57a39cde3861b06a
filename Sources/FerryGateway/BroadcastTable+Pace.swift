internal import FerryCore
internal import FerryStore

/// Broadcasts that get their places by and by. Each has one entry from the beginning, which fills; so their ordinals say nothing
/// of the order of their places, and where a device stands is compared with the arrival of the place.
extension BroadcastTable {
    /// The entry's index by its task; the last where there are several.
    func index(_ number: Int, task: Identifier128) -> Int? {
        guard lines.indices.contains(number) else { return nil }
        return lines[number].placed.lastIndex { $0.broadcast.taskID.value == task }
    }

    /// An entry that fills: one that was found at the start, or a new one without places.
    mutating func beginPaced(_ number: Int, _ broadcast: AcceptedBroadcast, _ content: BroadcastContent) {
        let index: Int
        if let found = self.index(number, task: broadcast.taskID.value) {
            index = found
        } else {
            add(
                number, broadcast, content, seqs: [Seq](repeating: .zero, count: partitions), segment: 0, unreached: 0)
            index = lines[number].placed.count - 1
        }
        guard lines[number].placed[index].arrivals.isEmpty else { return }
        let ordinal = lines[number].placed[index].ordinal
        lines[number].placed[index].arrivals = lines[number].placed[index].seqs.map { $0 > .zero ? ordinal : 0 }
        lines[number].placed[index].isPlacing = true
        lines[number].pacedCount += 1
        bytes += partitions * 4
    }

    /// More of its places are on disk, for so many devices. `seqs` is zero for the others.
    mutating func extend(_ number: Int, _ index: Int, _ seqs: [Seq], segment: UInt32, unreached count: Int) {
        newest += 1
        for local in seqs.indices where seqs[local] > .zero {
            lines[number].placed[index].seqs[local] = seqs[local]
            lines[number].placed[index].arrivals[local] = newest
        }
        lines[number].placed[index].unreached += count
        unreached += count
        // Once the tables have the places up to here, these are the first that they lack.
        if lines[number].placed[index].segment == 0 { lines[number].placed[index].segment = segment }
        lines[number].placed[index].pass = lines[number].passes + 1
    }

    /// It has all of its places.
    mutating func endPaced(_ number: Int, _ index: Int) { lines[number].placed[index].isPlacing = false }

    /// In order of `seq`, with those that came by and by.
    func addingPaced(
        _ usual: [Int], _ number: Int, after ordinal: UInt32, _ local: Int, above acknowledged: Seq
    ) -> [Int] {
        var found = usual
        for index in lines[number].placed.indices {
            let placed = lines[number].placed[index]
            guard !placed.arrivals.isEmpty, placed.arrivals[local] > ordinal, placed.seqs[local] > acknowledged else {
                continue
            }
            found.append(index)
        }
        return found.sorted { lines[number].placed[$0].seqs[local] < lines[number].placed[$1].seqs[local] }
    }

    /// Devices of the app that are registered here.
    func registeredCount(_ number: Int) -> Int { lines[number].registered.reduce(0, +) }

    /// How many partitions from the first on have their place of the task.
    func placedCount(_ number: Int, task: Identifier128) -> Int {
        var count = partitions
        var seqs = [Seq](repeating: .zero, count: partitions)
        for placed in lines[number].placed where placed.broadcast.taskID.value == task {
            for local in seqs.indices { seqs[local] = max(seqs[local], placed.seqs[local]) }
        }
        if let first = seqs.firstIndex(of: .zero) { count = first }
        return count
    }
}
