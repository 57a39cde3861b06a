internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// Backends' links: pushes in, cumulative answers out, at most one a turn. A push becomes the same order as one that came
/// over HTTP; what an owner has for a link in one turn travels as one mail.
extension Shard {
    mutating func beginLink(_ slot: Int) {
        let nonce = Bytes32(random.bytes(32)) ?? .zero
        links[slot] = LinkConnection(
            LinkStateMachine(nonce: nonce, policy: environment.configuration.link, now: now))
        if isDraining {
            tell(link: slot, .stopRequested)
        } else if let deadline = links[slot]?.machine.deadline {
            arm(connection: slot, at: deadline)
        }
    }

    mutating func receiveLinkFrame(_ slot: Int, type: UInt8, body: UnsafeRawBufferPointer) {
        guard let link = links[slot] else { return }
        do throws(WireError) {
            if type == FrameType.linkPush.rawValue, link.isStreaming {
                take(try LinkPushFields(body: body), body, link, slot)
            } else {
                tell(link: slot, .frameReceived(try LinkBackendFrame.decode(type: type, body: body), body: Array(body)))
            }
        } catch {
            tell(link: slot, .malformedReceived(error))
        }
    }

    private mutating func take(
        _ push: LinkPushFields, _ body: UnsafeRawBufferPointer, _ link: LinkConnection, _ slot: Int
    ) {
        // Almost always there is nothing to do, and an empty array is no memory.
        var actions: [LinkAction] = []
        let number = link.machine.take(bytes: body.count, actions: &actions)
        for action in actions { perform(action, slot) }
        guard let number, let app = link.app else { return }
        let checked = parser.linkPush(
            payload: push.payload, ttl: push.ttl, isLiveOnly: push.flags.contains(.liveOnly), alert: push.alert,
            collapseID: push.collapseID, isBackground: push.flags.contains(.background))
        switch checked {
        case .success(let terms):
            let names = LinkNames(id: push.id, salt: link.salt)
            let content = Cryptography.sha256Half(LinkPushFrame.content(of: body))
            let order = PushOrder(
                app: app, cid: push.cid,
                key: RequestKey(key: names.key(of: push.cid, salt: link.keySalt), content: content),
                origin: APIOrigin(shard: index, connection: connections.token(of: slot), slot: number),
                ttl: terms.ttl, names: .link(names))
            let owner = environment.owner(of: push.cid)
            if terms.alert == nil {
                orders[owner].append(order, payload: push.payload)
            } else {
                orders[owner].append(
                    order, requestID: "", traits: .none, payload: push.payload, alert: terms.alert)
            }
        case .failure(let error): settle(link, connections.token(of: slot), number, error.outcome)
        }
    }

    mutating func tell(link slot: Int, _ event: LinkEvent) {
        guard let link = links[slot] else { return }
        var actions = linkActions.popLast() ?? []
        link.machine.handle(event, now: now, actions: &actions)
        link.isStreaming = link.machine.isStreaming
        perform(&actions, slot)
        if !connections[slot].isClosing { arm(connection: slot, at: link.machine.deadline) }
    }

    /// Empties `actions` and keeps its memory.
    private mutating func perform(_ actions: inout [LinkAction], _ slot: Int) {
        for action in actions { perform(action, slot) }
        actions.removeAll(keepingCapacity: true)
        linkActions.append(actions)
        actions = []
    }

    private mutating func perform(_ action: LinkAction, _ slot: Int) {
        switch action {
        case .send(let frame): write(slot, frame.encoded())
        case .check(let attempt, let transcript):
            let app = environment.configuration.apps[attempt.login.appID]
            // An app that does not exist costs the same and is told the same as a wrong secret.
            let proof = Cryptography.hmacSHA256(key: Array((app?.masterSecret ?? "").utf8), transcript)
            let isRight = Cryptography.isEqual(proof, attempt.login.proof.bytes) && app != nil
            tell(link: slot, .proofChecked(isRight: isRight))
        case .welcome(let attempt): welcome(slot, attempt)
        // Pushes are taken before they become events; see `receiveLinkFrame`.
        case .take: break
        case .pauseReading: pauseReading(slot)
        case .resumeReading: resumeReading(slot)
        case .close(let code):
            let wasOpen = links[slot]?.app != nil
            EventLog.write(
                .info, wasOpen ? "link closed" : "link refused",
                ["peer": connections[slot].peer.description, "code": code.description])
            let pause: UInt64 = code == .stopping ? UInt64.random(in: 500...3_000, using: &random) : 0
            close(slot, code, retryAfter: pause)
        }
    }

    private mutating func welcome(_ slot: Int, _ attempt: LinkAttempt) {
        guard let app = environment.configuration.apps[attempt.login.appID], let link = links[slot] else { return }
        link.app = app.number
        link.salt = environment.configuration.identity.linkSalt(app: app.id)
        link.keySalt = environment.configuration.identity.linkKeySalt(app: app.id)
        let policy = environment.configuration.link
        var welcome = LinkWelcomeFrame(
            serverTime: UInt64(max(0, now.milliseconds)),
            keepAlive: UInt64(max(1, policy.keepAlive.components.seconds)), window: UInt64(policy.window),
            windowBytes: UInt64(policy.windowBytes))
        let transcript = Transcript.linkWelcome(
            hello: attempt.hello, challenge: attempt.challenge, login: attempt.loginBody,
            signedPart: welcome.signedPart())
        welcome.proof = Bytes32(Cryptography.hmacSHA256(key: Array(app.masterSecret.utf8), transcript)) ?? .zero
        write(slot, LinkGatewayFrame.welcome(welcome).encoded())
        EventLog.write(
            .info, "link opened", ["peer": connections[slot].peer.description, "app": app.id.text])
    }

    // MARK: - Outcomes

    private static var linksLookedAt: Int { 8 }

    /// Of an order of this shard's devices: it travels with all others of this turn.
    mutating func noteLinkAccepted(_ origin: APIOrigin) {
        linkAnswers[placeOfAnswers(origin)].accepted.append(origin.slot)
    }

    mutating func noteLinkRefused(_ origin: APIOrigin, _ error: APIError) {
        linkAnswers[placeOfAnswers(origin)].refused.append((origin.slot, error))
    }

    /// What comes from one link comes together. Where it does not, a link may get two mails of one turn.
    private mutating func placeOfAnswers(_ origin: APIOrigin) -> Int {
        var place = linkAnswers.count - 1
        let last = max(0, linkAnswers.count - Self.linksLookedAt)
        while place >= last {
            if linkAnswers[place].connection == origin.connection, linkAnswers[place].shard == origin.shard {
                return place
            }
            place -= 1
        }
        linkAnswers.append(LinkAnswers(shard: origin.shard, connection: origin.connection))
        return linkAnswers.count - 1
    }

    /// At the end of the turn: what was gathered goes to its links, and links of this shard answer.
    mutating func answerLinks() {
        if !linkAnswers.isEmpty {
            let gathered = linkAnswers
            linkAnswers.removeAll(keepingCapacity: true)
            for answers in gathered { post(.linkAnswers(answers), to: answers.shard) }
        }
        guard !answeringLinks.isEmpty else { return }
        let tokens = answeringLinks
        answeringLinks.removeAll(keepingCapacity: true)
        for token in tokens {
            guard let slot = connections.index(of: token), let link = links[slot] else { continue }
            link.isAnswering = false
            tell(link: slot, .turnEnded)
            holdIfBehind(slot)
        }
    }

    mutating func take(_ answers: LinkAnswers) {
        guard let slot = connections.index(of: answers.connection), let link = links[slot] else { return }
        link.machine.accept(answers.accepted)
        for (number, error) in answers.refused { link.machine.settle(number, error.outcome) }
        noteAnswering(link, answers.connection)
    }

    private mutating func settle(
        _ link: LinkConnection, _ token: UInt64, _ number: UInt64, _ outcome: AnswerWindow.Outcome
    ) {
        link.machine.settle(number, outcome)
        noteAnswering(link, token)
    }

    private mutating func noteAnswering(_ link: LinkConnection, _ token: UInt64) {
        guard !link.isAnswering else { return }
        link.isAnswering = true
        answeringLinks.append(token)
    }

    // MARK: - Back-pressure

    mutating func linkOutputMoved(_ slot: Int) { holdIfBehind(slot) }

    /// A backend that sends without reading its answers is not read on.
    private mutating func holdIfBehind(_ slot: Int) {
        guard !connections[slot].isClosing else { return }
        let isBehind = connections[slot].output.count > environment.configuration.session.highWaterMark
        if isBehind != connections[slot].isReadPaused { tell(link: slot, .outputHeld(isBehind)) }
    }

    /// Pushes that links of this shard still wait for.
    var openLinkPushes: Int { links.all.reduce(0) { $0 + $1.machine.openPushes } }
}

extension APIError {
    /// As a link tells it.
    fileprivate var outcome: AnswerWindow.Outcome {
        .refused(code: UInt64(max(0, code)), text: message)
    }
}
