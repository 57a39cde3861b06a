internal import FerryCore
internal import FerryIO
internal import FerryStats
internal import Synchronization

/// One file of the timeline, as writer and reader share what they know of it.
struct TimelineFile: Sendable {
    let number: UInt32
    /// Of its first fact.
    let firstTime: Instant
    /// Of its last one; nil for a file of an earlier process, whose last fact is not newer than the next file's first.
    var lastTime: Instant?
    /// Valid bytes.
    var bytes: Int
    /// Of the sidecar, whether or not it is written already.
    var filterBytes = 0
    /// Nothing is written to it any more.
    var isSealed = false
}

/// The files of a timeline log: which there are, oldest first, and how a question is answered from them. One thread writes
/// (`TimelineWriter`), one reads.
final class TimelineFolder: Sendable {
    let disk: any Disk
    let options: TimelineOptions
    let state = Mutex(State())

    struct State: Sendable {
        var files: [TimelineFile] = []
        /// In this process.
        var factsLost: UInt64 = 0
        var hasAgedOut = false
        /// Files whose damage was reported.
        var damaged: Set<UInt32> = []
    }

    /// Facts of one device that are looked at for one question.
    private static let factLimit = 100_000

    init(disk: any Disk, options: TimelineOptions) {
        self.disk = disk
        self.options = options
    }

    // MARK: - Questions

    /// What there is at the moment of a question. More may be written while it is answered, but is not looked at: what an
    /// owner says of its device is of that moment too.
    func snapshot() -> State { state.withLock { $0 } }

    func answer(_ question: TimelineQuestion, at moment: State) -> ([TimedFact], TimelineCoverage) {
        let files = moment.files
        var coverage = TimelineCoverage()
        coverage.from = files.first?.firstTime
        coverage.hasAgedOut = moment.hasAgedOut
        var parts: [[TimedFact]] = []
        var own = 0
        var isComplete = true
        search: for file in files.reversed() {
            guard mayHold(question.device, file) else { continue }
            let part = facts(of: question.device, in: file)
            own += part.own
            parts.append(part.facts)
            if let target = question.target, part.facts.contains(where: { $0.isAcceptance(of: target) }) {
                break search
            }
            let isEnough = question.target == nil ? own >= question.limit : own >= Self.factLimit
            if isEnough, file.number != files.first?.number {
                isComplete = false
                break search
            }
        }
        let selection = FactSelection.select(
            Array(parts.reversed().joined()), target: question.target, limit: question.limit)
        coverage.hasMore = selection.hasMore || !isComplete
        var told: UInt64 = 0
        for case .factsLost(let count) in parts.joined().map(\.fact) { told = told &+ count }
        coverage.factsLost = max(told, moment.factsLost)
        return (selection.facts, coverage)
    }

    /// The file may tell of the device, or of starts and stops of the gateway.
    private func mayHold(_ device: CID, _ file: TimelineFile) -> Bool {
        guard file.isSealed else { return true }
        do throws(SystemError) {
            let sidecar = try disk.open(TimelineFormat.filterName(file.number))
            let size = try sidecar.size()
            for sought in [device, FactWriter.gateway] {
                guard let offset = DeviceFilter.offset(of: sought, fileBytes: size) else { return true }
                let block = try sidecar.read(DeviceFilter.blockBytes, at: offset)
                if DeviceFilter.mayHold(sought, block: block, at: offset) { return true }
            }
            return false
        } catch {
            // Missing, as after a crash: the answer is in the file itself, and the sidecar is made anew.
            if error.code == ErrorNumber.noSuchFile { rebuildFilter(of: file) }
            return true
        }
    }

    private func rebuildFilter(of file: TimelineFile) {
        guard let bytes = contents(of: file) else { return }
        var filter = DeviceFilter(fileBytes: options.fileBytes)
        bytes.withUnsafeBytes { bytes in
            _ = TimelineBlock.walk(bytes, file: file.number) { chunk in Self.insert(chunk, into: &filter) }
        }
        try? write(filter, number: file.number)
    }

    func write(_ filter: DeviceFilter, number: UInt32) throws(SystemError) {
        try disk.create(TimelineFormat.filterName(number), bytes: 0).write(filter.encoded(), at: 0)
    }

    static func insert(_ chunk: UnsafeRawBufferPointer, into filter: inout DeviceFilter) {
        guard var reader = FactReader(chunk) else { return }
        while let entry = reader.next() { filter.insert(entry.device) }
    }

    /// The device's facts and the gateway's, in order, and how many are the device's own. None when the file is gone.
    private func facts(of device: CID, in file: TimelineFile) -> (facts: [TimedFact], own: Int) {
        guard let bytes = contents(of: file) else { return ([], 0) }
        var found: [TimedFact] = []
        var own = 0
        let walk = bytes.withUnsafeBytes { bytes in
            TimelineBlock.walk(bytes, file: file.number) { chunk in
                guard var reader = FactReader(chunk) else { return }
                while let entry = reader.next() {
                    guard entry.device == device || entry.device == FactWriter.gateway, let fact = entry.fact else {
                        continue
                    }
                    if entry.device == device { own += 1 }
                    found.append(fact)
                }
            }
        }
        if walk.damages > 0 { reportDamage(file.number) }
        return (found, own)
    }

    func reportDamage(_ number: UInt32) {
        let isNew = state.withLock { $0.damaged.insert(number).inserted }
        guard isNew else { return }
        options.report(
            StoreFailure(
                .corrupted,
                "A part of \(disk.folder)/\(TimelineFormat.name(number)) is damaged: its facts are skipped. Nothing that "
                    + "was promised depends on them"))
    }

    private func contents(of file: TimelineFile) -> [UInt8]? {
        do throws(SystemError) {
            return try disk.open(TimelineFormat.name(file.number)).read(file.bytes, at: 0)
        } catch {
            if error.code != ErrorNumber.noSuchFile { options.report(StoreFailure(error)) }
            return nil
        }
    }
}
