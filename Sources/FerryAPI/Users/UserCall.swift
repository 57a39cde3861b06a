package import FerryAudience
package import FerryCore

/// A call about users, read and checked as far as that is possible without knowing devices.
package enum UserCall: Hashable, Sendable {
    case bindAliases([AliasDirectory.Binding])
    case unbindAliases([AliasDirectory.Binding])
    case aliasOfDevice(CID)
    case devicesOfAlias(String)
    case dropAlias(String)
    case setTags(CID, [String])
    case tags(CID)
    /// `isSet` false takes the tag away.
    case tagDevices(String, [CID], isSet: Bool)
    case block([CID], isBlocked: Bool)
    case deviceStatus([CID])
    /// What is no cid at all stands beside the others.
    case detail([CID], invalid: [String])
    case badge([CID], BadgeChange)
    case count(AudienceExpression)
    case setProfile(CID, ProfileChange)
    case erase(CID)
    case pushAliases(AliasPushes)

    /// It is let through whatever is short.
    package var makesRoom: Bool {
        if case .erase = self { true } else { false }
    }
}

/// What a backend says of a device; nil leaves what was said before, an empty text takes it back.
package struct ProfileChange: Hashable, Sendable {
    /// `.some(nil)` takes it back.
    package var phoneType: PhoneType??
    package var region: String?
    package var model: String?
    package var notifications: Bool?

    package init() {}

    package func apply(to profile: inout DeviceProfile) {
        if let phoneType { profile.phoneType = phoneType }
        if let region { profile.region = region }
        if let model { profile.model = model }
        if let notifications { profile.notifications = notifications }
    }
}

/// Pushes to the devices behind names.
package struct AliasPushes: Hashable, Sendable {
    package struct Push: Hashable, Sendable {
        package let alias: String
        /// Its `cid` stands for nobody.
        package let push: SinglePush
    }

    /// 1...200, in the order given.
    package let pushes: [Push]
    package let isAsync: Bool
    /// A call of many, which tells of those that could not be taken beside the others.
    package let isBatch: Bool
}

/// How much one call, or one device, may have.
package struct UserLimits: Hashable, Sendable {
    /// Devices of one alias.
    package var aliasDevices = 10
    /// Custom tags of one device.
    package var tags = 100
    /// Characters of one tag.
    package var tagCharacters = 32
    /// Characters of all tags of a device.
    package var tagsCharacters = 512

    package init() {}

    /// Entries of a call about aliases or of one tag's devices.
    static let entriesPerCall = 1_000
    /// Devices of a call that blocks, or sets badges.
    static let devicesPerChange = 200
    /// Devices of a call for their state at the gateway and elsewhere.
    static let statusesPerCall = 100
    /// An alias has fewer characters.
    static let aliasCharacters = 40
    /// Conditions of an audience, and values of each.
    static let conditions = 20
    static let values = 200
    /// Bytes of a region, a model, a value of a condition.
    static let textBytes = 128
}
