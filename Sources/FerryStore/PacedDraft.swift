internal import FerryIO

/// Hands a file that another writes to the disk piece by piece, with pauses: a sync of all of it at once would hold up the
/// journal's for as long as it takes.
struct PacedDraft: ~Copyable {
    private let file: OpenFile
    private let pauses: Poller
    private var unsynced = 0

    /// So many bytes at a time, and then a pause.
    static let pieceBytes = 256 << 10
    private static let pauseMilliseconds: Int32 = 3

    /// The file is there.
    static func follow(_ path: String) throws(SystemError) -> PacedDraft {
        let file = try OpenFile.open(path)
        return PacedDraft(file, pauses: try Poller())
    }

    private init(_ file: OpenFile, pauses: consuming Poller) {
        self.file = file
        self.pauses = pauses
    }

    /// So many more bytes were written, about.
    mutating func note(_ bytes: Int) throws(SystemError) {
        unsynced += bytes
        guard unsynced >= Self.pieceBytes else { return }
        unsynced = 0
        try file.writeBack()
        _ = pauses.wait(milliseconds: Self.pauseMilliseconds)
    }
}
