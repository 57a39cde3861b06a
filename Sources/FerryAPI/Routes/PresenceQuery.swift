package import FerryCore

/// `GET /v1/{appId}/presence`: a stream of the devices that come and go.
package struct PresenceQuery: Hashable, Sendable {
    /// Of these devices only, each once; nil: of all that the app has.
    package let cids: [CID]?

    package static let maximumCIDs = 200

    package init(cids: [CID]?) { self.cids = cids }

    /// Parameters that are not known are not looked at; one that stands twice is refused.
    static func read(query: String) -> Result<PresenceQuery, APIError> {
        do throws(APIError) {
            guard let list = try QueryFields(query, names: ["cid"])["cid"] else {
                return .success(PresenceQuery(cids: nil))
            }
            return .success(PresenceQuery(cids: try devices(list)))
        } catch {
            return .failure(error)
        }
    }

    private static func devices(_ list: String) throws(APIError) -> [CID] {
        var cids: [CID] = []
        var seen: Set<CID> = []
        for text in list.split(separator: ",", omittingEmptySubsequences: false) {
            guard !text.isEmpty else { throw .empty("cid") }
            guard let cid = CID(hex: String(text)) else { throw .targetInvalid(String(text)) }
            if seen.insert(cid).inserted { cids.append(cid) }
            guard cids.count <= maximumCIDs else { throw .overLimit("cid", "at most \(maximumCIDs) in one stream") }
        }
        return cids
    }
}

/// What a stream of events begins with.
package enum EventStreamHead {
    /// The end of the stream is the end of the connection.
    package static let bytes = Array(
        """
        HTTP/1.1 200 OK\r
        Content-Type: text/event-stream;charset=utf-8\r
        Cache-Control: no-store\r
        Connection: close\r
        \r

        """.utf8)
}
