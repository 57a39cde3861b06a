/// Where an app's receipts go.
package struct ReceiptTarget: Hashable, Sendable {
    /// An http or https address, as the operator wrote it.
    package var url: String
    /// Whether the backend is also told of devices that come and go.
    package var tellsPresence: Bool
    /// Whether an answer 5xx, 408 or 429 means "again later"; otherwise any answer is the end of it, as with GeTui.
    package var retriesServerErrors: Bool
    /// A file with the certificates that the endpoint's must be signed by; nil: what the system trusts.
    package var authorityFile: String?

    package init(
        url: String, tellsPresence: Bool = false, retriesServerErrors: Bool = true, authorityFile: String? = nil
    ) {
        self.url = url
        self.tellsPresence = tellsPresence
        self.retriesServerErrors = retriesServerErrors
        self.authorityFile = authorityFile
    }

    /// What is wrong with an address, for its operator; nil when nothing is.
    package static func fault(of url: String) -> String? {
        guard url.utf8.count <= 2_048 else { return "is longer than 2048 bytes" }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            return "has spaces, controls or letters outside ASCII: write them as %-escapes"
        }
        let lower = url.lowercased()
        guard let scheme = ["http://", "https://"].first(where: { lower.hasPrefix($0) }) else {
            return "must begin with http:// or https://"
        }
        guard let host = url.dropFirst(scheme.count).first, host != "/", host != "?", host != "#" else {
            return "names no host"
        }
        return nil
    }
}

/// Bounds that all apps share.
package struct ReceiptPolicy: Hashable, Sendable {
    /// Bytes of receipts that wait, for each app, all shards together.
    package var bytes = 1 << 30
    /// How long one may wait.
    package var age = Duration.seconds(24 * 3_600)
    /// From the beginning of a request to its answer.
    package var answerDeadline = Duration.seconds(10)
    /// The pause after a first failure; each further one doubles it, and each pause is shortened at random to half at most.
    package var firstPause = Duration.seconds(1)
    package var longestPause = Duration.seconds(300)

    /// Lines of one request, and about how many bytes they have on disk.
    package static let batchLines = 1_000
    package static let batchBytes = 128 * 1024
    /// What of a lane waits in memory; the rest is read when its turn comes.
    package static let readyBytes = 256 * 1024
    /// What one look at the disk brings into memory at most.
    package static let readBytes = 1 << 20

    package init() {}
}
