package import FerryCore

/// What kind of phone a device is.
package enum PhoneType: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    case android = 1
    case ios = 2

    /// As calls spell it.
    package var name: String {
        switch self {
        case .android: "android"
        case .ios: "ios"
        }
    }

    /// In letters of either case: GeTui's own example writes `IOS`.
    package init?(name: String) {
        switch name.lowercased() {
        case "android": self = .android
        case "ios": self = .ios
        default: return nil
        }
    }
}

/// What backends said of a device, beside its stream. A device of which nobody said anything has an empty one.
package struct DeviceProfile: Hashable, Sendable {
    /// In the order given, each once.
    package var tags: [String] = []
    /// As it was said; a device with an APNs token is an iPhone whatever stands here.
    package var phoneType: PhoneType?
    /// As given; empty for not known.
    package var region = ""
    package var model = ""
    /// The user lets the app show notifications; nil when nobody said.
    package var notifications: Bool?
    /// Nothing that is pushed to it is kept for it.
    package var isBlocked = false
    /// The number on the app's icon as the backend counts it, 0...`maximumBadge`; nil when it was never set.
    package var badge: Int?

    package static let maximumBadge = 1_000_000_000

    package init() {}

    package var isEmpty: Bool { self == DeviceProfile() }
}

/// A change of the number on an app's icon.
package enum BadgeChange: Hashable, Sendable {
    case set(Int)
    case add(Int)

    /// `+N`, `-N` or `N` with 1 to 9 digits; nil for another text.
    package init?(_ text: String) {
        let sign = text.utf8.first
        let digits = sign == 0x2b || sign == 0x2d ? text.utf8.dropFirst() : text.utf8[...]
        guard (1...9).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let number = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        self =
            switch sign {
            case 0x2b: .add(number)
            case 0x2d: .add(-number)
            default: .set(number)
            }
    }

    /// What it makes of `badge`; never below zero.
    package func applied(to badge: Int?) -> Int {
        switch self {
        case .set(let number): min(number, DeviceProfile.maximumBadge)
        case .add(let number): min(max(0, (badge ?? 0) + number), DeviceProfile.maximumBadge)
        }
    }
}

/// The row of a profile: a version, the app, then its members in order.
extension DeviceProfile {
    private static let version: UInt8 = 1
    private static let textBytes = 4_096
    private static let mostTags = 10_000

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let blocked = Self(rawValue: 1)
        static let notificationsKnown = Self(rawValue: 2)
        static let notificationsOn = Self(rawValue: 4)
        static let badge = Self(rawValue: 8)
        static let all: Self = [.blocked, .notificationsKnown, .notificationsOn, .badge]
    }

    package func row(of app: AppID) -> [UInt8] {
        var flags: Flags = isBlocked ? .blocked : []
        if let notifications {
            flags.formUnion(notifications ? [.notificationsKnown, .notificationsOn] : .notificationsKnown)
        }
        if badge != nil { flags.insert(.badge) }
        var writer = ByteWriter()
        writer.byte(Self.version)
        writer.string(app.text.utf8)
        writer.byte(flags.rawValue)
        writer.byte(phoneType?.rawValue ?? 0)
        writer.string(region.utf8)
        writer.string(model.utf8)
        if let badge { writer.varint(UInt64(badge)) }
        writer.varint(UInt64(tags.count))
        for tag in tags { writer.string(tag.utf8) }
        return writer.bytes
    }

    /// nil when the row is none of this version.
    package static func read(_ row: [UInt8]) -> (app: AppID, profile: DeviceProfile)? {
        row.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            return read(&reader)
        }
    }

    private static func read(_ reader: inout ByteReader) -> (app: AppID, profile: DeviceProfile)? {
        guard reader.byte() == version, let name = text(&reader), let app = AppID(name),
            let rawFlags = reader.byte(), let rawType = reader.byte(), let region = text(&reader),
            let model = text(&reader)
        else { return nil }
        let flags = Flags(rawValue: rawFlags)
        guard Flags.all.isSuperset(of: flags) else { return nil }
        var profile = DeviceProfile()
        if rawType != 0 {
            guard let type = PhoneType(rawValue: rawType) else { return nil }
            profile.phoneType = type
        }
        profile.region = region
        profile.model = model
        profile.isBlocked = flags.contains(.blocked)
        if flags.contains(.notificationsKnown) { profile.notifications = flags.contains(.notificationsOn) }
        if flags.contains(.badge) {
            guard let badge = reader.varint(), badge <= UInt64(maximumBadge) else { return nil }
            profile.badge = Int(badge)
        }
        guard let count = reader.varint(), count <= UInt64(mostTags) else { return nil }
        for _ in 0..<count {
            guard let tag = text(&reader) else { return nil }
            profile.tags.append(tag)
        }
        return reader.isAtEnd ? (app, profile) : nil
    }

    private static func text(_ reader: inout ByteReader) -> String? {
        guard let bytes = reader.string(limit: textBytes) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}
