internal import FerryAudience
internal import FerryCore
internal import FerryStore

/// What a shard knows of users: the devices that it owns with what was said of them, and the names of devices of the apps that
/// it owns. By the app's number in the device table.
struct AudienceTable {
    private(set) var rosters: [DeviceRoster] = []
    private(set) var aliases: [AliasDirectory] = []
    /// Rows that the disk refused: what is in memory must get there. Devices by app, each once.
    var unwrittenProfiles: [CID: AppID] = [:]
    var unwrittenAliases: [CID: AppID] = [:]

    private mutating func begin(_ number: Int) {
        while rosters.count <= number {
            rosters.append(DeviceRoster())
            aliases.append(AliasDirectory())
        }
    }

    /// Devices of this shard.
    func roster(_ number: Int) -> DeviceRoster {
        rosters.indices.contains(number) ? rosters[number] : DeviceRoster()
    }

    func profile(_ number: Int, _ cid: CID) -> DeviceProfile? {
        rosters.indices.contains(number) ? rosters[number].profile(of: cid) : nil
    }

    func phoneType(_ number: Int, _ cid: CID) -> PhoneType? {
        rosters.indices.contains(number) ? rosters[number].phoneType(of: cid) : nil
    }

    func contains(_ number: Int, _ cid: CID) -> Bool {
        rosters.indices.contains(number) && rosters[number].contains(cid)
    }

    func hasToken(_ number: Int, _ cid: CID) -> Bool {
        rosters.indices.contains(number) && rosters[number].hasToken(cid)
    }

    func isBlocked(_ number: Int, _ cid: CID) -> Bool {
        rosters.indices.contains(number) && rosters[number].isBlocked(cid)
    }

    func slice(
        _ number: Int, of audience: AudienceExpression, after cursor: CID?, limit: Int, visits: Int
    ) -> DeviceRoster.Slice {
        guard rosters.indices.contains(number) else { return DeviceRoster.Slice() }
        return rosters[number].slice(of: audience, after: cursor, limit: limit, visits: visits)
    }

    func unseen(_ number: Int, since time: Instant, after cursor: CID?, visits: Int) -> DeviceRoster.Slice {
        guard rosters.indices.contains(number) else { return DeviceRoster.Slice() }
        return rosters[number].unseen(since: time, after: cursor, visits: visits)
    }

    func wakeable(_ number: Int, after cursor: CID?, limit: Int, visits: Int) -> DeviceRoster.Slice {
        guard rosters.indices.contains(number) else { return DeviceRoster.Slice() }
        return rosters[number].wakeable(after: cursor, limit: limit, visits: visits)
    }

    func wasUnseen(_ number: Int, _ cid: CID, since time: Instant) -> Bool {
        rosters.indices.contains(number) && rosters[number].wasUnseen(cid, since: time)
    }

    mutating func register(_ number: Int, _ cid: CID, seenAt: Instant, hasToken: Bool) {
        begin(number)
        rosters[number].register(cid, seenAt: seenAt, hasToken: hasToken)
    }

    mutating func saw(_ number: Int, _ cid: CID, at time: Instant) {
        if rosters.indices.contains(number) { rosters[number].saw(cid, at: time) }
    }

    mutating func setToken(_ number: Int, _ cid: CID, _ hasToken: Bool) {
        if rosters.indices.contains(number) { rosters[number].setToken(cid, hasToken) }
    }

    mutating func set(_ number: Int, _ cid: CID, _ profile: DeviceProfile) {
        if rosters.indices.contains(number) { rosters[number].set(profile, of: cid) }
    }

    mutating func restore(_ number: Int, _ cid: CID, _ profile: DeviceProfile) {
        begin(number)
        rosters[number].restore(profile, of: cid)
    }

    mutating func remove(_ number: Int, _ cid: CID) {
        if rosters.indices.contains(number) { rosters[number].remove(cid) }
    }

    /// Lends the names of an app's devices for a change.
    mutating func changeAliases<Answer, Failure: Error>(
        _ number: Int, _ change: (inout AliasDirectory) throws(Failure) -> Answer
    ) throws(Failure) -> Answer {
        begin(number)
        return try change(&aliases[number])
    }

    func devices(_ number: Int, of alias: String) -> [CID] {
        aliases.indices.contains(number) ? aliases[number].devices(of: alias) : []
    }

    func alias(_ number: Int, of cid: CID) -> String? {
        aliases.indices.contains(number) ? aliases[number].alias(of: cid) : nil
    }

    /// What it takes of memory, about.
    var bytes: Int {
        var bytes = 0
        for number in rosters.indices { bytes += rosters[number].bytes + aliases[number].bytes }
        return bytes
    }
}
