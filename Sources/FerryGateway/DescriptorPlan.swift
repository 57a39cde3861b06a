internal import FerryIO

/// How the process's descriptors are divided, so that no number of connections can keep the store from opening a file.
struct DescriptorPlan: Equatable {
    /// Connections at most.
    let connections: Int
    /// Files that the tables have open at most.
    let tableFiles: Int

    init(_ configuration: GatewayConfiguration) {
        self.init(
            limit: ProcessSignals.raiseDescriptorLimit(), shards: configuration.shards,
            keptSegments: configuration.keptSegments)
    }

    /// Beside its connections and the tables' files, a gateway has three descriptors for each shard, one for each segment of
    /// the journal, and some twenty more. Segments above those that are kept are there while the tables take them over.
    init(limit: Int, shards: Int, keptSegments: Int) {
        tableFiles = max(32, min(256, limit / 4))
        let needed = 64 + 4 * shards + 2 * keptSegments + tableFiles
        connections = max(16, limit - max(needed, min(512, limit / 2)))
    }
}
