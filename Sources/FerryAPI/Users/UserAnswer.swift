package import FerryAudience
package import FerryCore

/// What a call about users is answered with.
package enum UserAnswer: Hashable, Sendable {
    /// No data.
    case done
    /// Empty for none.
    case alias(String)
    case devices([CID])
    case tags(CID, [String])
    /// Whether it was done for each.
    case perDevice([Outcome])
    case deviceStatuses([Status])
    case details(found: [Detail], invalid: [String])
    case count(Int)

    package struct Outcome: Hashable, Sendable {
        package let cid: CID
        package let isDone: Bool

        package init(cid: CID, isDone: Bool) {
            self.cid = cid
            self.isDone = isDone
        }
    }

    package struct Status: Hashable, Sendable {
        package let cid: CID
        package let isOnline: Bool
        /// A push can reach its phone: by a session, or by a wake-up.
        package let isReachable: Bool

        package init(cid: CID, isOnline: Bool, isReachable: Bool) {
            self.cid = cid
            self.isOnline = isOnline
            self.isReachable = isReachable
        }
    }

    package struct Detail: Hashable, Sendable {
        package let cid: CID
        package let app: AppID
        /// The app's topic at APNs.
        package let package: String
        /// In hex; nil when it has none.
        package let token: String?
        package let phoneType: PhoneType?
        package let profile: DeviceProfile
        package let registeredAt: Instant

        package init(
            cid: CID, app: AppID, package: String, token: String?, phoneType: PhoneType?, profile: DeviceProfile,
            registeredAt: Instant
        ) {
            self.cid = cid
            self.app = app
            self.package = package
            self.token = token
            self.phoneType = phoneType
            self.profile = profile
            self.registeredAt = registeredAt
        }
    }

    /// The member `data`, if there is one.
    func write(to writer: inout JSONWriter) {
        if case .done = self { return }
        writer.name("data")
        writer.beginObject()
        switch self {
        case .done: break
        case .alias(let alias): writer.member("alias", alias)
        case .devices(let cids):
            writer.name("cid")
            writer.beginArray()
            for cid in cids { writer.string(cid.description) }
            writer.endArray()
        case .tags(let cid, let tags):
            // One text of all, as GeTui writes it.
            writer.name(cid.description)
            writer.beginArray()
            if !tags.isEmpty { writer.string(tags.joined(separator: " ")) }
            writer.endArray()
        case .perDevice(let outcomes):
            for outcome in outcomes {
                writer.name(outcome.cid.description)
                writer.string(outcome.isDone ? "true" : "false")
            }
        case .deviceStatuses(let statuses):
            for status in statuses {
                writer.name(status.cid.description)
                writer.beginObject()
                writer.member("cid_status", status.isOnline ? "online" : "offline")
                writer.member("device_status", status.isReachable ? "online" : "offline")
                writer.endObject()
            }
        case .details(let found, let invalid): Self.write(found, invalid, to: &writer)
        case .count(let count): writer.member("user_count", Int64(count))
        }
        writer.endObject()
    }

    private static func write(_ found: [Detail], _ invalid: [String], to writer: inout JSONWriter) {
        writer.name("invalidCids")
        writer.beginArray()
        for text in invalid { writer.string(text) }
        writer.endArray()
        writer.name("validCids")
        writer.beginObject()
        for detail in found {
            writer.name(detail.cid.description)
            writer.beginObject()
            writer.member("client_app_id", detail.app.text)
            writer.member("package_name", detail.package)
            if let token = detail.token { writer.member("device_token", token) }
            if let type = detail.phoneType { writer.member("phone_type", Int64(type.rawValue)) }
            if !detail.profile.model.isEmpty { writer.member("phoneModel", detail.profile.model) }
            if let notifications = detail.profile.notifications {
                writer.name("notificationSwitch")
                writer.truth(notifications)
            }
            writer.member("createTime", String(detail.registeredAt.milliseconds))
            writer.endObject()
        }
        writer.endObject()
    }
}
