/// By which ways a message goes, in GeTui's strategies.
package enum DeliveryRoute: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// 1: over the device's own connection; a wake-up tells an owner who is away that something waits.
    case ownFirst = 0
    /// 2: the wake-up channel alone, whether the device is there or not. The message is in no stream.
    case wakeOnly = 1
    /// 3: the device's own connection alone. Nobody is woken.
    case ownOnly = 2
    /// 4: the wake-up channel; the device's own connection if that refuses.
    case wakeFirst = 3

    /// The number that senders write.
    package var strategy: Int64 { Int64(rawValue) + 1 }

    /// nil when it is no strategy.
    package init?(strategy: Int64) {
        guard (1...4).contains(strategy), let route = Self(rawValue: UInt8(strategy - 1)) else { return nil }
        self = route
    }

    /// It is handed to the wake-up channel first of all.
    package var handsOver: Bool { self == .wakeOnly || self == .wakeFirst }
}

/// What a message does to the number on the app's icon.
package enum AutoBadge: Hashable, Sendable, BitwiseCopyable {
    case add(Int32)
    case set(Int32)

    /// The number afterwards, never below 0.
    package func applied(to badge: Int32) -> Int32 {
        switch self {
        case .set(let value): max(0, value)
        case .add(let value):
            max(0, badge.addingReportingOverflow(value).overflow ? (value < 0 ? 0 : .max) : badge + value)
        }
    }
}

/// What kind of push the sender's own alert is to APNs.
package enum AlertKind: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// An alert, or a background push where the alert says so.
    case notify = 0
    case voip = 1
    case liveActivity = 2
}

/// Devices that a message skips for how long ago they were seen.
package struct ActivityFilter: Hashable, Sendable, BitwiseCopyable {
    /// 1...
    package var days: UInt16
    /// true: only devices seen within so many days; false: only others.
    package var wantsActive: Bool

    package init(days: UInt16, wantsActive: Bool) {
        self.days = days
        self.wantsActive = wantsActive
    }

    /// Whether a device is skipped that was last seen at `seenAt`.
    package func skips(seenAt: Instant, now: Instant) -> Bool {
        let isActive = now - seenAt <= .seconds(Int64(days) * 86_400)
        return isActive != wantsActive
    }
}

/// What a sender said of a message beside its payload, its ttl and its alert. A message of which nothing of this was said has
/// `none`, which takes no byte anywhere.
package struct MessageTraits: Hashable, Sendable {
    package var kind = ContentKind.transmission
    package var route = DeliveryRoute.ownFirst
    /// Instead of `route`, for a device that the wake-up channel cannot reach; nil: there is no difference. Of an accepted
    /// message that has been decided, and this is nil.
    package var otherRoute: DeliveryRoute?
    /// It may be shown from and until.
    package var window: ClosedRange<Instant>?
    /// 1...100 of letters, digits, `-` and `_`: under it the sender's reports are added up.
    package var groupName: String?
    /// Comes back in receipts as it is; 1...`callbackBytes` bytes.
    package var callback: String?
    package var alertKind = AlertKind.notify
    package var badge: AutoBadge?
    /// Skips who has switched notifications off.
    package var skipsNotifyOff = false
    package var activity: ActivityFilter?

    package static let none = MessageTraits()
    package static let groupNameCharacters = 100
    package static let callbackBytes = 512
    /// `encoded` has no more.
    package static let encodedBytes = 1_024

    package init() {}

    private enum Tag {
        static let kind: UInt64 = 1
        static let route: UInt64 = 2
        static let windowStart: UInt64 = 3
        static let windowEnd: UInt64 = 4
        static let group: UInt64 = 5
        static let callback: UInt64 = 6
        static let alertKind: UInt64 = 7
        static let badgeAdd: UInt64 = 8
        static let badgeSet: UInt64 = 9
        static let notifyOff: UInt64 = 10
        static let active: UInt64 = 11
        static let inactive: UInt64 = 12
        static let otherRoute: UInt64 = 13
    }

    /// Empty for `none`. As tagged fields: an older gateway that finds newer ones in its journal goes on without them.
    package var encoded: [UInt8] {
        var writer = TaggedFieldsWriter()
        if kind != .transmission { writer.number(Tag.kind, UInt64(kind.rawValue)) }
        if route != .ownFirst { writer.number(Tag.route, UInt64(route.rawValue)) }
        if let window {
            writer.number(Tag.windowStart, window.lowerBound.zigzag)
            writer.number(Tag.windowEnd, window.upperBound.zigzag)
        }
        writer.text(Tag.group, groupName)
        writer.text(Tag.callback, callback)
        if alertKind != .notify { writer.number(Tag.alertKind, UInt64(alertKind.rawValue)) }
        switch badge {
        case .add(let value): writer.number(Tag.badgeAdd, Self.zigzag(value))
        case .set(let value): writer.number(Tag.badgeSet, Self.zigzag(value))
        case nil: break
        }
        writer.mark(Tag.notifyOff, skipsNotifyOff)
        if let activity { writer.number(activity.wantsActive ? Tag.active : Tag.inactive, UInt64(activity.days)) }
        writer.number(Tag.otherRoute, otherRoute.map { UInt64($0.rawValue) })
        return writer.bytes
    }

    /// nil when it is none. Fields that are not known are passed over.
    package init?(encoded: UnsafeRawBufferPointer) {
        var reader = TaggedFieldsReader(encoded)
        var start: Instant?
        var end: Instant?
        while let (tag, value) = reader.next() {
            switch tag {
            case Tag.windowStart: start = TaggedFieldsReader.number(value).map { Instant(zigzag: $0) }
            case Tag.windowEnd: end = TaggedFieldsReader.number(value).map { Instant(zigzag: $0) }
            default: guard take(tag, value) else { return nil }
            }
        }
        guard !reader.isBroken else { return nil }
        if let start, let end, start <= end { window = start...end }
    }

    private mutating func take(_ tag: UInt64, _ value: UnsafeRawBufferPointer) -> Bool {
        func number<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
            TaggedFieldsReader.number(value).flatMap { Number(exactly: $0) }
        }
        switch tag {
        case Tag.kind:
            guard let kind = number(UInt8.self).flatMap({ ContentKind(rawValue: $0) }) else { return false }
            self.kind = kind
        case Tag.route:
            guard let route = number(UInt8.self).flatMap({ DeliveryRoute(rawValue: $0) }) else { return false }
            self.route = route
        case Tag.otherRoute:
            guard let route = number(UInt8.self).flatMap({ DeliveryRoute(rawValue: $0) }) else { return false }
            otherRoute = route
        case Tag.group: groupName = TaggedFieldsReader.text(value)
        case Tag.callback: callback = TaggedFieldsReader.text(value)
        case Tag.alertKind:
            guard let kind = number(UInt8.self).flatMap({ AlertKind(rawValue: $0) }) else { return false }
            alertKind = kind
        case Tag.badgeAdd, Tag.badgeSet:
            guard let change = number(UInt32.self).map({ Self.unzigzag($0) }) else { return false }
            badge = tag == Tag.badgeAdd ? .add(change) : .set(change)
        case Tag.notifyOff: skipsNotifyOff = true
        case Tag.active, Tag.inactive:
            guard let days = number(UInt16.self) else { return false }
            activity = ActivityFilter(days: days, wantsActive: tag == Tag.active)
        default: break
        }
        return true
    }

    private static func zigzag(_ value: Int32) -> UInt64 { UInt64(UInt32(bitPattern: (value << 1) ^ (value >> 31))) }
    private static func unzigzag(_ value: UInt32) -> Int32 {
        Int32(bitPattern: value >> 1) ^ -Int32(bitPattern: value & 1)
    }
}
