internal import FerryAPI
internal import FerryAudience
internal import FerryCore
internal import FerryRouting
internal import FerryStore

/// What the traits of a message come to for one device, at its acceptance.
struct AcceptanceTerms {
    /// As they are kept: with the route that holds for this device.
    var traits: MessageTraits
    /// It is not delivered after this.
    var endsAt = Instant.distantFuture
    /// nil: as for any message.
    var stub: StubNeed?
}

/// Messages of which the sender said more than payload, ttl and alert.
extension Shard {
    enum TermsOfAcceptance {
        case taken(AcceptanceTerms)
        /// The device is one of those that the sender's filter passes over.
        case ignored
        /// `leftOutAs`: what is told of it where no call can be told.
        case refused(APIError, leftOutAs: EndReason)
    }

    func terms(of order: PushOrder, _ content: PushContent, _ device: Int) -> TermsOfAcceptance {
        guard let traits = MessageTraits(encoded: content.traits) else {
            return .refused(.badParameter("settings cannot be read"), leftOutAs: .unreadable)
        }
        return terms(of: traits, order.cid, device)
    }

    func terms(of wished: MessageTraits, _ cid: CID, _ device: Int) -> TermsOfAcceptance {
        guard wished != .none else { return .taken(AcceptanceTerms(traits: wished)) }
        var traits = wished
        if let activity = traits.activity, activity.skips(seenAt: lastSeen(device), now: now) { return .ignored }
        if traits.skipsNotifyOff, audience.profile(devices.appNumber(of: device), cid)?.notifications == false {
            return .ignored
        }
        let hasToken = devices[device].machine.hasToken
        if let other = traits.otherRoute {
            if !hasToken { traits.route = other }
            traits.otherRoute = nil
        }
        guard hasToken || !traits.route.handsOver else {
            return .refused(.tokenMissing(cid, strategy: traits.route.strategy), leftOutAs: .tokenMissing)
        }
        var terms = AcceptanceTerms(traits: traits)
        if let window = traits.window {
            guard window.upperBound > now else {
                return .refused(.windowOver(window), leftOutAs: .windowOver)
            }
            terms.endsAt = window.upperBound
            // Its owner could not see it yet.
            if window.lowerBound > now { terms.stub = .notWanted }
        }
        switch traits.route {
        case .ownFirst: break
        case .ownOnly: terms.stub = .notWanted
        case .wakeOnly, .wakeFirst: terms.stub = .due
        }
        return .taken(terms)
    }

    /// The message is on its way to the disk, and in the same batch the number on the app's icon as it will be, if the message
    /// comes with a wake-up.
    mutating func countBadge(_ terms: AcceptanceTerms, _ device: Int) {
        guard let change = terms.traits.badge, !devices[device].isBlocked,
            terms.traits.route.handsOver || !devices[device].machine.presence.isOnline
        else { return }
        let (app, cid) = (devices.app(of: device), devices[device].cid)
        edit(app, cid) {
            $0.badge = min(
                Int(change.applied(to: Int32(clamping: $0.badge ?? 0))), DeviceProfile.maximumBadge)
        }
        putProfiles(app, [cid], then: .nothing)
    }

    /// The number that an alert with a badge shows now.
    func badge(_ device: Int) -> Int32 {
        Int32(clamping: audience.profile(devices.appNumber(of: device), devices[device].cid)?.badge ?? 0)
    }

    /// A device that is there was seen now.
    private func lastSeen(_ device: Int) -> Instant {
        devices[device].machine.presence.isOnline ? now : devices[device].seenAt
    }
}

extension APIError {
    /// 20001: nobody may be shown the message any more.
    static func windowOver(_ window: ClosedRange<Instant>) -> APIError {
        .invalid("push_message.duration", "it is over since \(window.upperBound.milliseconds)")
    }

    /// 20001: the strategy goes by APNs alone, or first, and the device never told a token, or took it back.
    static func tokenMissing(_ cid: CID, strategy: Int64) -> APIError {
        .badParameter(
            "target user is invalid: cid \"\(cid)\" has no device token, which settings.strategy \(strategy) needs")
    }
}
