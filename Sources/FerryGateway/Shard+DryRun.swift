internal import FerryAPI
internal import FerryCore
internal import FerryIO
internal import FerryRouting

/// One owner's part of a dry run, while records are loaded.
final class CensusGathering {
    let app: AppID
    let origin: APIOrigin
    var missing: Int
    var census = DeviceCensus()
    /// The store could tell of every device, whether there is one or not.
    var isComplete = true

    init(app: AppID, origin: APIOrigin, missing: Int) {
        self.app = app
        self.origin = origin
        self.missing = missing
    }
}

/// A dry run that waits for the owners of its devices.
struct CensusQuestion {
    var openParts: Int
    var census = DeviceCensus()
    var isComplete = true
}

/// What a shard is asked for a dry run.
enum CensusOrder: Sendable {
    /// Devices of this shard only.
    case devices(AppID, [CID], APIOrigin)
    /// All that this shard has of the app, from this place of its table on, and what was counted before it.
    case all(AppID, from: Int, DeviceCensus, APIOrigin)
}

/// `dry_run`: whom a push would be for. Nothing is stored for it, and nothing sent.
extension Shard {
    mutating func perform(_ request: NativeRequest, _ app: App, _ origin: APIOrigin) {
        switch request {
        case .dryRun(.devices(let cids)):
            if isMemoryShort(for: cids.count * MemoryCost.loading) {
                return fill(origin, .failure(refusal(.memory)))
            }
            let parts = Dictionary(grouping: cids) { environment.owner(of: $0) }
            censusQuestions[origin] = CensusQuestion(openParts: parts.count)
            for (owner, cids) in parts { post(.order(.census(.devices(app.id, cids, origin))), to: owner) }
        case .dryRun(.all):
            censusQuestions[origin] = CensusQuestion(openParts: environment.shards)
            for shard in 0..<environment.shards {
                post(.order(.census(.all(app.id, from: 0, DeviceCensus(), origin))), to: shard)
            }
        }
    }

    mutating func take(_ order: CensusOrder) {
        switch order {
        case .devices(let app, let cids, let origin):
            let gathering = CensusGathering(app: app, origin: origin, missing: cids.count)
            for cid in cids {
                if let device = devices.index(of: cid) {
                    count(gathering, cid, device)
                } else {
                    wait(for: cid, .census(gathering, cid))
                }
            }
        case .all(let app, let start, let census, let origin): count(app, from: start, census, origin)
        }
    }

    /// One device more is known, or known not to exist (`device` nil). Another app's device is none.
    mutating func count(_ gathering: CensusGathering, _ cid: CID, _ device: Int?) {
        gathering.missing -= 1
        if let device, devices.app(of: device) == gathering.app {
            if devices[device].machine.presence.isOnline {
                gathering.census.online += 1
            } else {
                gathering.census.offline += 1
                if !devices[device].machine.hasToken { gathering.census.withoutToken? += 1 }
            }
        } else {
            gathering.census.unknown.append(cid)
        }
        guard gathering.missing == 0 else { return }
        post(
            .reply(.census(gathering.origin, gathering.census, isComplete: gathering.isComplete)),
            to: gathering.origin.shard)
    }

    /// Places of the table that are looked at in one turn: other devices must not wait for a count.
    private static var countedAtOnce: Int { 16_384 }

    /// Who is online is in memory. How many are registered is known by itself; whether a device that is not in memory has a
    /// token is not.
    private mutating func count(_ app: AppID, from start: Int, _ before: DeviceCensus, _ origin: APIOrigin) {
        let number = devices.number(of: app)
        var census = before
        let end = min(devices.endIndex, start + Self.countedAtOnce)
        if start < end {
            for device in start..<end
            where devices.isInUse(device) && devices.appNumber(of: device) == number
                && devices[device].machine.presence.isOnline
            {
                census.online += 1
            }
        }
        guard end >= devices.endIndex else {
            // Not by `post`, which would go on at once.
            mail[index].append(.order(.census(.all(app, from: end, census, origin))))
            return
        }
        let line = broadcastLine(of: app)
        // Devices come and go while they are counted.
        census.offline = max(0, broadcasts.registered(line) - census.online)
        census.withoutToken = nil
        post(.reply(.census(origin, census, isComplete: true)), to: origin.shard)
    }

    mutating func collect(_ census: DeviceCensus, isComplete: Bool, for origin: APIOrigin) {
        guard var question = censusQuestions.removeValue(forKey: origin) else { return }
        question.openParts -= 1
        question.isComplete = question.isComplete && isComplete
        question.census.add(census)
        guard question.openParts == 0 else {
            censusQuestions[origin] = question
            return
        }
        guard question.isComplete else { return fill(origin, .failure(.busy(retryAfterSeconds: 5))) }
        fill(origin, .success(.native(.census(question.census))))
    }
}
