internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// One owner's part of a status call, while records are loaded.
final class StatusGathering {
    let app: AppID
    let origin: APIOrigin
    var missing: Int
    var found: [(cid: CID, isOnline: Bool, seenAt: Instant)] = []
    /// The store could tell of every device, whether there is one or not.
    var isComplete = true

    init(app: AppID, origin: APIOrigin, missing: Int) {
        self.app = app
        self.origin = origin
        self.missing = missing
    }
}

/// A status call that waits for the owners of its devices.
struct StatusQuestion {
    let cids: [CID]
    var openParts: Int
    var found: [CID: UserStatus] = [:]
    var isComplete = true
}

extension Shard {
    mutating func askStatus(_ cids: [CID], _ app: App, _ origin: APIOrigin) {
        let parts = Dictionary(grouping: cids) { environment.owner(of: $0) }
        statusQuestions[origin] = StatusQuestion(cids: cids, openParts: parts.count)
        for (owner, cids) in parts { post(.order(.status(app.id, cids, origin)), to: owner) }
    }

    mutating func gatherStatus(_ app: AppID, _ cids: [CID], _ origin: APIOrigin) {
        let gathering = StatusGathering(app: app, origin: origin, missing: cids.count)
        for cid in cids {
            if let device = devices.index(of: cid) {
                gather(gathering, cid, device)
            } else {
                wait(for: cid, .status(gathering, cid))
            }
        }
    }

    /// One device more is known, or known not to exist (`device` nil).
    mutating func gather(_ gathering: StatusGathering, _ cid: CID, _ device: Int?) {
        gathering.missing -= 1
        if let device, devices.app(of: device) == gathering.app {
            let isOnline = devices[device].machine.presence.isOnline
            gathering.found.append((cid, isOnline, devices[device].seenAt))
        }
        guard gathering.missing == 0 else { return }
        post(
            .reply(.status(gathering.origin, gathering.found, isComplete: gathering.isComplete)),
            to: gathering.origin.shard)
    }

    mutating func collect(
        _ statuses: [(cid: CID, isOnline: Bool, seenAt: Instant)], isComplete: Bool, for origin: APIOrigin
    ) {
        guard var question = statusQuestions.removeValue(forKey: origin) else { return }
        question.openParts -= 1
        question.isComplete = question.isComplete && isComplete
        for status in statuses {
            question.found[status.cid] = UserStatus(isOnline: status.isOnline, lastLogin: status.seenAt)
        }
        guard question.openParts == 0 else {
            statusQuestions[origin] = question
            return
        }
        guard question.isComplete else { return fill(origin, .failure(.busy(retryAfterSeconds: 5))) }
        let devices = question.cids.map { APIAnswer.Device(cid: $0, status: question.found[$0]) }
        fill(origin, .success(.statuses(devices)))
    }
}
