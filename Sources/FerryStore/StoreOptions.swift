package import FerryCore

/// How the embedded store is opened. Only the folder and the clock have no default.
package struct StoreOptions: Sendable {
    package var folder: String
    /// Size of a journal segment's file; a larger single append gets a larger segment of its own.
    package var segmentBytes = 64 << 20
    /// Sealed segments beyond this many retire, the oldest first.
    package var keptSegments = 4
    /// One sync makes at most so many bytes and appends durable; a larger append goes alone.
    package var batchBytes = 1 << 20
    package var batchPieces = 8192
    /// Request ids older than this are forgotten.
    package var requestWindow = Duration.seconds(24 * 60 * 60)
    /// Memory for blocks of the tables.
    package var cacheBytes = 64 << 20
    /// Files that the tables have open at most.
    package var tableFiles = 256
    /// Whether a start tells the names of kept messages, which takes memory for each of them.
    package var namesMessages = false
    /// Free bytes on the disk below which the shards are told that it is nearly full; 0 never tells.
    package var diskReserveBytes = 0
    /// Opens a damaged folder with what can be read of it, in a new epoch.
    package var salvage = false
    /// A file to note in what has been synced, for the crash campaign; nil notes nothing.
    package var witness: String?
    /// The time that batches bear. Called on the journal's thread.
    package var clock: @Sendable () -> Instant
    /// Told at opening after each segment.
    package var progress: @Sendable (_ done: Int, _ all: Int) -> Void = { _, _ in }
    /// Told of failures that no request is answered with, such as a table that cannot be written; the store goes on and
    /// tries again. Called on the store's threads.
    package var report: @Sendable (StoreFailure) -> Void = { _ in }

    package init(folder: String, clock: @escaping @Sendable () -> Instant) {
        self.folder = folder
        self.clock = clock
    }
}
