internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerryStore

/// What backends say of devices, at the devices' owner.
extension Shard {
    // MARK: - One device

    /// Changes what is known of a device and answers the call when that is on disk.
    mutating func changeOne(
        _ user: UserOrigin, _ cid: CID, answer: UserAnswer, _ change: (inout DeviceProfile) -> Void
    ) {
        guard audience.contains(devices.number(of: user.app), cid),
            devices.index(of: cid).map({ !devices[$0].isLeaving }) ?? true
        else {
            return settle(user.origin, .failure(.targetInvalid(cid.description)))
        }
        if let error = usersShortage() { return settle(user.origin, .failure(error)) }
        edit(user.app, cid, change)
        putProfiles(user.app, [cid], then: .answer(user.origin, answer))
    }

    mutating func setTags(_ user: UserOrigin, _ cid: CID, _ tags: [String]) {
        changeOne(user, cid, answer: .done) { $0.tags = tags }
    }

    mutating func tellTags(_ user: UserOrigin, _ cid: CID) {
        guard let profile = audience.profile(devices.number(of: user.app), cid) else {
            return settle(user.origin, .failure(.targetInvalid(cid.description)))
        }
        let answer = UserAnswer.tags(cid, profile.tags)
        guard isWritingUsers else { return settle(user.origin, .success(.user(answer))) }
        putProfiles(user.app, [cid], then: .answer(user.origin, answer))
    }

    // MARK: - Several

    /// Devices that are gone since they were looked for are left out.
    mutating func change(
        _ user: UserOrigin, _ cids: [CID], then: UserEffect.Then, _ change: (inout DeviceProfile) -> Void
    ) {
        if let error = usersShortage() { return tell(user, .failed(error)) }
        for cid in cids { edit(user.app, cid, change) }
        putProfiles(user.app, cids, then: then)
    }

    /// A device that is not there, or would have more tags than it may, stays as it is.
    mutating func setTag(_ user: UserOrigin, _ tag: String, _ cids: [CID], isSet: Bool) {
        if let error = usersShortage() { return tell(user, .failed(error)) }
        let number = devices.number(of: user.app)
        let limits = environment.configuration.api.users
        var outcomes: [UserAnswer.Outcome] = []
        var changed: [CID] = []
        for cid in cids {
            var isDone = false
            if let profile = audience.profile(number, cid) {
                isDone = !isSet || profile.tags.containsExactly(tag) || limits.allows(profile.tags + [tag])
            }
            outcomes.append(UserAnswer.Outcome(cid: cid, isDone: isDone))
            guard isDone else { continue }
            changed.append(cid)
            edit(user.app, cid) { profile in
                if !isSet {
                    profile.tags.removeAll { $0.isExactly(tag) }
                } else if !profile.tags.containsExactly(tag) {
                    profile.tags.append(tag)
                }
            }
        }
        putProfiles(user.app, changed, then: .part(user.origin, .outcomes(outcomes)))
    }

    mutating func block(_ user: UserOrigin, _ cids: [CID], isBlocked: Bool) {
        change(user, cids, then: .part(user.origin, .outcomes([]))) { $0.isBlocked = isBlocked }
        let number = devices.number(of: user.app)
        for cid in cids {
            guard let device = devices.index(of: cid), devices.appNumber(of: device) == number else { continue }
            let isNow = audience.isBlocked(number, cid)
            let wasBlocked = devices[device].isBlocked
            devices[device].isBlocked = isNow
            if wasBlocked && !isNow { pump(device) }
        }
    }

    mutating func edit(_ app: AppID, _ cid: CID, _ change: (inout DeviceProfile) -> Void) {
        let number = devices.number(of: app)
        guard var profile = audience.profile(number, cid) else { return }
        change(&profile)
        audience.set(number, cid, profile)
    }

    /// The rows of these devices as they are now. No rows: what follows waits all the same.
    mutating func putProfiles(_ app: AppID, _ cids: [CID], then: UserEffect.Then) {
        let number = devices.number(of: app)
        let rows = cids.map { cid in
            // What is said of a device that is about to go must not outlive it.
            let isLeaving = devices.index(of: cid).map { devices[$0].isLeaving } ?? false
            let profile = isLeaving ? nil : audience.profile(number, cid)
            return ControlRow(
                .profile, Partition(of: cid), key: cid.value.bytes,
                value: profile.flatMap { $0.isEmpty ? nil : $0.row(of: app) })
        }
        putUsers(rows, UserEffect(then: then, app: app, devices: cids, isOfAliases: false))
    }

    // MARK: - Questions

    func statuses(_ user: UserOrigin, _ cids: [CID]) -> [UserAnswer.Status] {
        guard let number = devices.knownNumber(of: user.app) else { return [] }
        return cids.compactMap { cid in
            guard audience.contains(number, cid) else { return nil }
            // A device that is not in memory is not there.
            let isOnline = devices.index(of: cid).map { devices[$0].machine.presence.isOnline } ?? false
            let hasToken = audience.rosters[number].hasToken(cid)
            return UserAnswer.Status(cid: cid, isOnline: isOnline, isReachable: isOnline || hasToken)
        }
    }

    mutating func gatherDetails(_ user: UserOrigin, _ cids: [CID]) {
        let gathering = DetailGathering(user, missing: cids.count)
        for cid in cids {
            if let device = devices.index(of: cid) {
                gather(gathering, device)
            } else {
                wait(for: cid, .detail(gathering))
            }
        }
    }

    /// One device more is known, or known not to exist (`device` nil).
    mutating func gather(_ gathering: DetailGathering, _ device: Int?) {
        gathering.missing -= 1
        if let device, devices.app(of: device) == gathering.origin.app { gathering.found.append(detail(of: device)) }
        guard gathering.missing == 0 else { return }
        tell(
            gathering.origin,
            gathering.isComplete ? .details(gathering.found) : .failed(.busy(retryAfterSeconds: 5)))
    }

    private func detail(of device: Int) -> UserAnswer.Detail {
        let app = devices.app(of: device)
        let cid = devices[device].cid
        let number = devices.appNumber(of: device)
        return UserAnswer.Detail(
            cid: cid, app: app, package: environment.configuration.apps[app]?.topic ?? app.text,
            token: devices[device].token.map { Hexadecimal.encode($0.bytes) },
            phoneType: audience.phoneType(number, cid), profile: audience.profile(number, cid) ?? DeviceProfile(),
            registeredAt: devices[device].registeredAt)
    }

    // MARK: - Counting

    private static var visitsPerLook: Int { 1_024 }
    private static var countTime: Duration { .milliseconds(1) }

    /// Behind all else of the tick: the first question counts on for a while, then the next has its turn.
    mutating func continueAudienceCounts() {
        guard !users.counts.isEmpty else { return }
        var current = users.counts.removeFirst()
        let end = environment.clock() + Self.countTime
        let number = devices.number(of: current.origin.app)
        repeat {
            let slice = audience.slice(
                number, of: current.audience, after: current.cursor, limit: .max, visits: Self.visitsPerLook)
            current.count += slice.devices.count
            current.cursor = slice.cursor
            if slice.cursor == nil { return tell(current.origin, .count(current.count)) }
        } while environment.clock() < end
        users.counts.append(current)
    }
}
