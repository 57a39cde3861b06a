internal import FerryAPI
internal import FerryCore

/// What shards tell each other of presence streams.
enum PresenceMail: Sendable {
    /// A stream of `origin` wants the app's changes: answered by `.counted`, and from then on each change is told.
    case watch(app: Int, cids: [CID]?, APIOrigin)
    /// One stream less at that shard.
    case unwatch(app: Int, shard: Int)
    /// How many devices of that shard are online, and which of those asked for.
    case counted(APIOrigin, by: Int, online: Int, cids: [CID])
    /// In order; all of a turn.
    case changed(app: Int, [PresenceNews])
}

/// A device came or went.
struct PresenceNews: Sendable, BitwiseCopyable {
    let cid: CID
    let isOnline: Bool
    let at: Instant
    /// 0 for one that went.
    let session: UInt64
}

/// A stream of this shard.
struct PresenceStream {
    /// The app's number in the registry.
    let app: Int
    /// nil: all devices.
    let cids: Set<CID>?
    let tokenDigest: [UInt8]
    let tokenExpiresAt: Instant
    var beatsAt: Instant
    /// Shards whose devices are in the count.
    var counted: Set<Int> = []
    let shards: Int
    /// The sum so far; with `cids` the devices themselves count.
    var online = 0
    var onlineCIDs: Set<CID> = []

    /// The snapshot was sent.
    var isLive: Bool { counted.count == shards }

    func wants(_ cid: CID) -> Bool { cids?.contains(cid) ?? true }
}

/// What a shard knows of presence streams, its own and those of others that watch its devices.
struct PresenceBoard {
    /// By the connection's token.
    var streams: [UInt64: PresenceStream] = [:]
    /// How many streams each shard has, by app number.
    private var watchers: [Int: [Int: Int]] = [:]
    /// Devices of this shard that are online, by app number.
    private var counts: [Int] = []
    /// Changes of this turn, by app number.
    private(set) var news: [Int: [PresenceNews]] = [:]

    static let streamsPerApp = 64
    static let beat = Duration.seconds(15)

    func online(_ app: Int) -> Int { app < counts.count ? counts[app] : 0 }

    mutating func note(_ change: PresenceNews, app: Int) {
        while counts.count <= app { counts.append(0) }
        counts[app] += change.isOnline ? 1 : -1
        if watchers[app] != nil { news[app, default: []].append(change) }
    }

    mutating func takeNews() -> [Int: [PresenceNews]] {
        defer { news = [:] }
        return news
    }

    func shards(watching app: Int) -> [Int] { watchers[app].map { $0.keys.sorted() } ?? [] }

    mutating func watch(_ app: Int, from shard: Int) { watchers[app, default: [:]][shard, default: 0] += 1 }

    mutating func unwatch(_ app: Int, from shard: Int) {
        guard let count = watchers[app]?[shard] else { return }
        watchers[app]?[shard] = count > 1 ? count - 1 : nil
        if watchers[app]?.isEmpty == true { watchers[app] = nil }
    }
}

extension PresenceNews {
    /// As an event of a stream.
    func append(to text: inout [UInt8]) {
        text.append(contentsOf: (isOnline ? "event: online\ndata: " : "event: offline\ndata: ").utf8)
        var json = JSONWriter()
        json.beginObject()
        json.member("cid", cid.description)
        json.member("time", at.milliseconds)
        if session != 0 { json.member("session", Epoch(session).description) }
        json.endObject()
        text.append(contentsOf: json.bytes)
        text.append(contentsOf: "\n\n".utf8)
    }
}

extension PresenceStream {
    /// The first event.
    var snapshot: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("online", Int64(cids == nil ? online : onlineCIDs.count))
        if cids != nil {
            json.name("cids")
            json.beginArray()
            for cid in onlineCIDs.sorted() { json.string(cid.description) }
            json.endArray()
        }
        json.endObject()
        return Array("event: snapshot\ndata: ".utf8) + json.bytes + Array("\n\n".utf8)
    }

    /// The last event.
    static func closing(_ reason: StaticString) -> [UInt8] {
        Array("event: closed\ndata: {\"reason\":\"\(reason)\"}\n\n".utf8)
    }

    static let heartbeat = Array(":\n\n".utf8)
}
