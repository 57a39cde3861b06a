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
        /// Files of earlier processes could not be read, and are not among `files`.
        var isPartial = false
        /// Files whose damage was reported.
        var damaged: Set<UInt32> = []
    }

    /// Comings and goings that are told where a message is not found.
    private static let presenceLimit = 500

    init(disk: any Disk, options: TimelineOptions) {
        self.disk = disk
        self.options = options
    }

    // MARK: - Questions

    /// What there is at the moment of a question. More may be written while it is answered, but is not looked at: what an
    /// owner says of its device is of that moment too.
    func snapshot() -> State { state.withLock { $0 } }

    func answer(_ question: TimelineQuestion, at moment: State) -> ([TimedFact], TimelineCoverage) {
        var coverage = TimelineCoverage()
        coverage.from = moment.files.first?.firstTime
        coverage.hasAgedOut = moment.hasAgedOut
        coverage.factsLost = moment.factsLost
        coverage.isPartial = moment.isPartial
        let facts =
            if let target = question.target {
                facts(of: target, question.device, moment.files, &coverage)
            } else {
                newestFacts(question, moment.files, &coverage)
            }
        return (facts, coverage)
    }

    private func newestFacts(
        _ question: TimelineQuestion, _ files: [TimelineFile], _ coverage: inout TimelineCoverage
    ) -> [TimedFact] {
        var parts: [[TimedFact]] = []
        var own = 0
        var count = 0
        var told: UInt64 = 0
        for file in files.reversed() {
            if own >= question.limit {
                coverage.hasMore = true
                break
            }
            var part: [TimedFact] = []
            walk(file, of: question.device, &coverage) { timed, isOwn in
                if isOwn { own += 1 }
                count += 1
                if case .factsLost(let lost) = timed.fact { told = told &+ lost }
                part.append(timed)
                if part.count >= 2 * question.limit { part.removeFirst(part.count - question.limit) }
            }
            parts.append(part.suffix(question.limit))
        }
        coverage.hasMore = coverage.hasMore || count > question.limit
        coverage.factsLost = max(coverage.factsLost, told)
        return Array(parts.reversed().joined().suffix(question.limit))
    }

    /// The file with the acceptance is looked for from the end, however far it is; from there on all is read again, in
    /// order, for the message alone.
    private func facts(
        of target: TimelineTarget, _ device: CID, _ files: [TimelineFile], _ coverage: inout TimelineCoverage
    ) -> [TimedFact] {
        var told: UInt64 = 0
        var presence: [[TimedFact]] = []
        var presenceCount = 0
        var start: Int?
        for index in files.indices.reversed() where start == nil {
            var isFound = false
            var part: [TimedFact] = []
            walk(files[index], of: device, &coverage) { timed, _ in
                if case .factsLost(let lost) = timed.fact { told = told &+ lost }
                if timed.isAcceptance(of: target) { isFound = true }
                guard timed.fact.isPresence else { return }
                part.append(timed)
                if part.count >= 2 * Self.presenceLimit { part.removeFirst(Self.presenceLimit) }
            }
            if isFound { start = index }
            if presenceCount < Self.presenceLimit {
                presenceCount += part.count
                presence.append(part)
            }
        }
        coverage.factsLost = max(coverage.factsLost, told)
        // Whose message is not found may at least be told of its presence.
        guard let start else { return Array(presence.reversed().joined().suffix(Self.presenceLimit)) }
        var selection = FactSelection(target)
        for file in files[start...] where !selection.isComplete {
            walk(file, of: device, &coverage) { timed, _ in selection.take(timed) }
        }
        selection.finish()
        coverage.hasMore = selection.isThinned
        return selection.facts
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
        guard let bytes = try? disk.open(TimelineFormat.name(file.number)).read(file.bytes, at: 0) else { return }
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
        FactReader.eachName(in: chunk) { filter.insert($0) }
    }

    /// Calls `body` with the device's facts and the gateway's, in order, and whether each is the device's own. What cannot be
    /// told is noted in `coverage`.
    private func walk(
        _ file: TimelineFile, of device: CID, _ coverage: inout TimelineCoverage, _ body: (TimedFact, Bool) -> Void
    ) {
        guard mayHold(device, file) else { return }
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try disk.open(TimelineFormat.name(file.number)).read(file.bytes, at: 0)
        } catch {
            if error.code == ErrorNumber.noSuchFile {
                // It has aged out since the question was asked.
                coverage.hasAgedOut = true
            } else {
                coverage.isPartial = true
                options.report(StoreFailure(error))
            }
            return
        }
        let walk = bytes.withUnsafeBytes { bytes in
            TimelineBlock.walk(bytes, file: file.number) { chunk in
                guard var reader = FactReader(chunk) else { return }
                while let entry = reader.next() {
                    guard entry.device == device || entry.device == FactWriter.gateway, let fact = entry.fact else {
                        continue
                    }
                    body(fact, entry.device == device)
                }
            }
        }
        guard walk.damages > 0 else { return }
        coverage.isPartial = true
        reportDamage(file.number)
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
}
