internal import FerryCore
internal import FerryIO
internal import FerryStats
internal import Synchronization

/// The writing end of a timeline log: gathers chunks into blocks, blocks into files, and removes the oldest files for age or
/// room. What the disk refuses is lost, counted, and told in the log itself as soon as it can be written again.
struct TimelineWriter {
    private let folder: TimelineFolder
    private var current: Current?
    private var nextNumber: UInt32 = 1
    private var nextLook = Instant.distantPast
    private static let lookInterval = Duration.milliseconds(250)
    /// The folder was listed.
    private var knowsNames = false
    private var block: [UInt8] = []
    private var blockFacts = 0
    private var blockTime = Instant.distantPast
    private var unreportedLoss: UInt64 = 0
    private var isFailing = false
    private var namesChanged = false
    /// Something was written and not synced yet.
    private(set) var isDirty = false

    private struct Current {
        let number: UInt32
        let file: any DiskFile
        var filter: DeviceFilter

        /// The devices in a block that was written.
        mutating func note(_ block: [UInt8]) {
            block.withUnsafeBytes { bytes in
                var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[TimelineBlock.headerBytes...]))
                while let length = reader.uint32(), let chunk = reader.raw(Int(length)) {
                    TimelineFolder.insert(chunk, into: &filter)
                }
            }
        }
    }

    /// Blocks are written when they have so many bytes.
    private static let blockBytes = 256 << 10

    init(_ folder: TimelineFolder) { self.folder = folder }

    private var options: TimelineOptions { folder.options }

    // MARK: - Opening

    /// Finds what is there; goes on in the newest file when that has room. What cannot be read is left as it is.
    mutating func open() {
        var failures: [SystemError] = []
        do throws(SystemError) {
            let numbers = try learnNames()
            for number in numbers {
                do throws(SystemError) {
                    try adopt(number, isLast: number == numbers.last)
                } catch {
                    failures.append(error)
                }
            }
        } catch {
            return fail(error)
        }
        guard let first = failures.first else { return }
        folder.state.withLock { $0.isPartial = true }
        let failure = StoreFailure(first)
        let others = failures.count > 1 ? ", and those of \(failures.count - 1) other files," : ""
        options.report(
            StoreFailure(
                failure.kind,
                "\(failure.description): its facts\(others) are left out of what the timeline tells, nothing else"))
    }

    /// The files' numbers, rising. The next one is behind them all, whatever can be read of them: nothing is written over.
    private mutating func learnNames() throws(SystemError) -> [UInt32] {
        let names = try folder.disk.list()
        let numbers = names.compactMap { TimelineFormat.number($0) }.sorted()
        for name in names where name.hasSuffix(".filter") && name.hasPrefix("facts-") {
            let log = String(name.dropLast(6)) + "log"
            if TimelineFormat.number(log).map({ !numbers.contains($0) }) ?? true { try? folder.disk.remove(name) }
        }
        if let last = numbers.last { nextNumber = last == .max ? .max : last + 1 }
        if let first = numbers.first, first > 1 { folder.state.withLock { $0.hasAgedOut = true } }
        knowsNames = true
        return numbers
    }

    /// A number that no file bears.
    private mutating func freeNumber() throws(SystemError) -> UInt32 {
        if !knowsNames, try !learnNames().isEmpty { folder.state.withLock { $0.isPartial = true } }
        while isTaken(nextNumber) {
            guard nextNumber < .max else { throw SystemError("name another file", ErrorNumber.noSpace) }
            nextNumber += 1
        }
        return nextNumber
    }

    private func isTaken(_ number: UInt32) -> Bool {
        do throws(SystemError) {
            _ = try folder.disk.open(TimelineFormat.name(number))
            return true
        } catch {
            return error.code != ErrorNumber.noSuchFile
        }
    }

    private mutating func adopt(_ number: UInt32, isLast: Bool) throws(SystemError) {
        let file = try folder.disk.open(TimelineFormat.name(number))
        let size = try file.size()
        let header = try file.read(TimelineFormat.headerBytes, at: 0)
        guard let firstTime = header.withUnsafeBytes({ TimelineFormat.firstTime($0, number: number) }) else {
            // The newest may have been begun when the power went; any other is damaged.
            if !isLast {
                folder.reportDamage(number)
                folder.state.withLock { $0.hasAgedOut = true }
            }
            try folder.disk.remove(TimelineFormat.name(number))
            namesChanged = true
            return
        }
        var found = TimelineFile(number: number, firstTime: firstTime, bytes: size, isSealed: true)
        // Also where the sidecar is missing: the first question that needs it makes it.
        found.filterBytes = DeviceFilter.encodedBytes(fileBytes: options.fileBytes)
        if isLast {
            let bytes = try file.read(size, at: 0)
            var filter = DeviceFilter(fileBytes: options.fileBytes)
            let walk = bytes.withUnsafeBytes { bytes in
                TimelineBlock.walk(bytes, file: number) { TimelineFolder.insert($0, into: &filter) }
            }
            if walk.damages > 0 { folder.reportDamage(number) }
            // Behind the last whole block is what a crash cut off.
            if walk.end < size { try file.resize(to: walk.end) }
            found.bytes = walk.end
            found.lastTime = walk.lastTime ?? firstTime
            found.isSealed = false
            current = Current(number: number, file: file, filter: filter)
        }
        let adopted = found
        folder.state.withLock { $0.files.append(adopted) }
    }

    // MARK: - Writing

    /// Takes a chunk of `count` facts.
    mutating func append(_ chunk: [UInt8], count: Int) {
        guard chunk.count > FactWriter.headerBytes else { return }
        if block.isEmpty { block.append(contentsOf: repeatElement(0, count: TimelineBlock.headerBytes)) }
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: chunk.count).bigEndian) { block.append(contentsOf: $0) }
        block.append(contentsOf: chunk)
        blockFacts += count
        blockTime = max(blockTime, Self.time(of: chunk))
        if block.count >= min(Self.blockBytes, options.fileBytes / 2) { flush() }
    }

    /// A fact of the gateway itself.
    mutating func append(_ fact: Fact, at time: Instant? = nil) {
        var writer = FactWriter()
        writer.append(fact, of: FactWriter.gateway, at: time ?? options.clock())
        append(writer.take(), count: 1)
    }

    mutating func lose(_ count: UInt64) {
        unreportedLoss = unreportedLoss &+ count
        folder.state.withLock { $0.factsLost = $0.factsLost &+ count }
    }

    /// Writes what was gathered.
    mutating func flush() {
        // The loss stands where it was: before what comes after it.
        if unreportedLoss > 0, !isFailing {
            let count = unreportedLoss
            unreportedLoss = 0
            append(.factsLost(count))
        }
        guard !block.isEmpty else { return }
        let facts = blockFacts
        do throws(SystemError) {
            try writeBlock()
            isFailing = false
            isDirty = true
        } catch {
            lose(UInt64(facts))
            fail(error)
        }
        block.removeAll(keepingCapacity: true)
        blockFacts = 0
        enforce()
    }

    private mutating func writeBlock() throws(SystemError) {
        var firstTime = blockTime
        block.withUnsafeBytes { bytes in
            var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[(TimelineBlock.headerBytes + 4)...]))
            if let time = reader.uint64() { firstTime = Instant(milliseconds: Int64(bitPattern: time)) }
        }
        if let file = newest, file.bytes + block.count > options.fileBytes || isOld(file) { seal() }
        try giveWay()
        try makeRoom(for: block.count)
        if current == nil { try begin(at: firstTime) }
        // Not a copy of `current`: while there is one, each insertion would copy the whole filter.
        guard let number = current?.number, let handle = current?.file, let file = newest else { return }
        TimelineBlock.seal(&block, lastTime: blockTime, file: number, offset: file.bytes)
        try handle.write(block, at: file.bytes)
        let (count, time) = (block.count, blockTime)
        folder.state.withLock { state in
            guard let last = state.files.indices.last else { return }
            state.files[last].bytes += count
            state.files[last].lastTime = time
        }
        current?.note(block)
    }

    private var newest: TimelineFile? {
        current == nil ? nil : folder.state.withLock { $0.files.last }
    }

    private func isOld(_ file: TimelineFile) -> Bool { options.clock() >= file.firstTime + options.fileAge }

    private mutating func begin(at firstTime: Instant) throws(SystemError) {
        try spareRoom(for: options.fileBytes)
        let number = try freeNumber()
        let file = try folder.disk.create(TimelineFormat.name(number), bytes: 0)
        namesChanged = true
        do throws(SystemError) {
            try file.write(TimelineFormat.header(number, firstTime: firstTime), at: 0)
        } catch {
            try? folder.disk.remove(TimelineFormat.name(number))
            throw error
        }
        nextNumber = number == .max ? .max : number + 1
        let filter = DeviceFilter(fileBytes: options.fileBytes)
        var found = TimelineFile(number: number, firstTime: firstTime, bytes: TimelineFormat.headerBytes)
        found.filterBytes = DeviceFilter.encodedBytes(fileBytes: options.fileBytes)
        let begun = found
        folder.state.withLock { $0.files.append(begun) }
        current = Current(number: number, file: file, filter: filter)
    }

    /// No more is written to the newest file; its sidecar is. Without one a question reads the file and makes it.
    private mutating func seal() {
        guard let sealed = current else { return }
        current = nil
        do throws(SystemError) {
            try sealed.file.sync()
            try folder.write(sealed.filter, number: sealed.number)
            namesChanged = true
        } catch {
            fail(error)
        }
        folder.state.withLock { state in
            if let last = state.files.indices.last { state.files[last].isSealed = true }
        }
    }

    // MARK: - Age and room

    /// Removes what is too old; and begins another file when the newest has been written to for long.
    mutating func enforce() {
        let now = options.clock()
        if let file = newest, isOld(file) { seal() }
        while true {
            let files = folder.state.withLock { $0.files }
            guard let oldest = files.first else { break }
            let end = oldest.lastTime ?? (files.count > 1 ? files[1].firstTime : now)
            guard files.count > 1 || current == nil, end + options.age < now else { break }
            remove(oldest)
        }
        do throws(SystemError) { try makeRoom(for: 0) } catch { fail(error) }
    }

    private mutating func makeRoom(for bytes: Int) throws(SystemError) {
        while true {
            let files = folder.state.withLock { $0.files }
            let used = files.reduce(0) { $0 + $1.bytes + $1.filterBytes }
            guard used + bytes > options.bytes, let oldest = files.first, files.count > 1 else { return }
            remove(oldest)
        }
    }

    /// What the journal may need is not taken from it, and is given back when others take it. The disk is asked now and
    /// then only: it may say late that a file's room is free, and each time would cost another file.
    private mutating func giveWay() throws(SystemError) {
        let now = options.clock()
        guard options.reservedBytes > 0, now >= nextLook || now + Self.lookInterval < nextLook else { return }
        nextLook = now + Self.lookInterval
        try spareRoom(for: 0)
    }

    /// While nothing is noted, too.
    mutating func watchRoom() { try? giveWay() }

    var needsWatch: Bool { options.reservedBytes > 0 && folder.state.withLock { !$0.files.isEmpty } }

    private mutating func spareRoom(for bytes: Int) throws(SystemError) {
        guard options.reservedBytes > 0, let free = try folder.disk.freeBytes() else { return }
        var missing = options.reservedBytes + bytes - free
        while missing > 0 {
            guard let oldest = folder.state.withLock({ $0.files.first }) else {
                throw SystemError("leave \(options.reservedBytes) bytes free", ErrorNumber.noSpace)
            }
            remove(oldest)
            missing -= oldest.bytes + oldest.filterBytes
        }
    }

    private mutating func remove(_ file: TimelineFile) {
        if current?.number == file.number { current = nil }
        folder.state.withLock { state in
            state.files.removeAll { $0.number == file.number }
            state.hasAgedOut = true
        }
        do throws(SystemError) {
            try folder.disk.remove(TimelineFormat.name(file.number))
            try folder.disk.remove(TimelineFormat.filterName(file.number))
        } catch {
            fail(error)
        }
        namesChanged = true
    }

    /// Returns when what was written is on the disk, or the disk has refused.
    mutating func sync() {
        isDirty = false
        do throws(SystemError) {
            try current?.file.sync()
            if namesChanged { try folder.disk.syncDirectory() }
            namesChanged = false
        } catch {
            fail(error)
        }
    }

    /// Told once, until a block is written again.
    private mutating func fail(_ error: SystemError) {
        if !isFailing {
            let failure = StoreFailure(error)
            options.report(
                StoreFailure(
                    failure.kind, "\(failure.description): facts are missing in the timeline, nothing else"))
        }
        isFailing = true
    }

    private static func time(of chunk: [UInt8]) -> Instant {
        chunk.withUnsafeBytes { FactReader($0)?.at } ?? .distantPast
    }
}
