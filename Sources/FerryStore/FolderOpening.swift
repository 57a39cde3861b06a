internal import FerryCore
internal import FerryIO

/// Everything between a folder's name and a store that can start.
struct FolderOpening {
    let options: StoreOptions
    let disk: any Disk

    /// What opening found and made.
    struct Opened: Sendable {
        var disk: any Disk
        var tables: any Tables
        var files: SegmentFiles
        var journal: Journal
        /// Highest `seq` of each partition.
        var highest: [Seq]
        /// Rows of messages that have ended, to be deleted with the next write.
        var forgotten: [MessageKey] = []
    }

    static func files(_ options: StoreOptions) throws(StoreFailure) -> (Opened, Recovery) {
        let disk = try witnessed(FileDisk(folder: options.folder), options.witness)
        let folder = "\(options.folder)/\(TablesSalvage.name)"
        if options.salvage, let format = try FolderFormat.read(from: disk) {
            try TablesSalvage(disk: disk, options: options).run(format)
        }
        return try FolderOpening(options: options, disk: disk).run { (isUsed) throws(StoreFailure) in
            if isUsed, !options.salvage { try check(folder, disk, options) }
            return try RocksTables(
                folder: folder, cacheBytes: options.cacheBytes, openFiles: options.tableFiles)
        }
    }

    /// The engine believes what is whole of its own list of files, and removes every file that is not in it. So it is asked
    /// first, without the right to change anything, whether it knows of the journal that is there.
    private static func check(_ folder: String, _ disk: any Disk, _ options: StoreOptions) throws(StoreFailure) {
        let tables = try RocksTables(
            folder: folder, cacheBytes: options.cacheBytes, openFiles: options.tableFiles, isReadOnly: true)
        let first = try TablesMeta.read(from: tables)?.firstSegment ?? TablesMeta().firstSegment
        let names: [String]
        do throws(SystemError) { names = try disk.list() } catch { throw StoreFailure(error) }
        let segments = names.compactMap { SegmentHeader.segment(fileName: $0) }.filter { $0 >= first }
        guard let oldest = segments.min(), oldest > first else { return }
        throw StoreFailure(
            .corrupted,
            "The file \(disk.folder)/\(SegmentHeader.fileName(first)) is missing, or the tables in \(folder) are damaged "
                + "and do not know that it is past: \(JournalFolder.wayOut)")
    }

    private static func witnessed(_ disk: FileDisk, _ path: String?) throws(StoreFailure) -> any Disk {
        guard let path else { return disk }
        do throws(SystemError) { return try WitnessedDisk(disk, notes: path) } catch { throw StoreFailure(error) }
    }

    static func memory(
        _ options: StoreOptions, _ disk: MemoryDisk, _ tables: MemoryTables
    ) throws(StoreFailure) -> (Opened, Recovery) {
        try FolderOpening(options: options, disk: disk).run { _ in tables }
    }

    /// `openTables` is called once the folder is known to be ours, and told whether it was used before.
    private func run(
        _ openTables: (_ isUsed: Bool) throws(StoreFailure) -> any Tables
    ) throws(StoreFailure) -> (Opened, Recovery) {
        let files = SegmentFiles()
        guard var format = try FolderFormat.read(from: disk) else {
            try checkUnfinished()
            return try make(files, openTables)
        }
        let tables = try openTables(true)
        let meta = try TablesMeta.read(from: tables) ?? TablesMeta()
        if options.salvage { format = try JournalSalvage(disk: disk, format: format).run(from: meta.firstSegment) }
        var replay = try Replay(
            tables: tables, meta: meta, requestWindow: options.requestWindow, namesMessages: options.namesMessages)
        var reading = JournalRecovery(disk: disk, format: format, files: files, progress: options.progress)
        let position = try reading.run(from: meta.firstSegment) { position, body throws(StoreFailure) in
            try replay.apply(body, at: position)
        }
        let recovery = try replay.finish(epoch: format.epoch, lastTime: position.lastTime)
        var journal = Journal(
            disk: disk, format: format, segmentBytes: options.segmentBytes, files: files, position: position)
        do throws(StoreFailure) {
            try journal.prepare()
        } catch {
            // A full disk is no reason not to deliver what is kept; the journal asks again at every batch.
            guard error.kind == .full else { throw error }
            options.report(error)
        }
        let opened = Opened(
            disk: disk, tables: tables, files: files, journal: journal, highest: recovery.highest,
            forgotten: replay.deadRows)
        return (opened, recovery)
    }

    /// Makes a new folder. `FORMAT` comes last: without it the next start begins anew.
    private func make(
        _ files: SegmentFiles, _ openTables: (_ isUsed: Bool) throws(StoreFailure) -> any Tables
    ) throws(StoreFailure) -> (Opened, Recovery) {
        let tables = try openTables(false)
        guard try TablesMeta.read(from: tables) == nil else { throw formatMissing }
        let format = FolderFormat.new(since: 1)
        let position = Journal.Position(
            nextSegment: 1, nextBatch: 1, previousLength: 0, lastTime: .distantPast)
        var journal = Journal(
            disk: disk, format: format, segmentBytes: options.segmentBytes, files: files, position: position)
        try journal.prepare()
        try format.write(to: disk)
        let recovery = Recovery(
            epoch: format.epoch, lastTime: .distantPast, highest: TablesMeta().highest, firstSegment: 1)
        let opened = Opened(
            disk: disk, tables: tables, files: files, journal: journal, highest: recovery.highest)
        return (opened, recovery)
    }

    /// Whether a folder without `FORMAT` holds nothing but what an interrupted making leaves.
    private func checkUnfinished() throws(StoreFailure) {
        let first = SegmentHeader.fileName(1)
        let ours: Set<String> = [
            "LOCK", FolderFormat.draftName, SegmentHeader.draftName, "tables", "lost+found", "outbox.jsonl", first,
        ]
        let names: [String]
        var bytes: [UInt8] = []
        do throws(SystemError) {
            names = try disk.list()
            if names.contains(first) {
                let file = try disk.open(first)
                bytes = try file.read(try file.size(), at: 0)
            }
        } catch {
            throw StoreFailure(error)
        }
        guard bytes.dropFirst(SegmentHeader.bytes).allSatisfy({ $0 == 0 }) else { throw formatMissing }
        guard let stranger = names.filter({ !ours.contains($0) }).min() else { return }
        if SegmentHeader.segment(fileName: stranger) != nil { throw formatMissing }
        throw StoreFailure(
            .refused, "The folder \(disk.folder) holds \(stranger) and is no data folder: name an empty or a new one")
    }

    private var formatMissing: StoreFailure {
        StoreFailure(
            .corrupted,
            "The data folder \(disk.folder) lacks its file \(FolderFormat.name): restore the folder from a backup")
    }
}
