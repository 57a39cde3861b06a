internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStore
internal import FerryWire

/// From a connection's first byte to its welcome, the move to the owner's shard included.
extension Shard {
    mutating func receiveHandshakeFrame(_ slot: Int, type: UInt8, body: UnsafeRawBufferPointer, isLast: Bool) {
        let frame: DeviceFrame
        do throws(WireError) {
            frame = try DeviceFrame.decode(type: type, body: body)
        } catch {
            tell(handshake: slot, .malformedReceived(error))
            return
        }
        switch frame {
        case .login, .register:
            // The connection may move now, and bytes that were read already could not.
            guard isLast else {
                tell(handshake: slot, .bytesReceivedEarly)
                return
            }
        default: break
        }
        guard let handshake = handshakes[slot] else { return }
        switch handshake.state {
        case .checking, .admitting: tell(handshake: slot, .bytesReceivedEarly)
        case .awaitingHello, .awaitingProof, .admitted, .closed:
            tell(handshake: slot, .frameReceived(frame, body: Array(body)))
        }
    }

    mutating func tell(handshake slot: Int, _ event: HandshakeEvent) {
        var actions: [HandshakeAction] = []
        handshakes[slot]?.handle(event, now: now, actions: &actions)
        for action in actions { perform(action, slot) }
    }

    private mutating func perform(_ action: HandshakeAction, _ slot: Int) {
        switch action {
        case .send(let frame): write(slot, frame)
        case .checkLogin(let login, let transcript):
            let verdict: ProofVerdict
            if environment.configuration.apps[login.appID] == nil {
                verdict = .unknownApp
            } else {
                let secret = environment.configuration.identity.deviceSecret(
                    app: login.appID, cid: login.cid, generation: login.generation)
                verdict = check(login.proof, key: secret.bytes, transcript)
            }
            tell(handshake: slot, .proofChecked(verdict))
        case .checkRegistration(let register, let transcript):
            let app = environment.configuration.apps[register.appID]
            let verdict = app.map { check(register.proof, key: Array($0.secret.utf8), transcript) } ?? .unknownApp
            tell(handshake: slot, .proofChecked(verdict))
        case .admit(let admission): admit(slot, admission)
        case .close(let code):
            EventLog.write(
                .info, "handshake refused",
                ["peer": connections[slot].peer.description, "code": code.description])
            close(slot, code)
        }
    }

    private func check(_ proof: Bytes32, key: [UInt8], _ transcript: [UInt8]) -> ProofVerdict {
        Cryptography.isEqual(Cryptography.hmacSHA256(key: key, transcript), proof.bytes) ? .right : .wrong
    }

    private mutating func admit(_ slot: Int, _ admission: Admission) {
        let cid: CID
        switch admission.request {
        case .login(let login): cid = login.cid
        case .register(let register):
            cid = environment.configuration.identity.cid(
                app: register.appID, installationKey: register.installationKey)
        }
        let owner = environment.owner(of: cid)
        guard owner != index else {
            findDevice(for: cid, connection: connections.token(of: slot))
            return
        }
        guard let handshake = handshakes[slot] else { return }
        let handOver = HandOver(
            transport: connections[slot].transport, peer: connections[slot].peer, handshake: handshake,
            admission: admission, cid: cid)
        flushBeforeHandOver(slot)
        release(slot)
        post(.handOver(handOver), to: owner)
    }

    /// The challenge has long been answered, so nothing can be waiting; a peer that made it otherwise loses its connection.
    private mutating func flushBeforeHandOver(_ slot: Int) {
        guard !connections[slot].output.isEmpty else { return }
        _ = send(slot)
    }

    mutating func receive(_ handOver: HandOver) {
        var connection = Connection()
        connection.kind = .handshake
        connection.transport = handOver.transport
        connection.peer = handOver.peer
        guard !isDraining, let slot = add(connection) else {
            close(handOver.transport)
            environment.census.leave()
            return
        }
        handshakes[slot] = handOver.handshake
        arm(connection: slot, at: handOver.handshake.deadline)
        findDevice(for: handOver.cid, connection: connections.token(of: slot))
    }

    /// The owner's part begins: the device's record, from memory or from the store.
    private mutating func findDevice(for cid: CID, connection: UInt64) {
        if let device = devices.index(of: cid) {
            answerAdmission(connection, cid: cid, device: device)
        } else {
            wait(for: cid, .admission(connection: connection))
        }
    }

    /// Called once the record is known, or known not to exist (`device` nil).
    mutating func answerAdmission(_ token: UInt64, cid: CID, device: Int?) {
        guard let slot = connections.index(of: token), case .admitting(let admission)? = handshakes[slot]?.state else {
            return
        }
        // It is not known yet whether it will be there.
        if let device, devices[device].isLeaving { return tell(handshake: slot, .ownerAnswered(.storeUnavailable)) }
        switch admission.request {
        case .login(let login):
            guard let device, devices.app(of: device) == login.appID else {
                tell(handshake: slot, .ownerAnswered(.unknownDevice))
                return
            }
            guard UInt64(devices[device].generation) == login.generation else {
                tell(handshake: slot, .ownerAnswered(.generationRetired))
                return
            }
            welcome(slot, admission, device: device)
        case .register(let register):
            guard let device else {
                // The reserve is for records that make room.
                if isDiskShort { return tell(handshake: slot, .ownerAnswered(.storeUnavailable)) }
                registerDevice(cid: cid, app: register.appID, waiter: .admission(connection: token))
                return
            }
            welcome(slot, admission, device: device)
        }
    }

    private mutating func welcome(_ slot: Int, _ admission: Admission, device: Int) {
        tell(handshake: slot, .ownerAnswered(.admitted))
        handshakes[slot] = nil
        takeOverConnection(of: device, by: slot)
        let record = devices.record(of: device)
        let identity = environment.configuration.identity
        let policy = environment.configuration.session
        let secret = identity.deviceSecret(app: record.app, cid: record.cid, generation: UInt64(record.generation))
        let wishes: AttachWishes
        let extensions: AttachExtensions
        var lastSeq: Seq?
        switch admission.request {
        case .login(let login):
            (wishes, extensions) = (login.wishes, login.extensions)
            lastSeq = honoured(login.lastSeq, epoch: login.epoch, cid: record.cid)
        case .register(let register):
            (wishes, extensions) = (register.wishes, register.extensions)
            writeRegistered(slot, admission, record: record, secret: secret)
        }
        catchUp(device)
        let keepAlive = policy.keepAlive(wished: wishes.keepAlive)
        let window = policy.window(wished: wishes.window)
        let compresses =
            environment.configuration.compressionBytes != nil && wishes.capabilities.contains(.compressedPayloads)
        let kept = keptSummary(device, after: lastSeq)
        let session = makeSessionID()
        var welcome = WelcomeFrame(
            sessionID: session, epoch: environment.epoch, isResumed: lastSeq != nil,
            compressesPayloads: compresses, serverTime: UInt64(max(0, now.milliseconds)),
            keepAlive: UInt64(keepAlive.components.seconds),
            window: UInt64(window), windowBytes: UInt64(policy.windowBytes), keptMessages: UInt64(kept.count),
            keptBytes: UInt64(kept.bytes))
        let transcript = Transcript.welcome(
            hello: admission.hello, challenge: admission.challenge, request: admission.requestBody,
            signedPart: welcome.signedPart())
        welcome.proof = Bytes32(Cryptography.hmacSHA256(key: secret.bytes, transcript)) ?? .zero
        write(slot, .welcome(welcome))
        connections[slot].kind = .device
        connections[slot].takesCompressed = compresses
        connections[slot].takesTyped = wishes.capabilities.contains(.typedContents)
        connections[slot].session = SessionStateMachine(keepAlive: keepAlive, now: now)
        noteSeen(device)
        if let change = extensions.deviceToken { saveToken(change, device: device, connection: slot) }
        attach(slot, device: device, session: session, lastSeq: lastSeq, window: window)
    }

    private mutating func writeRegistered(_ slot: Int, _ admission: Admission, record: DeviceRecord, secret: Bytes32) {
        guard let app = environment.configuration.apps[record.app] else { return }
        var registered = RegisteredFrame(cid: record.cid, generation: UInt64(record.generation), secret: secret)
        let transcript = Transcript.registered(
            hello: admission.hello, challenge: admission.challenge, register: admission.requestBody,
            signedPart: registered.signedPart())
        registered.proof = Bytes32(Cryptography.hmacSHA256(key: Array(app.secret.utf8), transcript)) ?? .zero
        write(slot, .registered(registered))
    }

    /// The client's number where it counts: same epoch, and not above what was ever given out.
    func honoured(_ lastSeq: Seq, epoch: Epoch, cid: CID) -> Seq? {
        epoch == environment.epoch && lastSeq <= sequences[Partition(of: cid).index] ? lastSeq : nil
    }

    func keptSummary(_ device: Int, after lastSeq: Seq?) -> (count: Int, bytes: Int) {
        let log = devices[device].machine.log
        guard let lastSeq else { return (log.count, log.bytes + log.sharedBytes) }
        let first = log.firstIndex(after: lastSeq)
        var bytes = log.bytes + log.sharedBytes
        for index in 0..<first { bytes -= Int(log[index].payloadBytes) }
        return (log.count - first, bytes)
    }

    mutating func makeSessionID() -> SessionID {
        lastSession &+= 1
        return SessionID(rawValue: lastSession << 8 | UInt64(index & 255))
    }
}
