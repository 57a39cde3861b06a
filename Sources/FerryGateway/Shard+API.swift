internal import FerryAPI
internal import FerryAPNS
internal import FerryCore
internal import FerryIO
internal import FerryRouting
internal import FerrySession
internal import FerryStats
internal import FerryStore
internal import FerryWire

/// API calls: from a request to its owner and back.
extension Shard {
    mutating func route(_ request: HTTPRequest, _ origin: APIOrigin) {
        switch APIRouter.match(request) {
        case .failure(let error): fill(origin, .failure(error))
        case .success(let route):
            switch call(route, request) {
            case .failure(let error): fill(origin, .failure(error))
            case .success((let app, let call)): perform(call, app, origin)
            }
        }
    }

    /// The app and the token first, then the body: who may not ask learns nothing about what was asked.
    private mutating func call(
        _ route: APIRoute, _ request: HTTPRequest
    ) -> Result<(App?, APIRequest), APIError> {
        var app: App?
        if let text = route.appID {
            app = AppID(text).flatMap { environment.configuration.apps[$0] }
            guard let app else {
                return .failure(.badParameter("appId is invalid: this gateway has no app \(Excerpt.quoted(text))"))
            }
            if route.requiresToken, !isLive(token: request.fields.first("token"), app) {
                return .failure(.tokenInvalid)
            }
        }
        return parser.parse(route, request).map { (app, $0) }
    }

    private mutating func isLive(token: String?, _ app: App) -> Bool {
        guard let token, let expiresAt = expiry(ofToken: token, app), expiresAt > now else { return false }
        return revokedTokens.isEmpty || revokedTokens[Self.digest(ofToken: token)] == nil
    }

    private static var provenTokenLimit: Int { 1_024 }

    private mutating func expiry(ofToken token: String, _ app: App) -> Instant? {
        if let proven = provenTokens[token], proven.app == app.id { return proven.expiresAt }
        guard let expiresAt = environment.configuration.identity.expiry(ofAPIToken: token, app: app) else { return nil }
        // Only good tokens are kept, and backends have few.
        if provenTokens.count >= Self.provenTokenLimit { provenTokens.removeAll() }
        provenTokens[token] = (app.id, expiresAt)
        return expiresAt
    }

    private static func digest(ofToken token: String) -> [UInt8] {
        // Hex has two spellings; one token has one digest.
        Cryptography.sha256(Array(token.lowercased().utf8))
    }

    private mutating func perform(_ call: APIRequest, _ app: App?, _ origin: APIOrigin) {
        switch call {
        case .health: fill(origin, .success(.healthy))
        case .ready:
            fill(origin, .success(isDraining ? .notReady("the gateway is stopping") : .ready))
        case .authenticate(let request): if let app { authenticate(request, app, origin) }
        case .revoke(let token): if let app { revoke(token, app, origin) }
        case .pushSingle where isDraining, .pushBatch where isDraining, .userStatus where isDraining,
            .timeline where isDraining:
            fill(origin, .failure(.busy(retryAfterSeconds: 1)))
        case .pushSingle(let push): if let app { order(push, app, origin) }
        case .pushBatch(let batch): if let app { order(batch, app, origin) }
        case .userStatus(let cids) where isMemoryShort(for: cids.count * MemoryCost.loading):
            fill(origin, .failure(refusal(.memory)))
        case .userStatus(let cids): if let app { askStatus(cids, app, origin) }
        case .timeline(let query) where isMemoryShort(for: query.weight): fill(origin, .failure(refusal(.memory)))
        case .timeline(let query): if let app { askTimeline(query, app, origin) }
        }
    }

    // MARK: - Tokens

    private static var tokenLife: Duration { .seconds(86_400) }

    private mutating func authenticate(_ request: AuthRequest, _ app: App, _ origin: APIOrigin) {
        let signed = Array("\(app.key)\(request.timestamp)\(app.masterSecret)".utf8)
        let expected = Array(Hexadecimal.encode(Cryptography.sha256(signed)).utf8)
        // The same answer for a wrong key and a wrong secret; never 10001, which makes GeTui's clients authenticate again.
        guard Cryptography.isEqual(Array(request.appKey.utf8), Array(app.key.utf8)),
            Cryptography.isEqual(Array(request.sign.lowercased().utf8), expected)
        else {
            fill(origin, .failure(.signInvalid))
            return
        }
        let skew = environment.configuration.authClockSkew
        let claimed = Instant(milliseconds: request.timestamp)
        // While a step of the wall clock is not followed yet, either time may be the right one.
        let wall = environment.wallClock()
        guard [now, wall].contains(where: { claimed + skew >= $0 && $0 + skew >= claimed }) else {
            fill(
                origin,
                .failure(
                    .invalid("timestamp", "\(request.timestamp) is too far from the gateway's \(wall.milliseconds)")))
            return
        }
        let expiresAt = now + Self.tokenLife
        let token = environment.configuration.identity.apiToken(
            app: app, expiresAt: expiresAt, nonce: random.bytes(8))
        fill(origin, .success(.token(token, expires: onWall(expiresAt))))
    }

    private mutating func revoke(_ token: String, _ app: App, _ origin: APIOrigin) {
        guard let expiresAt = environment.configuration.identity.expiry(ofAPIToken: token, app: app), expiresAt > now
        else {
            fill(origin, .failure(.tokenInvalid))
            return
        }
        let digest = Self.digest(ofToken: token)
        guard revokedTokens[digest] == nil else {
            // On disk already: whoever holds a revoked token must not be able to fill the journal with it.
            fill(origin, .success(.revoked))
            return
        }
        // Every shard and the disk remember it for as long as the token would have lived.
        if isDiskShort { return fill(origin, .failure(refusal(.disk))) }
        if isMemoryShort(for: environment.shards * MemoryCost.revokedToken) {
            return fill(origin, .failure(refusal(.memory)))
        }
        append(
            .apiTokenRevoked(digest: digest, expiresAt: expiresAt),
            .apiTokenRevoked(digest: digest, expiresAt: expiresAt, origin))
    }

    /// The record is on disk. The answer waits until every shard knows: after it, no connection may be served with the token.
    mutating func tokenRevoked(_ digest: [UInt8], _ expiresAt: Instant, _ origin: APIOrigin, segment: UInt32) {
        revokedTokens[digest] = RevokedToken(expiresAt: expiresAt, segment: segment)
        revocations[origin] = environment.shards
        for shard in 0..<environment.shards where shard != index {
            post(.apiTokenRevoked(digest: digest, expiresAt: expiresAt, origin), to: shard)
        }
        revocationTaken(origin)
    }

    /// One shard more knows of it.
    private mutating func revocationTaken(_ origin: APIOrigin) {
        guard let missing = revocations[origin] else { return }
        guard missing <= 1 else {
            revocations[origin] = missing - 1
            return
        }
        revocations[origin] = nil
        fill(origin, .success(.revoked))
    }

    // MARK: - Push

    private mutating func order(_ push: SinglePush, _ app: App, _ origin: APIOrigin) {
        let order = PushOrder(app: app.id, push: push, key: Self.requestKey(app.id, push), origin: origin)
        post(.order(.push(order)), to: environment.owner(of: push.cid))
    }

    /// The digests of (app, request id, cid) and of the content. The key's low bits are the device's partition, so that after
    /// a restart each shard takes the keys of its own devices.
    static func requestKey(_ app: AppID, _ push: SinglePush) -> RequestKey {
        var name = ByteWriter()
        name.string(app.text.utf8)
        name.string(push.requestID.utf8)
        name.identifier(push.cid.value)
        let zero = Identifier128(high: 0, low: 0)
        var key = Identifier128(bytes: Cryptography.sha256(name.bytes)) ?? zero
        let partition = UInt64(Partition(of: push.cid).index)
        key.low = key.low / UInt64(Limits.partitions) * UInt64(Limits.partitions) + partition
        let content = Identifier128(bytes: Cryptography.sha256(push.contentDigestInput)) ?? zero
        return RequestKey(key: key, content: content)
    }

    mutating func take(_ order: APIOrder) {
        switch order {
        case .push(let push): take(push)
        case .pushes(let pushes): for push in pushes { take(push) }
        case .status(let app, let cids, let origin): gatherStatus(app, cids, origin)
        case .timeline(let order): take(order)
        }
    }

    private mutating func take(_ order: PushOrder) {
        switch requests.find(order.key.key) {
        case .answered(let first):
            guard first.content == order.key.content else { return refuseRepeat(order) }
            answer(
                order,
                .success(PushReceipt(taskID: first.taskID, cid: order.push.cid, wasOnline: first.wasOnline)))
        case .inFlight(let content):
            guard content == order.key.content else { return refuseRepeat(order) }
            if let shortage = shortage(for: order) { return answer(order, .failure(refusal(shortage))) }
            waitingBytes += order.weight
            requestWaiters[order.key.key, default: []].append(order)
        case .unknown:
            if let shortage = shortage(for: order) { return answer(order, .failure(refusal(shortage))) }
            requests.begin(order.key.key, content: order.key.content)
            if let device = devices.index(of: order.push.cid) {
                accept(order, device: device)
            } else {
                waitingBytes += order.weight
                wait(for: order.push.cid, .push(order))
            }
        }
    }

    private mutating func refuseRepeat(_ order: PushOrder) {
        answer(order, .failure(.requestIDReused(order.link?.message.hex ?? order.push.requestID)))
    }

    /// The device is known, or known not to exist: the message gets its place in the device's stream and goes to the journal.
    mutating func accept(_ order: PushOrder, device: Int?) {
        guard let device, devices.app(of: device) == order.app else {
            giveUp(order, .targetInvalid(order.push.cid.description))
            return
        }
        guard unsyncedBytes + journal.writer.bytes.count <= environment.configuration.unsyncedBytes, !isDraining else {
            giveUp(order, refusal(.sync))
            return
        }
        if let error = takeRoom(for: order, device: device) { return giveUp(order, error) }
        let partition = Partition(of: order.push.cid).index
        sequences[partition] = sequences[partition].next
        journal.highest[partition] = sequences[partition]
        let message = makeMessage(order, seq: sequences[partition], device: device)
        let offset = journal.writer.bytes.count
        let length = RecordCodec.append(message, to: &journal.writer)
        devices[device].pendingChanges += 1
        journal.effects.append(
            .messageAccepted(
                PendingAccept(
                    message, order, offset: UInt32(offset), length: UInt32(length),
                    absences: devices[device].absences)))
    }

    private mutating func makeMessage(_ order: PushOrder, seq: Seq, device: Int) -> AcceptedMessage {
        let machine = devices[device].machine
        let expiresAt: Instant =
            switch order.push.ttl {
            case .liveOnly: now
            case .milliseconds(let milliseconds): now + .milliseconds(milliseconds)
            }
        let isOnline = machine.presence.isOnline
        let stub: StubNeed
        if isOnline {
            stub = .none
        } else if order.push.ttl == .liveOnly && order.push.alert == nil {
            stub = .notWanted
        } else {
            stub = machine.hasToken ? .due : .noToken
        }
        return AcceptedMessage(
            cid: order.push.cid, seq: seq, messageID: MessageID(order.link?.message ?? randomIdentifier()),
            taskID: TaskID(order.link?.task ?? randomIdentifier(), monthDay: now.monthDay, kind: .single),
            acceptedAt: now,
            expiresAt: expiresAt, stub: stub, wasOnline: isOnline, request: order.key,
            alert: order.push.alert.map {
                OwnAlert(body: $0.payload, collapseID: $0.collapseID, isBackground: $0.pushType == .background)
            }, payload: order.push.payload)
    }

    private mutating func randomIdentifier() -> Identifier128 {
        Identifier128(high: random.next(), low: random.next())
    }

    /// The message is on disk.
    mutating func accepted(
        _ message: AcceptedMessage, _ order: PushOrder, _ location: RecordLocation, absences: UInt16
    ) {
        note(.accepted(Acceptance(message)), of: message.cid)
        let answer = RequestAnswer(
            content: order.key.content, taskID: message.taskID, wasOnline: message.wasOnline,
            acceptedAt: message.acceptedAt)
        requests.settle(
            order.key.key, answer, acceptedAt: message.acceptedAt, segment: location.segment)
        let receipt = PushReceipt(taskID: message.taskID, cid: message.cid, wasOnline: message.wasOnline)
        self.answer(order, .success(receipt))
        for waiter in takeRequestWaiters(order) { self.answer(waiter, .success(receipt)) }
        guard let device = devices.index(of: message.cid) else { return giveBackRoom(message.payload.count) }
        devices[device].pendingChanges -= 1
        devices[device].pending.remove(bytes: message.payload.count)
        segmentDevices.add(device, segment: location.segment)
        atHand = [message]
        atHandCursor = 0
        // The device may have gone and come back while the record was on its way to the disk.
        let wasAway = !message.wasOnline || devices[device].absences != absences
        tell(device: device, .messageSynced(KeptMessage(message, location: location, wasOffline: wasAway)))
        atHand = []
    }

    /// The message is not on disk and will not be.
    mutating func refused(_ message: AcceptedMessage, _ order: PushOrder) {
        giveBackRoom(message.payload.count)
        if let device = devices.index(of: message.cid) {
            devices[device].pendingChanges -= 1
            devices[device].pending.remove(bytes: message.payload.count)
        }
        giveUp(order, .busy(retryAfterSeconds: 5))
    }

    /// Nothing came of the first try, nor of those that waited for it.
    mutating func giveUp(_ order: PushOrder, _ error: APIError) {
        requests.abandon(order.key.key)
        answer(order, .failure(error))
        for waiter in takeRequestWaiters(order) { answer(waiter, .failure(error)) }
    }

    private mutating func takeRequestWaiters(_ order: PushOrder) -> [PushOrder] {
        let waiters = requestWaiters.removeValue(forKey: order.key.key) ?? []
        for waiter in waiters { waitingBytes -= waiter.weight }
        return waiters
    }

    mutating func answer(_ order: PushOrder, _ result: Result<PushReceipt, APIError>) {
        if order.link != nil {
            noteLinkAnswer(order.origin, result)
        } else if let place = order.place {
            noteBatchOutcome(order.origin, place, result)
        } else {
            post(.reply(.push(order.origin, result)), to: order.origin.shard)
        }
    }

    mutating func deliver(_ reply: ShardReply) {
        switch reply {
        case .push(let origin, let result):
            fill(
                origin,
                result.map { .pushed(task: $0.taskID, cid: $0.cid, $0.wasOnline ? .online : .offline) })
        case .batch(let outcomes): collect(outcomes)
        case .status(let origin, let statuses, let isComplete):
            collect(statuses, isComplete: isComplete, for: origin)
        case .timeline(let origin, let result): fill(origin, result.map { .timeline($0) })
        case .revoked(let origin): revocationTaken(origin)
        }
    }
}

extension KeptMessage {
    init(_ message: AcceptedMessage, location: RecordLocation, wasOffline: Bool) {
        let stub: Stub =
            switch message.stub {
            case .none: .none
            case .due: .due
            case .noToken: .noToken
            case .notWanted: .notWanted
            }
        self.init(
            seq: message.seq, expiresAt: message.expiresAt, location: location,
            payloadBytes: UInt32(clamping: message.payload.count), isLiveOnly: message.isLiveOnly,
            hasOwnAlert: message.alert != nil, wasOffline: wasOffline, stub: stub)
    }
}
