internal import FerryCore
internal import FerryIO

/// The journal's files as they are found at opening, before anybody has judged them.
struct JournalFolder {
    /// A segment that should be there.
    struct Found {
        var number: UInt32
        /// nil when the file is missing.
        var file: (any DiskFile)?
        /// nil when it cannot be read.
        var header: SegmentHeader?
    }

    let disk: any Disk
    let salt: UInt64
    private static let mostSegments: UInt32 = 1 << 20

    /// Every segment from `first` to the last that has a file. Removes what is older: its rows are in the tables, and only
    /// a crash came before its removal.
    func find(from first: UInt32) throws(StoreFailure) -> [Found] {
        var numbers = Set<UInt32>()
        do throws(SystemError) {
            for name in try disk.list() {
                guard let number = SegmentHeader.segment(fileName: name) else { continue }
                if number < first { try disk.remove(name) } else { numbers.insert(number) }
            }
        } catch {
            throw StoreFailure(error)
        }
        guard let last = numbers.max() else { return [] }
        // A name out of all proportion is a stray file, and no reason to look for millions of others.
        guard last - first < Self.mostSegments else { throw missing(first) }
        do throws(SystemError) {
            var found: [Found] = []
            for number in first...last {
                guard numbers.contains(number) else {
                    found.append(Found(number: number))
                    continue
                }
                let file = try disk.open(SegmentHeader.fileName(number))
                let bytes = try file.read(SegmentHeader.bytes, at: 0)
                let header = bytes.withUnsafeBytes { SegmentHeader.decode($0, salt: salt, segment: number) }
                found.append(Found(number: number, file: file, header: header))
            }
            return found
        } catch {
            throw StoreFailure(error)
        }
    }

    /// The file's bytes, up to `limit`.
    func read(_ file: any DiskFile, limit: Int?) throws(StoreFailure) -> [UInt8] {
        do throws(SystemError) {
            let size = try file.size()
            return try file.read(min(size, limit ?? size), at: 0)
        } catch {
            throw StoreFailure(error)
        }
    }

    func path(_ number: UInt32) -> String { "\(disk.folder)/\(SegmentHeader.fileName(number))" }

    func damaged(_ number: UInt32, at offset: Int) -> StoreFailure {
        StoreFailure(
            .corrupted, "The file \(path(number)) is damaged at byte \(offset), in what was synced: \(Self.wayOut)")
    }

    func missing(_ number: UInt32) -> StoreFailure {
        StoreFailure(.corrupted, "The file \(path(number)) is missing: \(Self.wayOut)")
    }

    static let wayOut =
        "restore the folder from a backup, or start once with --accept-loss, which keeps all that can be read and "
        + "begins a new epoch"
}
