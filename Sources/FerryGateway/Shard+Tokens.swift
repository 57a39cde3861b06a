internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// Push tokens: one of (app, environment, token) belongs to one device, the last that named it, so that a phone which was
/// set up anew is not woken for the installation before. Each token has its place at one shard, by its digest; that shard
/// knows who holds it.
extension Shard {
    private func place(of digest: UInt64) -> Int { Int(digest % UInt64(environment.shards)) }

    /// The device's record has changed from one token to another, on disk.
    mutating func tokenChanged(_ device: Int, from old: PushToken?, to new: PushToken?) {
        guard old != new else { return }
        let app = devices.app(of: device)
        let cid = devices[device].cid
        if let old {
            let claim = TokenClaim(app: app, token: old, cid: cid)
            post(.tokenGivenUp(claim), to: place(of: claim.digest))
        }
        if let new {
            let claim = TokenClaim(app: app, token: new, cid: cid)
            post(.tokenClaimed(claim), to: place(of: claim.digest))
        }
    }

    mutating func take(_ claim: TokenClaim) {
        let digest = claim.digest
        if let holder = tokenHolders[digest], holder != claim.cid {
            post(.tokenLost(claim, holder: holder), to: environment.owner(of: holder))
        }
        tokenHolders[digest] = claim.cid
    }

    mutating func giveUp(_ claim: TokenClaim) {
        let digest = claim.digest
        if tokenHolders[digest] == claim.cid { tokenHolders[digest] = nil }
    }

    mutating func loseToken(_ claim: TokenClaim, holder: CID) {
        if let device = devices.index(of: holder) {
            loseToken(claim, device: device)
        } else {
            wait(for: holder, .tokenLoss(claim))
        }
    }

    mutating func loseToken(_ claim: TokenClaim, device: Int) {
        // Digests may meet by chance: only the very token is lost.
        guard devices.app(of: device) == claim.app, devices[device].token == claim.token else { return }
        let cid = devices[device].cid
        devices[device].pendingChanges += 1
        append(
            .pushTokenChanged(cid: cid, token: nil, at: now),
            .pushTokenChanged(cid, nil, connection: nil))
    }
}
