package import FerryAudience
package import FerryCore

/// A call of the gateway's own API under `/v1`, for what GeTui's has no word for.
package enum NativeCall: Hashable, Sendable {
    /// `POST /v1/{appId}/push`.
    case push(query: String)
    /// `GET /v1/{appId}/messages/{id}`: a message's or a task's id as it stands in the path.
    case message(id: String, query: String)
    /// `GET /v1/{appId}/devices/{cid}`.
    case device(cid: String)

    /// The call that a path asks for, and its method; the first `count` segments are the path, and the first of them is `v1`.
    static func find(_ path: [String], _ count: Int, query: String) -> (NativeCall, HTTPMethod)? {
        switch count {
        case 3 where path[2] == "push": (.push(query: query), .post)
        case 4 where path[2] == "messages" && path[3] != "": (.message(id: path[3], query: query), .get)
        case 4 where path[2] == "devices" && path[3] != "": (.device(cid: path[3]), .get)
        default: nil
        }
    }
}

/// A call of the gateway's own API with its parameters read, where it is not one of the other calls in another form.
package enum NativeRequest: Hashable, Sendable {
    /// `dry_run` of a push: whom it would be for.
    case dryRun(DryRun)
}

/// Whom a push would be for.
package enum DryRun: Hashable, Sendable {
    /// 1...1000 devices, each once, in the order asked.
    case devices([CID])
    /// Of these conditions; none for all devices of the app.
    case audience(AudienceExpression)
}

/// How many devices a push would be for, and how it would find them.
package struct DeviceCensus: Hashable, Sendable {
    package var online = 0
    package var offline = 0
    /// Of those that are offline: nobody can wake their owner.
    package var withoutToken = 0
    /// Their user does not let the app show notifications.
    package var muted = 0
    /// A push to them ends at once.
    package var blocked = 0
    /// Devices that were named and are none of the app's.
    package var unknown: [CID] = []

    package init() {}

    /// Another shard's part is added.
    package mutating func add(_ other: DeviceCensus) {
        online += other.online
        offline += other.offline
        unknown += other.unknown
        withoutToken += other.withoutToken
        muted += other.muted
        blocked += other.blocked
    }
}

/// What calls of the gateway's own API are answered with, where it is not what the others say.
package enum NativeAnswer: Hashable, Sendable {
    /// What was taken, and why what was not was not, by the device that it was for.
    case pushed([APIAnswer.Pushed], refused: [APIAnswer.RefusedPush])
    case census(DeviceCensus)

    func write(to writer: inout JSONWriter) {
        switch self {
        case .pushed(let pushed, let refused): Self.write(pushed, refused, to: &writer)
        case .census(let census): Self.write(census, to: &writer)
        }
    }

    private static func write(
        _ pushed: [APIAnswer.Pushed], _ refused: [APIAnswer.RefusedPush], to writer: inout JSONWriter
    ) {
        writer.beginObject()
        writer.name("messages")
        writer.beginArray()
        for push in pushed {
            writer.beginObject()
            writer.member("cid", push.cid.description)
            writer.member("taskid", push.task.description)
            writer.member("status", push.status.name)
            writer.endObject()
        }
        writer.endArray()
        writer.name("not_accepted")
        writer.beginArray()
        for push in refused {
            writer.beginObject()
            writer.member("cid", push.target)
            writer.member("reason", push.reason)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }

    private static func write(_ census: DeviceCensus, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("devices", Int64(census.online + census.offline))
        writer.member("online", Int64(census.online))
        writer.member("offline", Int64(census.offline))
        writer.member("without_token", Int64(census.withoutToken))
        writer.member("muted", Int64(census.muted))
        writer.member("blocked", Int64(census.blocked))
        writer.name("unknown")
        writer.beginArray()
        for cid in census.unknown { writer.string(cid.description) }
        writer.endArray()
        writer.endObject()
    }
}

extension PushStatus {
    /// As the gateway's own API says it.
    fileprivate var name: String {
        switch self {
        case .online: "online"
        case .offline: "offline"
        case .ignored: "ignored"
        }
    }
}
