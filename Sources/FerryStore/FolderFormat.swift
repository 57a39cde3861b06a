internal import FerryCore
internal import FerryIO

/// The file `FORMAT`: what this folder is, in a few lines of text that an operator can read. Written last when a folder
/// is made, so a folder without it was never finished.
struct FolderFormat: Equatable, Sendable {
    static let name = "FORMAT"
    static let draftName = "FORMAT.new"
    static let currentVersion = 1

    var epoch: Epoch
    /// The first segment of this epoch; earlier ones bear earlier epochs.
    var since: UInt32
    /// Goes into the checksums of the journal's batches, so that bytes that a sender chose never look like a batch.
    var salt: UInt64

    /// A new life of a folder, whose first segment is `since`.
    static func new(since: UInt32) -> FolderFormat {
        FolderFormat(epoch: Epoch(max(1, random())), since: since, salt: random())
    }

    private static func random() -> UInt64 { Identifier128(bytes: Cryptography.random(16))?.low ?? 0 }

    /// nil when there is no such file.
    static func read(from disk: some Disk) throws(StoreFailure) -> FolderFormat? {
        let text: String
        do throws(SystemError) {
            guard try disk.list().contains(name) else { return nil }
            let file = try disk.open(name)
            text = String(decoding: try file.read(min(try file.size(), 4096), at: 0), as: UTF8.self)
        } catch {
            throw StoreFailure(error)
        }
        return try parse(text, folder: disk.folder)
    }

    func write(to disk: some Disk) throws(StoreFailure) {
        do throws(SystemError) {
            let file = try disk.create(Self.draftName, bytes: 0)
            try file.write(Array(text.utf8), at: 0)
            try file.sync()
            try disk.rename(Self.draftName, to: Self.name)
            try disk.syncDirectory()
        } catch {
            throw StoreFailure(error)
        }
    }

    var text: String {
        let lines = """
            Ferry data folder
            version \(Self.currentVersion)
            epoch \(epoch)
            since \(since)
            salt \(Epoch(salt))
            partitions \(Limits.partitions)

            """
        return lines + "check \(Self.check(lines))\n"
    }

    static func parse(_ text: String, folder: String) throws(StoreFailure) -> FolderFormat {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.first == "Ferry data folder" else { throw damaged(folder) }
        var fields: [Substring: Substring] = [:]
        for line in lines.dropFirst() {
            let words = line.split(separator: " ", maxSplits: 1)
            if words.count == 2 { fields[words[0]] = words[1] }
        }
        guard let version = fields["version"].flatMap({ Int($0) }) else { throw damaged(folder) }
        // The one line that every version keeps: it is judged before anything that a later version may write otherwise.
        guard version == currentVersion else {
            throw StoreFailure(
                .refused,
                "The data folder \(folder) has format version \(version), and this gateway knows version "
                    + "\(currentVersion): start the version of the gateway that wrote it, or a later one")
        }
        guard let epoch = fields["epoch"].flatMap({ UInt64($0, radix: 16) }),
            let since = fields["since"].flatMap({ UInt32($0) }),
            let salt = fields["salt"].flatMap({ UInt64($0, radix: 16) }),
            fields["partitions"] == "\(Limits.partitions)"
        else { throw damaged(folder) }
        let format = FolderFormat(epoch: Epoch(epoch), since: since, salt: salt)
        guard format.text == text else { throw damaged(folder) }
        return format
    }

    private static func check(_ lines: String) -> String {
        Hexadecimal.encode(checksumBytes(Array(lines.utf8)))
    }

    private static func checksumBytes(_ bytes: [UInt8]) -> [UInt8] {
        let sum = bytes.withUnsafeBytes { RecordCodec.checksum($0) }
        return [24, 16, 8, 0].map { (shift: UInt32) in UInt8(truncatingIfNeeded: sum >> shift) }
    }

    private static func damaged(_ folder: String) -> StoreFailure {
        StoreFailure(
            .corrupted, "The file \(name) of the data folder \(folder) is damaged: restore it from a backup")
    }
}
