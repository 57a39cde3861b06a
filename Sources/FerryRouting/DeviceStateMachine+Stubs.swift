package import FerryCore

/// Wake-ups: when one is due, what it stands for, when the next may go.
extension DeviceStateMachine {
    /// What waits for want of a token is due with the first one.
    mutating func changeToken(_ has: Bool, now: Instant, actions: inout [DeviceAction]) {
        let hadToken = hasToken
        hasToken = has
        guard has, !hadToken, presence == .offline else { return }
        markDue(actions: &actions)
        requestDueStubs(now: now, actions: &actions)
    }

    /// Every message that has had no stub gets one due, or the note that there is no token.
    mutating func markDue(actions: inout [DeviceAction]) {
        var last: Seq?
        for index in 0..<log.count {
            switch log[index].stub {
            case .none: log[index].stub = hasToken ? .due : .noToken
            case .noToken where hasToken: log[index].stub = .due
            case .due, .requested, .settled, .noToken, .notWanted: continue
            }
            last = log[index].seq
        }
        guard let last else { return }
        if hasToken {
            unsyncedDue = unsyncedDue == .max ? .max : unsyncedDue + 1
            actions.append(.recordStubsDue(upTo: last))
        } else {
            actions.append(.recordNoToken(upTo: last))
        }
    }

    mutating func requestDueStubs(now: Instant, actions: inout [DeviceAction]) {
        guard presence == .offline, unsyncedDue == 0, hasToken else { return }
        var standard: (upTo: Seq, expiresAt: Instant)?
        for index in 0..<log.count where log[index].stub == .due && !log[index].isHandingOver {
            let message = log[index]
            if message.hasOwnAlert {
                log[index].stub = .requested
                log[index].wasOffline = true
                actions.append(.requestStub(.own(message)))
            } else if defaultStub == .idle {
                log[index].stub = .requested
                log[index].wasOffline = true
                standard = (message.seq, max(standard?.expiresAt ?? message.expiresAt, message.expiresAt))
            }
        }
        guard let standard else { return }
        defaultStub = .inFlight
        actions.append(
            .requestStub(.standard(upTo: standard.upTo, badge: badge, expiresAt: standard.expiresAt)))
    }

    /// What a default stub shows: everything that is kept.
    private var badge: Int {
        var count = log.ownCount
        guard log.sharedCount > 0 else { return count }
        for index in 0..<log.count where log[index].isShared && !log[index].isLiveOnly { count += 1 }
        return count
    }

    /// A broadcast's stub, once in the machine's life. Of a device that is away nothing is recorded: whose turn has come is known
    /// elsewhere.
    mutating func wantWake(_ seq: Seq, now: Instant, actions: inout [DeviceAction]) {
        guard let index = position(of: seq), log[index].isShared, !log[index].isLiveOnly,
            log[index].stub == .notWanted
        else { return }
        guard presence == .offline else {
            log[index].stub = .none
            return
        }
        guard hasToken else { return }
        log[index].stub = .due
        requestDueStubs(now: now, actions: &actions)
    }

    /// Whether it is still open if the device's owner is woken for the broadcast: a stub is due or has no answer, or it is
    /// about to be known whether the device is away.
    package func isWakeOpen(_ seq: Seq) -> Bool {
        guard let index = position(of: seq) else { return false }
        switch log[index].stub {
        case .due: return hasToken
        case .requested: return true
        case .none: if case .attached = presence { return false } else { return hasToken }
        case .settled, .noToken, .notWanted: return false
        }
    }

    /// It is due again, for the next time that the device is away.
    mutating func withdrawStub(
        _ seq: Seq, now: Instant, policy: Policy, actions: inout [DeviceAction]
    ) {
        guard let index = position(of: seq), log[index].stub == .requested, log[index].hasOwnAlert else { return }
        guard !log[index].isHandingOver else {
            return endHandOver(at: index, .handOverRefused, now: now, policy: policy, actions: &actions)
        }
        log[index].stub = .due
        requestDueStubs(now: now, actions: &actions)
    }

    /// Whether the own alert that `.requestStub` named still has a reason, now that its text has been read.
    package func wantsStub(of message: KeptMessage) -> Bool {
        if message.route.handsOver { return position(of: message.seq).map { log[$0].isHandingOver } ?? false }
        return message.isLiveOnly || (!presence.isOnline && isKept(message.seq))
    }

    mutating func stubAnswered(_ plan: StubPlan, now: Instant, policy: Policy) {
        switch plan {
        case .own(let message):
            if let index = position(of: message.seq) { log[index].stub = .settled }
        case .standard(let upTo, _, _):
            for index in 0..<log.firstIndex(after: upTo)
            where log[index].stub == .requested && !log[index].hasOwnAlert {
                log[index].stub = .settled
            }
            defaultStub = .coolingDown(until: now + policy.stubCooldown)
        }
    }
}
