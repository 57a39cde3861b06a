package import FerryCore

/// What happened to a pushed message at once, in GeTui's words.
package enum PushStatus: String, Hashable, Sendable {
    /// Accepted for a device that is online.
    case online = "successed_online"
    /// Accepted for a device that is not.
    case offline = "successed_offline"
    /// Not sent: the device was not seen for very long.
    case ignored = "successed_ignore"
}

/// What `GET /user/status` tells of one device.
package struct UserStatus: Hashable, Sendable {
    package let isOnline: Bool
    /// nil when it never logged in; the field is then left out.
    package let lastLogin: Instant?

    package init(isOnline: Bool, lastLogin: Instant?) {
        self.isOnline = isOnline
        self.lastLogin = lastLogin
    }
}

/// What a call is answered with.
package enum APIAnswer: Hashable, Sendable {
    package struct Device: Hashable, Sendable {
        package let cid: CID
        /// nil for a device that the app does not have; it is then left out.
        package let status: UserStatus?

        package init(cid: CID, status: UserStatus?) {
            self.cid = cid
            self.status = status
        }
    }

    package struct Pushed: Hashable, Sendable {
        package let task: TaskID
        package let cid: CID
        package let status: PushStatus

        package init(task: TaskID, cid: CID, status: PushStatus) {
            self.task = task
            self.cid = cid
            self.status = status
        }
    }

    package struct RefusedPush: Hashable, Sendable {
        /// The device, or the alias.
        package let target: String
        package let reason: String

        package init(target: String, reason: String) {
            self.target = target
            self.reason = reason
        }
    }

    case token(String, expires: Instant)
    case revoked
    case pushed(task: TaskID, cid: CID, PushStatus)
    /// Of a batch: what was taken, and why what was not was not, by the target that it was for.
    case pushedBatch([Pushed], refused: [RefusedPush])
    /// Of a batch whose sender wants to know nothing of single messages.
    case taken
    /// A push to all.
    case pushedAll(task: TaskID)
    case list(ListAnswer)
    case statuses([Device])
    case user(UserAnswer)
    /// One JSON object, as it is.
    case timeline([UInt8])
    /// One JSON object, as it is.
    case report([UInt8])
    case task(TaskAnswer)
    case native(NativeAnswer)
    case healthy
    case ready
    /// Not ready, and why; 503, so that a load balancer goes elsewhere.
    case notReady(String)

    package var response: HTTPResponse {
        switch self {
        case .healthy: HTTPResponse(status: 200, body: Array(#"{"status":"ok"}"#.utf8))
        case .ready: HTTPResponse(status: 200, body: Array(#"{"status":"ready"}"#.utf8))
        case .notReady(let reason): HTTPResponse(status: 503, body: Self.notReady(reason))
        case .token, .revoked, .pushed, .pushedBatch, .pushedAll, .list, .taken, .statuses, .timeline, .report, .user,
            .native, .task:
            HTTPResponse(status: 200, body: envelope)
        }
    }

    /// GeTui's `{"code":0,"msg":"success","data":…}`. Times are strings of milliseconds, as its clients want them.
    private var envelope: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("code", 0)
        writer.member("msg", "success")
        switch self {
        case .token(let token, let expires):
            writer.name("data")
            writer.beginObject()
            writer.member("expire_time", String(expires.milliseconds))
            writer.member("token", token)
            writer.endObject()
        case .pushed(let task, let cid, let status):
            writer.name("data")
            writer.beginObject()
            writer.name(plain: { task.append(to: &$0) })
            writer.beginObject()
            writer.name(plain: { Hexadecimal.append(cid.value, to: &$0) })
            writer.string(status.rawValue)
            writer.endObject()
            writer.endObject()
        case .pushedAll(let task):
            writer.name("data")
            writer.beginObject()
            writer.member("taskid", task.description)
            writer.endObject()
        case .statuses(let devices):
            writer.name("data")
            writer.beginObject()
            for device in devices {
                guard let status = device.status else { continue }
                writer.name(device.cid.description)
                writer.beginObject()
                if let lastLogin = status.lastLogin {
                    writer.member("last_login_time", String(lastLogin.milliseconds))
                }
                writer.member("status", status.isOnline ? "online" : "offline")
                writer.endObject()
            }
            writer.endObject()
        case .timeline(let data), .report(let data):
            writer.name("data")
            writer.raw(data)
        case .native(let answer):
            writer.name("data")
            answer.write(to: &writer)
        case .pushedBatch(let pushed, let refused):
            writer.name("data")
            writer.beginObject()
            for (place, push) in pushed.enumerated() {
                // Those of one task come one after the other.
                if place == 0 || pushed[place - 1].task != push.task {
                    writer.name(plain: { push.task.append(to: &$0) })
                    writer.beginObject()
                }
                writer.name(plain: { Hexadecimal.append(push.cid.value, to: &$0) })
                writer.string(push.status.rawValue)
                if place == pushed.count - 1 || pushed[place + 1].task != push.task { writer.endObject() }
            }
            writer.notAccepted(refused)
            writer.endObject()
        case .task(let answer): answer.writeData(to: &writer)
        case .list(let answer):
            writer.name("data")
            answer.write(to: &writer)
        case .user(let answer): answer.write(to: &writer)
        case .revoked, .taken, .healthy, .ready, .notReady: break
        }
        writer.endObject()
        return writer.bytes
    }

    private static func notReady(_ reason: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("status", "starting")
        writer.member("reason", reason)
        writer.endObject()
        return writer.bytes
    }
}

extension APIError {
    package var response: HTTPResponse { response(httpStatus) }

    /// As a call under `/v1` is answered.
    package var nativeResponse: HTTPResponse { response(nativeStatus) }

    private func response(_ status: Int) -> HTTPResponse {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("code", Int64(code))
        writer.member("msg", message)
        writer.endObject()
        return HTTPResponse(
            status: status, body: writer.bytes, retryAfterSeconds: retryAfterSeconds, allow: allow)
    }
}
