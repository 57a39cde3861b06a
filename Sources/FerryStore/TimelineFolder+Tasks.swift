package import FerryCore
internal import FerryIO
package import FerryStats

/// One message of a task that the log tells of.
package struct FoundTask: Sendable {
    package let task: Identifier128
    package let device: CID
    /// What has to do with the message, in order of time.
    package let facts: [TimedFact]
}

/// Tasks whose device nobody names: their ids stand in the files' filters beside those of devices.
extension TimelineFolder {
    /// Facts of one message that are held at once.
    private static let factsPerTask = 1_000

    /// Each file is read once at most to find acceptances, and once more to follow what was found.
    func find(_ tasks: [Identifier128], at moment: State) -> [FoundTask] {
        var wanted = Set(tasks)
        var selections: [Selection] = []
        var first = moment.files.count
        for index in moment.files.indices.reversed() where !wanted.isEmpty {
            guard mayHold(wanted.map { CID($0) }, moment.files[index]) else { continue }
            walk(moment.files[index]) { entry in
                guard entry.isAcceptance, let timed = entry.fact, case .accepted(let acceptance) = timed.fact,
                    !acceptance.isBroadcast, wanted.contains(acceptance.taskID.value)
                else { return }
                if !acceptance.taskID.mayHaveSeveralDevices { wanted.remove(acceptance.taskID.value) }
                first = index
                selections.append(Selection(acceptance.taskID.value, entry.device))
            }
        }
        let places = Dictionary(grouping: selections.indices) { selections[$0].device }
        for file in moment.files.dropFirst(first) {
            guard mayHold(Array(places.keys), file) else { continue }
            walk(file) { entry in
                let isOfAll = entry.device == FactWriter.gateway
                guard isOfAll || places[entry.device] != nil, let timed = entry.fact else { return }
                for place in isOfAll ? Array(selections.indices) : places[entry.device] ?? [] {
                    selections[place].facts.take(timed)
                }
            }
        }
        return selections.map { selection in
            var facts = selection.facts
            facts.finish()
            return FoundTask(task: selection.task, device: selection.device, facts: facts.facts)
        }
    }

    private struct Selection {
        let task: Identifier128
        let device: CID
        var facts: FactSelection

        init(_ task: Identifier128, _ device: CID) {
            self.task = task
            self.device = device
            facts = FactSelection(.task(task), limit: TimelineFolder.factsPerTask)
        }
    }

    private func mayHold(_ names: [CID], _ file: TimelineFile) -> Bool {
        guard file.isSealed else { return true }
        guard let sidecar = try? disk.open(TimelineFormat.filterName(file.number)), let size = try? sidecar.size()
        else { return true }
        for name in names {
            guard let offset = DeviceFilter.offset(of: name, fileBytes: size),
                let block = try? sidecar.read(DeviceFilter.blockBytes, at: offset)
            else { return true }
            if DeviceFilter.mayHold(name, block: block, at: offset) { return true }
        }
        return false
    }

    /// What cannot be read is left out: a task in it is answered like one that has aged out.
    private func walk(_ file: TimelineFile, _ body: (FactReader.Entry) -> Void) {
        guard let bytes = try? disk.open(TimelineFormat.name(file.number)).read(file.bytes, at: 0) else { return }
        bytes.withUnsafeBytes { bytes in
            _ = TimelineBlock.walk(bytes, file: file.number) { chunk in
                guard var reader = FactReader(chunk) else { return }
                while let entry = reader.next() { body(entry) }
            }
        }
    }
}
