internal import Synchronization

/// The open files of the segments that are still there: the journal adds, retirement removes, readers look up.
final class SegmentFiles: Sendable {
    private let files = Mutex<[UInt32: any DiskFile]>([:])

    subscript(segment: UInt32) -> (any DiskFile)? {
        get { files.withLock { $0[segment] } }
        set { files.withLock { $0[segment] = newValue } }
    }

    /// In rising order.
    var segments: [UInt32] { files.withLock { $0.keys.sorted() } }
}
