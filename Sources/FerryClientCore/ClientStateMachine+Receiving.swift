internal import FerryCore
internal import FerryWire

/// What frames mean in each phase.
extension ClientStateMachine {
    mutating func receive(
        _ frame: GatewayFrame, isProven: Bool, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        guard hasConnection else { return [] }
        updateAttachment { $0.askedAt = nil }
        if case .close(let close) = frame { return closed(close, now: now, using: &random) }
        switch phase {
        case .idle, .waiting, .asleep, .stopped: return []
        case .connecting: return violated("a frame before the connection was there", now: now, using: &random)
        case .awaitingChallenge(let until):
            guard case .challenge(let challenge) = frame else {
                return violated("another frame than challenge", now: now, using: &random)
            }
            guard challenge.version == WireLimits.version else {
                return violated("a version that this client does not speak", now: now, using: &random)
            }
            return attach(until: until, using: &random)
        case .awaitingRegistered(let until):
            guard case .registered(let registered) = frame else {
                return violated("another frame than registered", now: now, using: &random)
            }
            guard isProven else { return lose(.unproven, now: now, using: &random) }
            record.identity = DeviceIdentity(
                cid: registered.cid, generation: registered.generation, secret: registered.secret)
            isUnsaved = true
            phase = .awaitingWelcome(until: until)
            return save() + [.tell(.registered(registered.cid))]
        case .awaitingWelcome:
            guard case .welcome(let welcome) = frame, let identity = record.identity else {
                return violated("another frame than welcome", now: now, using: &random)
            }
            guard isProven else { return lose(.unproven, now: now, using: &random) }
            return begin(welcome, cid: identity.cid, now: now)
        case .attached(let attachment):
            return receive(frame, attachment: attachment, now: now, using: &random)
        }
    }

    private mutating func violated(
        _ text: String, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        lose(.violated(text), now: now, using: &random)
    }

    /// The gateway has said its nonce: log in, or register when there is no identity.
    private mutating func attach(
        until: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        let extensions = AttachExtensions(deviceToken: deviceToken, clientInfo: configuration.clientInfo)
        if let identity = record.identity {
            phase = .awaitingWelcome(until: until)
            let login = LoginFrame(
                appID: configuration.appID, cid: identity.cid, generation: identity.generation, epoch: record.epoch,
                lastSeq: record.lastSeq, wishes: wishes, extensions: extensions)
            return save() + [.prove(.login(login))]
        }
        let key = record.installationKey ?? .random(using: &random)
        if record.installationKey == nil {
            record.installationKey = key
            isUnsaved = true
        }
        phase = .awaitingRegistered(until: until)
        let register = RegisterFrame(
            appID: configuration.appID, installationKey: key, wishes: wishes, extensions: extensions)
        return save() + [.prove(.register(register))]
    }

    private mutating func begin(_ welcome: WelcomeFrame, cid: CID, now: Instant) -> [ClientAction] {
        let keepAlive = min(.seconds(Int64(clamping: welcome.keepAlive)), ClientLimits.keepAliveMaximum)
        let isCompressionAgreed =
            welcome.compressesPayloads && wishes.capabilities.contains(.compressedPayloads)
        phase = .attached(
            Attachment(begin: now, keepAlive: keepAlive, isCompressionAgreed: isCompressionAgreed, lastSent: now))
        if !welcome.isResumed {
            record.epoch = welcome.epoch
            record.lastSeq = .zero
            window.forget()
            isUnsaved = true
        }
        window.begin(window: welcome.window, windowBytes: welcome.windowBytes)
        return save() + [.tell(.online(cid, keptMessages: welcome.keptMessages))]
    }

    private mutating func receive(
        _ frame: GatewayFrame, attachment: Attachment, now: Instant, using random: inout some RandomNumberGenerator
    ) -> [ClientAction] {
        switch frame {
        case .push(let push):
            guard window.take(push.seq, bytes: push.payload.count, now: now) else { return acknowledge(now: now) }
            return [.hand(push)]
        case .gap(let gap):
            guard window.take(gap.seq, bytes: 0, now: now) else { return acknowledge(now: now) }
            return [.handGap(gap)]
        case .ping: return send(.pong, now: now)
        case .pong, .unknownSkippable: return []
        case .tokenSaved(let saved): return [.tell(.tokenSaved(saved.environment))]
        case .resumed(let resumed):
            guard attachment.resumesAwaited > 0 else {
                return violated("resumed without foreground", now: now, using: &random)
            }
            updateAttachment { $0.resumesAwaited -= 1 }
            if !resumed.isResumed {
                record.lastSeq = .zero
                window.forget()
                isUnsaved = true
            }
            guard let cid = record.identity?.cid, !attachment.isInBackground else { return save() }
            return save() + [.tell(.online(cid, keptMessages: resumed.keptMessages))]
        case .challenge, .registered, .welcome:
            return violated("a frame of the handshake after it", now: now, using: &random)
        case .close: return []
        }
    }

    /// Acknowledges what the app has, if it is time.
    mutating func acknowledge(now: Instant, atOnce: Bool = false) -> [ClientAction] {
        guard case .attached = phase, let due = ackTime, atOnce || now >= due, let seq = window.takeAck() else {
            return []
        }
        return save() + send(.ack(AckFrame(seq: seq)), now: now)
    }

    /// Sends on a connection past its handshake; nothing elsewhere.
    /// - Parameter expectingLife: some byte must come within `ClientLimits.answer`.
    mutating func send(_ frame: DeviceFrame, now: Instant, expectingLife: Bool = false) -> [ClientAction] {
        guard case .attached = phase else { return [] }
        updateAttachment {
            $0.lastSent = now
            if expectingLife, $0.askedAt == nil { $0.askedAt = now }
        }
        return [.send(frame)]
    }
}
