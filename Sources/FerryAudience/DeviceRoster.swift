package import FerryCore

/// All devices of one app in one shard, in memory or not, with what backends said of them and an index of their tags. It is a
/// value: it does no I/O and knows no clock. A registered device of which nothing else is known takes about 32 bytes.
package struct DeviceRoster: Sendable {
    private struct Entry: Sendable {
        /// None or one. An array, as that is a reference with the meaning of a value.
        var profile: ContiguousArray<DeviceProfile> = []
        /// Days since 1970 of the last time it was seen.
        var seenDay: UInt16
        var hasToken: Bool
        /// Only its row was found so far, or its device is gone: not in any audience.
        var isRegistered: Bool

        /// Whoever said it: an APNs token is the better witness.
        var phoneType: PhoneType? { hasToken ? .ios : profile.first?.phoneType }
    }

    private var entries = OrderedDevices<Entry>()
    /// By tag; none is empty.
    private var tagged: [ExactText: OrderedDevices<Void>] = [:]
    /// Registered devices.
    package private(set) var count = 0
    /// Devices with a row.
    package private(set) var profileCount = 0
    /// Tags of all devices together.
    package private(set) var tagCount = 0

    private static let empty = DeviceProfile()

    package init() {}

    /// What it takes of memory, about.
    package var bytes: Int { entries.count * 40 + profileCount * 160 + tagCount * 48 + tagged.count * 160 }

    // MARK: - Devices

    /// The device is registered. What its row said stays.
    package mutating func register(_ cid: CID, seenAt: Instant, hasToken: Bool) {
        let day = Self.day(seenAt)
        guard let place = entries.place(of: cid) else {
            entries.insert(cid, Entry(seenDay: day, hasToken: hasToken, isRegistered: true))
            count += 1
            return
        }
        if !entries[place].value.isRegistered { count += 1 }
        entries[place].value.isRegistered = true
        entries[place].value.seenDay = day
        entries[place].value.hasToken = hasToken
    }

    /// The device is gone, and all that was said of it.
    package mutating func remove(_ cid: CID) {
        set(Self.empty, of: cid)
        guard let entry = entries.remove(cid) else { return }
        if entry.isRegistered { count -= 1 }
    }

    package func contains(_ cid: CID) -> Bool {
        entries.place(of: cid).map { entries[$0].value.isRegistered } ?? false
    }

    package mutating func saw(_ cid: CID, at time: Instant) {
        if let place = entries.place(of: cid) { entries[place].value.seenDay = Self.day(time) }
    }

    package mutating func setToken(_ cid: CID, _ hasToken: Bool) {
        if let place = entries.place(of: cid) { entries[place].value.hasToken = hasToken }
    }

    /// nil: no such device.
    package func profile(of cid: CID) -> DeviceProfile? {
        guard let place = entries.place(of: cid), entries[place].value.isRegistered else { return nil }
        return entries[place].value.profile.first ?? Self.empty
    }

    package func isBlocked(_ cid: CID) -> Bool {
        entries.place(of: cid).flatMap { entries[$0].value.profile.first?.isBlocked } ?? false
    }

    package func hasToken(_ cid: CID) -> Bool { entries.place(of: cid).map { entries[$0].value.hasToken } ?? false }

    /// Whether it was last seen before the day of `time`.
    package func wasUnseen(_ cid: CID, since time: Instant) -> Bool {
        entries.place(of: cid).map { entries[$0].value.seenDay < Self.day(time) } ?? false
    }

    /// What holds, whoever said it.
    package func phoneType(of cid: CID) -> PhoneType? { entries.place(of: cid).flatMap { entries[$0].value.phoneType } }

    /// At a start rows come before their devices; whose device never comes is among `orphans`.
    package mutating func restore(_ profile: DeviceProfile, of cid: CID) {
        if entries.place(of: cid) == nil {
            entries.insert(cid, Entry(seenDay: 0, hasToken: false, isRegistered: false))
        }
        set(profile, of: cid)
    }

    /// Rows whose device is not there.
    package func orphans() -> [CID] {
        var found: [CID] = []
        guard entries.count > count else { return found }
        var next = entries.place(after: nil)
        while let place = next {
            if !entries[place].value.isRegistered { found.append(entries[place].cid) }
            next = entries.place(after: place)
        }
        return found
    }

    /// The device's profile is this from now on; one that is not there is not looked at.
    package mutating func set(_ profile: DeviceProfile, of cid: CID) {
        guard let place = entries.place(of: cid) else { return }
        let old = entries[place].value.profile.first ?? Self.empty
        var profile = profile
        if !old.tags.isExactly(profile.tags) {
            for tag in old.tags { untag(cid, ExactText(tag)) }
            // The same text of many devices is in memory once.
            profile.tags = profile.tags.map { tag(cid, ExactText($0)) }
            tagCount += profile.tags.count - old.tags.count
        }
        profileCount += (profile.isEmpty ? 0 : 1) - entries[place].value.profile.count
        entries[place].value.profile = profile.isEmpty ? [] : [profile]
    }

    private mutating func tag(_ cid: CID, _ tag: ExactText) -> String {
        if tagged[tag] == nil { tagged[tag] = OrderedDevices() }
        if tagged[tag]?.place(of: cid) == nil { tagged[tag]?.insert(cid, ()) }
        return (tagged.index(forKey: tag).map { tagged[$0].key } ?? tag).text
    }

    private mutating func untag(_ cid: CID, _ tag: ExactText) {
        tagged[tag]?.remove(cid)
        if tagged[tag]?.count == 0 { tagged[tag] = nil }
    }

    // MARK: - Audiences

    /// A part of an audience.
    package struct Slice: Hashable, Sendable {
        /// In the order of their cids.
        package var devices: [CID] = []
        /// The next slice begins behind this device; nil: there is none.
        package var cursor: CID?

        package init() {}
    }

    /// The devices of the audience behind `cursor` (nil: from the first), at most `limit`, looking at no more than `visits`
    /// devices. The order is that of cids, so a cursor holds across changes and restarts: a device that is there all the time
    /// comes exactly once, one that comes or goes meanwhile comes at most once. The last slice has no cursor.
    package func slice(
        of audience: AudienceExpression, after cursor: CID?, limit: Int, visits: Int
    ) -> Slice {
        var slice = Slice()
        var last = cursor
        let tagged = narrowest(audience)
        let filter = AudienceFilter(audience)
        for _ in 0..<max(1, visits) {
            guard slice.devices.count < max(1, limit), let cid = candidate(in: tagged, after: last) else {
                slice.cursor = slice.devices.count < max(1, limit) ? nil : last
                return slice
            }
            last = cid
            if isMember(cid, of: filter) { slice.devices.append(cid) }
        }
        slice.cursor = last
        return slice
    }

    /// Whether the device is there and meets the conditions.
    package func isMember(_ cid: CID, of audience: AudienceExpression) -> Bool {
        isMember(cid, of: AudienceFilter(audience))
    }

    private func isMember(_ cid: CID, of filter: AudienceFilter) -> Bool {
        guard let place = entries.place(of: cid), entries[place].value.isRegistered else { return false }
        let entry = entries[place].value
        return filter.matches(entry.profile.first ?? Self.empty, entry.phoneType)
    }

    /// The next device that is in one of the lists; nil for any device.
    private func candidate(in lists: [OrderedDevices<Void>]?, after cursor: CID?) -> CID? {
        guard let lists else { return entries.place(after: cursor).map { entries[$0].cid } }
        var first: CID?
        for devices in lists {
            guard let place = devices.place(after: cursor) else { continue }
            let cid = devices[place].cid
            if first.map({ cid < $0 }) ?? true { first = cid }
        }
        return first
    }

    /// The devices of tags of which every device of the audience has one, the fewest that there are; nil when there are no such
    /// tags.
    private func narrowest(_ audience: AudienceExpression) -> [OrderedDevices<Void>]? {
        var found: [OrderedDevices<Void>]?
        var least = Int.max
        func consider(_ tags: [String]) {
            let lists = tags.compactMap { tagged[ExactText($0)] }
            let size = lists.reduce(0) { $0 + $1.count }
            guard size < least else { return }
            least = size
            found = lists
        }
        for condition in audience.conditions where condition.field == .customTag {
            switch condition.operation {
            case .or: consider(condition.values)
            case .and: for tag in condition.values { consider([tag]) }
            case .not: continue
            }
        }
        return found
    }

    // MARK: - Retention

    /// Devices behind `cursor` that were last seen before the day of `time`, looking at no more than `visits`.
    package func unseen(since time: Instant, after cursor: CID?, visits: Int) -> Slice {
        var slice = Slice()
        let day = Self.day(time)
        var next = entries.place(after: cursor)
        for _ in 0..<max(1, visits) {
            guard let place = next else {
                slice.cursor = nil
                return slice
            }
            let element = entries[place]
            slice.cursor = element.cid
            if element.value.isRegistered, element.value.seenDay < day { slice.devices.append(element.cid) }
            next = entries.place(after: place)
        }
        if next == nil { slice.cursor = nil }
        return slice
    }

    // MARK: - Wake-ups

    /// Devices behind `cursor` that have a token and are not blocked, at most `limit`, looking at no more than `visits`.
    package func wakeable(after cursor: CID?, limit: Int, visits: Int) -> Slice {
        var slice = Slice()
        var next = entries.place(after: cursor)
        for _ in 0..<max(1, visits) {
            guard let place = next else {
                slice.cursor = nil
                return slice
            }
            let element = entries[place]
            slice.cursor = element.cid
            if element.value.isRegistered, element.value.hasToken, element.value.profile.first?.isBlocked != true {
                slice.devices.append(element.cid)
            }
            next = entries.place(after: place)
            if slice.devices.count >= max(1, limit) { break }
        }
        if next == nil { slice.cursor = nil }
        return slice
    }

    private static func day(_ time: Instant) -> UInt16 { UInt16(clamping: max(0, time.milliseconds) / 86_400_000) }
}
