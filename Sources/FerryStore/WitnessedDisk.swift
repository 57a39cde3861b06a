package import FerryIO
internal import Synchronization

/// A disk that notes in a file what has been synced, so that whoever kills the process can take away all the rest, as a
/// power cut might. For the crash campaign; a gateway without it has none of this in its way.
///
/// A line each, appended at once and in order, later ones replacing earlier ones: `S name bytes`, the content of a file is
/// durable up to there; `M name target`, a rename, durable or not; `N name …`, the durable names. Notes are not synced
/// themselves: they outlive the process, and need no more. Syncs take some milliseconds longer than the disk needs, so that
/// a kill by chance often falls between a write and its sync. Bytes that are written again where they were durable count as
/// durable all the time: the journal overwrites with the same bytes only.
package final class WitnessedDisk: Disk {
    private let base: any Disk
    private let notes: WitnessNotes
    /// Of the last handle that was given out for each name.
    private let labels = Mutex<[String: FileLabel]>([:])
    /// Held over a sync of the folder: of two threads' notes the later one would else tell of the earlier look.
    private let directorySync = Mutex(())

    package var folder: String { base.folder }

    package init(_ base: any Disk, notes path: String) throws(SystemError) {
        self.base = base
        notes = try WitnessNotes(path)
    }

    package func list() throws(SystemError) -> [String] { try base.list() }

    package func create(_ name: String, bytes: Int) throws(SystemError) -> any DiskFile {
        // What bore the name before is gone from here on.
        try notes.add("S \(name) 0")
        return WitnessedFile(try base.create(name, bytes: bytes), label(name), written: 0, notes)
    }

    package func prepare(_ bytes: Int) { base.prepare(bytes) }

    package func open(_ name: String) throws(SystemError) -> any DiskFile {
        let file = try base.open(name)
        return WitnessedFile(file, label(name), written: try file.size(), notes)
    }

    private func label(_ name: String) -> FileLabel {
        let label = FileLabel(name)
        labels.withLock { $0[name] = label }
        return label
    }

    package func remove(_ name: String) throws(SystemError) { try base.remove(name) }

    package func rename(_ name: String, to target: String) throws(SystemError) {
        try base.rename(name, to: target)
        try notes.add("M \(name) \(target)")
        labels.withLock { labels in
            let label = labels.removeValue(forKey: name)
            label?.name.withLock { $0 = target }
            labels[target] = label
        }
    }

    package func syncDirectory() throws(SystemError) {
        try directorySync.withLock { _ throws(SystemError) in
            // Before the sync: what comes into being during it may not be in it.
            let names = try base.list().filter { $0.hasPrefix("journal-") || $0.hasPrefix(FolderFormat.name) }
            try base.syncDirectory()
            try notes.add((["N"] + names.sorted()).joined(separator: " "))
        }
    }

    package func freeBytes() throws(SystemError) -> Int? { try base.freeBytes() }
}

/// What a file is called now: an open one follows its renames.
private final class FileLabel: Sendable {
    let name: Mutex<String>
    init(_ name: String) { self.name = Mutex(name) }
}

private final class WitnessedFile: DiskFile {
    private let base: any DiskFile
    private let label: FileLabel
    private let notes: WitnessNotes
    /// Up to where anything was written.
    private let written: Mutex<Int>

    init(_ base: any DiskFile, _ label: FileLabel, written: Int, _ notes: WitnessNotes) {
        self.base = base
        self.label = label
        self.notes = notes
        self.written = Mutex(written)
    }

    func size() throws(SystemError) -> Int { try base.size() }

    func resize(to bytes: Int) throws(SystemError) {
        try base.resize(to: bytes)
        written.withLock { $0 = min($0, bytes) }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
        try base.write(bytes, at: offset)
        written.withLock { $0 = max($0, offset + bytes.count) }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
        try base.read(into: buffer, at: offset)
    }

    func sync() throws(SystemError) {
        let end = written.withLock { $0 }
        try notes.delay()
        try base.sync()
        try notes.add("S \(label.name.withLock { $0 }) \(end)")
    }
}

/// The file of notes; goes on behind what it holds already.
private final class WitnessNotes: Sendable {
    private let file: OpenFile
    private let end: Mutex<Int>
    private static let delayMilliseconds: Int32 = 3

    init(_ path: String) throws(SystemError) {
        file = try OpenFile.create(path)
        end = Mutex(try file.size())
    }

    /// Waits as a slower disk would.
    func delay() throws(SystemError) { _ = try Poller().wait(milliseconds: Self.delayMilliseconds) }

    func add(_ line: String) throws(SystemError) {
        let bytes = Array((line + "\n").utf8)
        try end.withLock { end throws(SystemError) in
            try file.write(bytes, at: end)
            end += bytes.count
        }
    }
}
