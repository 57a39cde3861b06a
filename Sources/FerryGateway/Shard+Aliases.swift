internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryIO
internal import FerryStore

/// Names of devices, at the owner of their app. A call changes them in memory at once, puts the rows on disk, and is answered
/// when those are there; a question about what is not there yet waits likewise (P1).
extension Shard {
    mutating func bind(_ user: UserOrigin, _ bindings: [AliasDirectory.Binding]) {
        if let error = usersShortage() { return settle(user.origin, .failure(error)) }
        let limit = environment.configuration.api.users.aliasDevices
        let number = devices.number(of: user.app)
        do throws(AliasDirectory.Full) {
            let changes = try audience.changeAliases(number) { names throws(AliasDirectory.Full) in
                try names.bind(bindings, limit: limit)
            }
            putAliases(user.app, changes, then: .answer(user.origin, .done))
            // They were there when they were looked for; one that is erased meanwhile may have said so before this.
            for (owner, cids) in Dictionary(grouping: bindings.map(\.cid), by: { environment.owner(of: $0) }) {
                post(.order(.user(.confirm(user.app, cids))), to: owner)
            }
        } catch {
            let why = "\(Excerpt.quoted(error.alias)) would have \(error.devices) devices, at most \(limit)"
            settle(user.origin, .failure(APIError.overLimit("alias", why).inEntry("data_list[\(error.place)]")))
        }
    }

    mutating func changeAliases(
        _ user: UserOrigin, _ then: UserEffect.Then, _ change: (inout AliasDirectory) -> [AliasDirectory.Change]
    ) {
        if let error = usersShortage() { return settle(user.origin, .failure(error)) }
        let changes = audience.changeAliases(devices.number(of: user.app), change)
        putAliases(user.app, changes, then: then)
    }

    mutating func tellAlias(_ user: UserOrigin, _ cid: CID) {
        let alias = audience.alias(devices.number(of: user.app), of: cid)
        let answer = UserAnswer.alias(alias ?? "")
        guard isWritingUsers else { return settle(user.origin, .success(.user(answer))) }
        putAliases(user.app, [AliasDirectory.Change(cid, alias)], then: .answer(user.origin, answer))
    }

    mutating func tellDevices(_ user: UserOrigin, _ alias: String) {
        let cids = audience.devices(devices.number(of: user.app), of: alias)
        let answer = UserAnswer.devices(cids)
        guard isWritingUsers else { return settle(user.origin, .success(.user(answer))) }
        putAliases(
            user.app, cids.map { AliasDirectory.Change($0, alias) }, then: .answer(user.origin, answer))
    }

    /// A device is to go, its name first: a crash between leaves a device without a name, never a name without a device.
    mutating func forgetName(_ removal: Removal) {
        let number = devices.number(of: removal.app)
        var removal = removal
        removal.alias = audience.alias(number, of: removal.cid)
        guard removal.alias != nil || isWritingUsers else {
            return post(.order(.user(.remove(removal))), to: environment.owner(of: removal.cid))
        }
        let changes = audience.changeAliases(number) { $0.remove(removal.cid) }
        putAliases(removal.app, changes, then: .remove(removal))
    }

    /// The device stays after all, and with it the name that it had, unless it has another by now.
    mutating func giveBackName(_ removal: Removal) {
        let number = devices.number(of: removal.app)
        guard let alias = removal.alias, audience.alias(number, of: removal.cid) == nil else { return }
        audience.changeAliases(number) { $0.restore(removal.cid, alias) }
        putAliases(removal.app, [AliasDirectory.Change(removal.cid, alias)], then: .nothing)
    }

    /// Devices that have a name since a moment: those that are not there have none.
    mutating func confirm(_ app: AppID, _ cids: [CID]) {
        let number = devices.number(of: app)
        let owner = Partition(of: app).owner(among: environment.shards)
        for cid in cids where !audience.contains(number, cid) { post(.order(.user(.gone(app, cid))), to: owner) }
    }

    mutating func forgetGone(_ app: AppID, _ cid: CID) {
        let number = devices.number(of: app)
        guard audience.alias(number, of: cid) != nil else { return }
        let changes = audience.changeAliases(number) { $0.remove(cid) }
        putAliases(app, changes, then: .nothing)
    }

    /// No rows: what follows waits for what is on its way, all the same.
    mutating func putAliases(_ app: AppID, _ changes: [AliasDirectory.Change], then: UserEffect.Then) {
        let partition = Partition(of: app)
        let rows = changes.map { change in
            ControlRow(
                .alias, partition, key: AliasRow.key(app, change.cid), value: change.alias.map { AliasRow.value($0) })
        }
        putUsers(rows, UserEffect(then: then, app: app, devices: changes.map(\.cid), isOfAliases: true))
    }

    // MARK: - Rows about users

    /// Rows are on their way: an answer from memory could tell of what a crash would take back.
    var isWritingUsers: Bool {
        users.unwritten > 0 || !audience.unwrittenAliases.isEmpty || !audience.unwrittenProfiles.isEmpty
    }

    mutating func putUsers(_ rows: [ControlRow], _ effect: UserEffect) {
        users.unwritten += 1
        put(rows, then: .users(effect))
    }

    /// Why nothing can be changed now.
    mutating func usersShortage() -> APIError? {
        if isDiskShort { return refusal(.disk) }
        if isMemoryShort(for: MemoryCost.loading) { return refusal(.memory) }
        guard unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes, !isDraining else {
            return refusal(.sync)
        }
        return nil
    }

    // MARK: - At a start

    mutating func restoreAlias(_ row: ControlRow) {
        guard let value = row.value, let found = AliasRow.read(key: row.key, value: value) else { return }
        audience.changeAliases(devices.number(of: found.app)) { $0.restore(found.cid, found.alias) }
    }

    /// A crash between the end of a device and that of its name leaves a name without a device.
    mutating func dropNamesOfNobody(_ known: [KnownDevice]) {
        guard audience.aliases.contains(where: { $0.count > 0 }) else { return }
        var there: [AppID: Set<CID>] = [:]
        for device in known { there[device.app, default: []].insert(device.cid) }
        for number in audience.aliases.indices {
            let app = devices.app(numbered: number)
            let gone = audience.aliases[number].cids.filter { there[app]?.contains($0) != true }
            guard !gone.isEmpty else { continue }
            let changes = audience.changeAliases(number) { names in gone.flatMap { names.remove($0) } }
            putAliases(app, changes, then: .nothing)
        }
    }

    mutating func restoreProfile(_ row: ControlRow) {
        guard let value = row.value, let found = DeviceProfile.read(value), let id = Identifier128(bytes: row.key),
            row.key.count == 16
        else {
            return EventLog.write(
                .error, "what is stored of a device beside its stream cannot be read",
                ["bytes": String(row.value?.count ?? 0)])
        }
        audience.restore(devices.number(of: found.app), CID(id), found.profile)
    }
}
