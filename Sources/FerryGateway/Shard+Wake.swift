internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// A message's own alert, about to be asked for.
struct OwnStub {
    let cid: CID
    /// By which the SDK names the message.
    let name: String
    let alert: OwnAlert
    let traits: MessageTraits
    /// nil asks for one try only.
    let expiresAt: Instant?
    let identity: Identifier128
}

/// Wake-ups: from a device's decision to the channel, and the answer back.
extension Shard {
    mutating func requestStub(_ plan: StubPlan, _ device: Int) {
        let cid = devices[device].cid
        stubsInFlight += 1
        guard let token = devices[device].token else {
            stubAnswered(cid, plan, .refused("the device has no token"))
            return
        }
        guard !devices[device].isBlocked else {
            stubAnswered(cid, plan, .refused("the device is blocked"))
            return
        }
        switch plan {
        case .standard(let upTo, let badge, let expiresAt):
            let stub = environment.composer.standard(
                topic: topic(device), token: token, cid: cid, badge: badge,
                expiresAt: onWall(known(expiresAt, upTo: upTo, device)),
                identity: Self.stubIdentity(cid, upTo))
            send(stub, plan, cid)
        case .own(let message):
            if message.isShared { return requestSharedStub(message, plan, device) }
            if let content = atHand.first(where: { $0.seq == message.seq && $0.cid == cid }) {
                requestOwnStub(content, plan, device)
                return
            }
            lastTicket &+= 1
            reads[lastTicket] = .alert(cid, plan)
            environment.store.submit(
                [.read(ticket: lastTicket, [MessageReference(cid: cid, seq: message.seq, location: message.location)])],
                from: index)
        }
    }

    mutating func requestOwnStub(_ content: AcceptedMessage, _ plan: StubPlan, _ device: Int) {
        guard let token = devices[device].token else {
            // It was lost while the text was read. That settles nothing but a hand-over: with the next token the stub is due.
            withdrawStub(content.seq, device)
            return
        }
        guard !isStopped(content.taskID.value) else {
            withdrawStub(content.seq, device, isStopped: true)
            return
        }
        guard let alert = content.alert else {
            stubAnswered(content.cid, plan, .refused("the message has no alert"))
            return
        }
        requestOwnStub(
            OwnStub(
                cid: content.cid, name: "\(content.taskID):\(content.messageID):\(content.cid)", alert: alert,
                traits: content.traits, expiresAt: content.isLiveOnly ? nil : content.expiresAt,
                identity: content.messageID.value),
            token, plan, device)
    }

    mutating func requestOwnStub(_ own: OwnStub, _ token: PushToken, _ plan: StubPlan, _ device: Int) {
        let body = OwnAlertBody.named(own.alert.body, own.name, badge: own.traits.badge.map { _ in badge(device) })
        let stub = environment.composer.own(
            topic: topic(device), token: token, body: body, collapseID: own.alert.collapseID,
            kind: own.traits.alertKind, isBackground: own.alert.isBackground,
            expiresAt: own.expiresAt.map { onWall($0) },
            identity: own.identity)
        send(stub, plan, own.cid)
    }

    /// What clocks elsewhere will show at `time`: after a step of the wall clock, until it is followed, they and the gateway's
    /// time differ.
    func onWall(_ time: Instant) -> Instant { environment.wallClock() + (time - now) }

    /// The message's own alert is not asked for after all. `isStopped`: its sender stopped it, and it ends.
    mutating func withdrawStub(_ seq: Seq, _ device: Int, isStopped: Bool = false) {
        stubsInFlight -= 1
        note(.stubWithdrawn(seq), device)
        tell(device: device, isStopped ? .takenBack(seq, .taskStopped) : .stubWithdrawn(seq))
    }

    private mutating func send(_ stub: StubRequest, _ plan: StubPlan, _ cid: CID) {
        note(plan.requested, of: cid)
        countStub(cid, answer: nil)
        let mailbox = mailbox
        environment.wake.request(stub) { answer in mailbox.post(.stubAnswered(cid, plan, answer)) }
    }

    mutating func stubAnswered(_ cid: CID, _ plan: StubPlan, _ answer: StubAnswer) {
        let outcome: StubOutcome
        switch answer {
        case .accepted: outcome = .accepted
        case .refused(let reason):
            outcome = .refused
            EventLog.write(.warning, "stub refused", ["cid": cid.description, "reason": reason])
        }
        stubsInFlight -= 1
        note(plan.answered(answer), of: cid)
        countStub(cid, answer: outcome)
        guard let device = devices.index(of: cid) else { return }
        let before = devices[device].machine.stubsSettledUpTo
        if case .own(let message) = plan, message.route.handsOver {
            tell(device: device, .handOverAnswered(message.seq, isAccepted: outcome == .accepted))
        } else {
            tell(device: device, .stubAnswered(plan))
        }
        // The record is cumulative, so it names only what has nothing unsettled before it; a stub beyond that may be asked
        // for again after a crash, under the same apns-id.
        let settled = devices[device].machine.stubsSettledUpTo
        guard settled > before else { return }
        markChanged(device)
        append(.stubSettled(cid: cid, upTo: settled, outcome: outcome), nil)
    }

    private func topic(_ device: Int) -> String {
        let app = devices.app(of: device)
        return environment.configuration.apps[app]?.topic ?? app.text
    }

    /// The same stub has the same `apns-id` after a restart.
    static func stubIdentity(_ cid: CID, _ upTo: Seq) -> Identifier128 {
        var writer = ByteWriter()
        writer.identifier(cid.value)
        writer.uint64(upTo.rawValue)
        return Identifier128(bytes: Cryptography.sha256(writer.bytes)) ?? cid.value
    }
}
