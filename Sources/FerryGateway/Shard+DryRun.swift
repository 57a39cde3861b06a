internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryIO
internal import FerryRouting

/// A dry run that waits for the owners of its devices.
struct CensusQuestion {
    var openParts: Int
    var census = DeviceCensus()
}

/// What a shard is asked for a dry run.
enum CensusOrder: Sendable {
    /// Devices of this shard only.
    case devices([CID])
    /// All that this shard has of an audience, behind a device, and what was counted before.
    case audience(AudienceExpression, after: CID?, DeviceCensus)
}

/// `dry_run`: whom a push would be for. Nothing is stored for it, and nothing sent.
extension Shard {
    mutating func perform(_ request: NativeRequest, _ app: App, _ origin: APIOrigin) {
        switch request {
        case .dryRun(.devices(let cids)):
            let parts = Dictionary(grouping: cids) { environment.owner(of: $0) }
            censusQuestions[origin] = CensusQuestion(openParts: parts.count)
            for (owner, cids) in parts { post(.order(.census(app.id, .devices(cids), origin)), to: owner) }
        case .dryRun(.audience(let audience)):
            censusQuestions[origin] = CensusQuestion(openParts: environment.shards)
            for shard in 0..<environment.shards {
                post(.order(.census(app.id, .audience(audience, after: nil, DeviceCensus()), origin)), to: shard)
            }
        }
    }

    /// Devices that are looked at in one turn: others must not wait for a count.
    private static var countedAtOnce: Int { 4_096 }

    mutating func take(_ order: CensusOrder, of app: AppID, _ origin: APIOrigin) {
        let number = devices.number(of: app)
        switch order {
        case .devices(let cids):
            var census = DeviceCensus()
            for cid in cids {
                // Another app's device is none.
                if audience.contains(number, cid) {
                    count(cid, number, &census)
                } else {
                    census.unknown.append(cid)
                }
            }
            post(.reply(.census(origin, census)), to: origin.shard)
        case .audience(let expression, let cursor, let before):
            var census = before
            let slice = audience.slice(
                number, of: expression, after: cursor, limit: .max, visits: Self.countedAtOnce)
            for cid in slice.devices { count(cid, number, &census) }
            if let next = slice.cursor {
                // Not by `post`, which would go on at once.
                mail[index].append(.order(.census(app, .audience(expression, after: next, census), origin)))
            } else {
                post(.reply(.census(origin, census)), to: origin.shard)
            }
        }
    }

    /// A device that is not in memory is at rest, and so it is not online.
    private func count(_ cid: CID, _ number: Int, _ census: inout DeviceCensus) {
        if let device = devices.index(of: cid), devices[device].machine.presence.isOnline {
            census.online += 1
        } else {
            census.offline += 1
            if !audience.hasToken(number, cid) { census.withoutToken += 1 }
        }
        if audience.isBlocked(number, cid) { census.blocked += 1 }
        if audience.profile(number, cid)?.notifications == false { census.muted += 1 }
    }

    mutating func collect(_ census: DeviceCensus, for origin: APIOrigin) {
        guard var question = censusQuestions.removeValue(forKey: origin) else { return }
        question.openParts -= 1
        question.census.add(census)
        guard question.openParts == 0 else {
            censusQuestions[origin] = question
            return
        }
        fill(origin, .success(.native(.census(question.census))))
    }
}
