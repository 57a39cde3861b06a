internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryIO
internal import FerryStore

/// Calls about users, where they came in: from the call to the owners of its devices and of its app, and back. What owners do
/// is in `Shard+Aliases`, `Shard+Profiles` and `Shard+Removal`.
extension Shard {
    mutating func ask(_ call: UserCall, _ app: App, _ origin: APIOrigin) {
        let user = UserOrigin(app: app.id, origin: origin)
        switch call {
        case .bindAliases(let bindings): verify(bindings.map(\.cid), call, app, user)
        case .aliasOfDevice(let cid): verify([cid], call, app, user)
        case .block(let cids, _), .badge(let cids, _): verify(cids, call, app, user)
        case .unbindAliases(let bindings): askOwner(of: app, .unbind(user, bindings))
        case .devicesOfAlias(let alias): askOwner(of: app, .devicesOf(user, alias))
        case .dropAlias(let alias): askOwner(of: app, .dropAlias(user, alias))
        case .setTags(let cid, let tags): askOwner(of: cid, .setTags(user, cid, tags))
        case .tags(let cid): askOwner(of: cid, .tags(user, cid))
        case .setProfile(let cid, let change): askOwner(of: cid, .setProfile(user, cid, change))
        case .erase(let cid): askOwner(of: app, .forget(Removal(app: app.id, cid: cid, origin: origin)))
        case .tagDevices(let tag, let cids, let isSet):
            askOwners(of: cids, call, app, origin) { .tag(user, tag, $0, isSet: isSet) }
        case .deviceStatus(let cids): askOwners(of: cids, call, app, origin) { .statuses(user, $0) }
        case .detail(let cids, let invalid):
            if cids.isEmpty { return settle(origin, .success(.user(.details(found: [], invalid: invalid)))) }
            askOwners(of: cids, call, app, origin) { .details(user, $0) }
        case .count(let audience):
            users.questions[origin] = UserQuestion(call, app, open: environment.shards)
            for shard in 0..<environment.shards { post(.order(.user(.count(user, audience))), to: shard) }
        case .pushAliases(let pushes):
            users.questions[origin] = UserQuestion(call, app, open: 1)
            askOwner(of: app, .resolve(user, pushes.pushes.map(\.alias)))
        }
    }

    private mutating func askOwner(of app: App, _ order: UserOrder) {
        post(.order(.user(order)), to: Partition(of: app.id).owner(among: environment.shards))
    }

    private mutating func askOwner(of cid: CID, _ order: UserOrder) {
        post(.order(.user(order)), to: environment.owner(of: cid))
    }

    private mutating func askOwners(
        of cids: [CID], _ call: UserCall, _ app: App, _ origin: APIOrigin, _ order: ([CID]) -> UserOrder
    ) {
        let parts = Dictionary(grouping: cids) { environment.owner(of: $0) }
        users.questions[origin] = UserQuestion(call, app, open: parts.count)
        for (owner, cids) in parts { post(.order(.user(order(cids))), to: owner) }
    }

    /// All of its devices must be the app's before anything is done.
    private mutating func verify(_ cids: [CID], _ call: UserCall, _ app: App, _ user: UserOrigin) {
        let parts = Dictionary(grouping: Set(cids)) { environment.owner(of: $0) }
        var question = UserQuestion(call, app, open: parts.count)
        question.isVerifying = true
        users.questions[user.origin] = question
        for (owner, cids) in parts { post(.order(.user(.verify(user, cids))), to: owner) }
    }

    mutating func collect(_ part: UserPart, for origin: APIOrigin) {
        guard var question = users.questions.removeValue(forKey: origin) else { return }
        question.take(part)
        guard question.open <= 0 else {
            users.questions[origin] = question
            return
        }
        if let error = question.error { return settle(origin, .failure(error)) }
        if question.isVerifying { proceed(question, origin) } else { answer(question, origin) }
    }

    /// It is known which of its devices there are.
    private mutating func proceed(_ question: UserQuestion, _ origin: APIOrigin) {
        let user = UserOrigin(app: question.app.id, origin: origin)
        if let error = Self.refusal(question) { return settle(origin, .failure(error)) }
        switch question.call {
        case .bindAliases(let bindings): askOwner(of: question.app, .bind(user, bindings))
        case .aliasOfDevice(let cid): askOwner(of: question.app, .aliasOf(user, cid))
        case .block(let cids, let isBlocked):
            askOwners(of: cids, question.call, question.app, origin) { .block(user, $0, isBlocked: isBlocked) }
        case .badge(let cids, let change):
            askOwners(of: cids, question.call, question.app, origin) { .badge(user, $0, change) }
        case .unbindAliases, .devicesOfAlias, .dropAlias, .setTags, .tags, .tagDevices, .deviceStatus, .detail, .count,
            .setProfile, .erase, .pushAliases:
            return
        }
    }

    /// The first of its devices that the app does not have, by name and with its place.
    private static func refusal(_ question: UserQuestion) -> APIError? {
        guard !question.unknown.isEmpty else { return nil }
        let unknown = Set(question.unknown)
        switch question.call {
        case .bindAliases(let bindings):
            guard let place = bindings.firstIndex(where: { unknown.contains($0.cid) }) else { return nil }
            return APIError.targetInvalid(bindings[place].cid.description).inEntry("data_list[\(place)]")
        case .block(let cids, _), .badge(let cids, _):
            return cids.first { unknown.contains($0) }.map { .targetInvalid($0.description) }
        case .aliasOfDevice(let cid): return .targetInvalid(cid.description)
        case .unbindAliases, .devicesOfAlias, .dropAlias, .setTags, .tags, .tagDevices, .deviceStatus, .detail, .count,
            .setProfile, .erase, .pushAliases:
            return nil
        }
    }

    private mutating func answer(_ question: UserQuestion, _ origin: APIOrigin) {
        switch question.call {
        case .tagDevices(_, let cids, _):
            let outcomes = cids.map { UserAnswer.Outcome(cid: $0, isDone: question.outcomes[$0] ?? false) }
            settle(origin, .success(.user(.perDevice(outcomes))))
        case .block, .badge: settle(origin, .success(.user(.done)))
        case .deviceStatus(let cids):
            settle(origin, .success(.user(.deviceStatuses(cids.compactMap { question.statuses[$0] }))))
        case .detail(let cids, let invalid):
            let missing = cids.filter { question.details[$0] == nil }.map(\.description)
            settle(
                origin,
                .success(.user(.details(found: cids.compactMap { question.details[$0] }, invalid: invalid + missing))))
        case .count: settle(origin, .success(.user(.count(question.count))))
        case .pushAliases(let pushes): order(pushes, to: question.resolved, question.app, origin)
        case .bindAliases, .unbindAliases, .aliasOfDevice, .devicesOfAlias, .dropAlias, .setTags, .tags, .setProfile,
            .erase:
            return
        }
    }

    // MARK: - Pushes to names

    /// A name's devices are known: each gets a push of its own, and all of them are one task.
    private mutating func order(_ pushes: AliasPushes, to devices: [[CID]], _ app: App, _ origin: APIOrigin) {
        var single: [SinglePush] = []
        var names: [PushNames] = []
        var refused: [(target: String, error: APIError)] = []
        var nobody: Set<[UInt8]> = []
        for (push, cids) in zip(pushes.pushes, devices) {
            if cids.isEmpty, nobody.insert(Array(push.alias.utf8)).inserted {
                refused.append((push.alias, .aliasInvalid(push.alias)))
            }
            let name: PushNames =
                cids.count > 1
                ? .task(TaskID(randomIdentifier().ofSeveral, monthDay: now.monthDay, kind: .single)) : .own
            for cid in cids {
                var one = push.push
                one.cid = cid
                single.append(one)
                names.append(name)
            }
        }
        guard !single.isEmpty else {
            return settle(origin, .failure(refused.first?.error ?? .empty("audience.alias")))
        }
        batches[origin] = BatchQuestion(
            single, isAsync: pushes.isAsync, refused: refused.map { ($0.target, $0.error.message) })
        for (place, push) in single.enumerated() {
            order(push, app, origin, place: Int32(truncatingIfNeeded: place), names: names[place])
        }
    }

    // MARK: - Orders

    mutating func take(_ order: UserOrder) {
        switch order {
        case .verify(let user, let cids):
            let number = devices.number(of: user.app)
            tell(user, .unknown(cids.filter { !audience.contains(number, $0) }))
        case .tag(let user, let tag, let cids, let isSet): setTag(user, tag, cids, isSet: isSet)
        case .block(let user, let cids, let isBlocked): block(user, cids, isBlocked: isBlocked)
        case .badge(let user, let cids, let badge):
            change(user, cids, then: .part(user.origin, .outcomes([]))) { $0.badge = badge.applied(to: $0.badge) }
        case .statuses(let user, let cids): tell(user, .statuses(statuses(user, cids)))
        case .details(let user, let cids): gatherDetails(user, cids)
        case .count(let user, let audience): users.counts.append(AudienceCount(origin: user, audience: audience))
        case .setTags(let user, let cid, let tags): setTags(user, cid, tags)
        case .tags(let user, let cid): tellTags(user, cid)
        case .setProfile(let user, let cid, let change):
            changeOne(user, cid, answer: .done) { change.apply(to: &$0) }
        case .remove(let removal): remove(removal)
        case .bind(let user, let bindings): bind(user, bindings)
        case .unbind(let user, let bindings):
            changeAliases(user, .answer(user.origin, .done)) { $0.unbind(bindings) }
        case .dropAlias(let user, let alias): changeAliases(user, .answer(user.origin, .done)) { $0.drop(alias) }
        case .aliasOf(let user, let cid): tellAlias(user, cid)
        case .devicesOf(let user, let alias): tellDevices(user, alias)
        case .forget(let removal): forgetName(removal)
        case .gone(let app, let cid): forgetGone(app, cid)
        case .resolve(let user, let aliases):
            let number = devices.number(of: user.app)
            tell(user, .resolved(aliases.map { audience.devices(number, of: $0) }))
        }
    }

    mutating func tell(_ user: UserOrigin, _ part: UserPart) {
        post(.reply(.user(user.origin, part)), to: user.origin.shard)
    }

    // MARK: - In slices

    var hasUsersToDo: Bool { !users.counts.isEmpty || canContinueRetention }

    /// Behind all else of the tick.
    mutating func continueUsers() {
        continueAudienceCounts()
        continueRetention()
    }

    // MARK: - On disk

    mutating func usersWritten(_ effect: UserEffect) {
        switch effect.then {
        case .answer(let origin, let answer): settle(origin, .success(.user(answer)))
        case .part(let origin, let part): post(.reply(.user(origin, part)), to: origin.shard)
        case .remove(let removal):
            post(.order(.user(.remove(removal))), to: environment.owner(of: removal.cid))
        case .nothing: return
        }
    }

    /// What is in memory is ahead of the disk: who waits is told that it may be so or not, and it is written again.
    mutating func usersNotWritten(_ effect: UserEffect) {
        for cid in effect.devices {
            if effect.isOfAliases {
                audience.unwrittenAliases[cid] = effect.app
            } else {
                audience.unwrittenProfiles[cid] = effect.app
            }
        }
        deferredUntil = min(deferredUntil, now + .seconds(1))
        let busy = APIError.busy(retryAfterSeconds: 5)
        switch effect.then {
        case .answer(let origin, _): settle(origin, .failure(busy))
        case .part(let origin, _): post(.reply(.user(origin, .failed(busy))), to: origin.shard)
        case .remove(let removal): if let origin = removal.origin { settle(origin, .failure(busy)) }
        case .nothing: return
        }
    }

    /// After a while, as they are then.
    mutating func writeUsersAgain() {
        let profiles = audience.unwrittenProfiles
        let aliases = audience.unwrittenAliases
        audience.unwrittenProfiles = [:]
        audience.unwrittenAliases = [:]
        for (cid, app) in profiles { putProfiles(app, [cid], then: .nothing) }
        for (cid, app) in aliases {
            let number = devices.number(of: app)
            putAliases(app, [AliasDirectory.Change(cid, audience.alias(number, of: cid))], then: .nothing)
        }
    }
}

extension APIError {
    /// Nobody has this name.
    static func aliasInvalid(_ alias: String) -> APIError {
        .badParameter("target user is invalid: alias \(Excerpt.quoted(alias)) has no device")
    }
}
