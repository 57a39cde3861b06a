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
    mutating func route(_ request: HTTPRequest, _ origin: APIOrigin, _ backend: BackendConnection?) {
        if let known = backend?.knownCall, known.head == backend?.decoder.headNumber, known.expiresAt > now,
            known.revocations == revocationCount
        {
            return perform(parser.parse(known.route, request), known.app, origin)
        }
        switch APIRouter.match(request) {
        case .failure(let error): fill(origin, .failure(error))
        case .success(let route):
            switch app(of: route, request, backend) {
            case .failure(let error): fill(origin, .failure(error))
            case .success(let app): perform(parser.parse(route, request), app, origin)
            }
        }
    }

    private mutating func perform(_ call: Result<APIRequest, APIError>, _ app: App?, _ origin: APIOrigin) {
        switch call {
        case .failure(let error): fill(origin, .failure(error))
        case .success(let call): perform(call, app, origin)
        }
    }

    /// The app and the token first, then the body: who may not ask learns nothing about what was asked.
    private mutating func app(
        of route: APIRoute, _ request: HTTPRequest, _ backend: BackendConnection?
    ) -> Result<App?, APIError> {
        var app: App?
        if let text = route.appID {
            app = AppID(text).flatMap { environment.configuration.apps[$0] }
            guard let known = app else {
                return .failure(.appInvalid(text))
            }
            if route.requiresToken {
                guard let expiresAt = expiry(ofLiveToken: request.fields.first("token"), known) else {
                    return .failure(.tokenInvalid)
                }
                let fault = request.contentFault(takesBytes: route.takesBytes)
                // Without a body there is nothing in a wrong form; but the next request with the same head may have one.
                if let fault, !request.body.isEmpty { return .failure(fault) }
                if fault == nil, let head = backend?.decoder.headNumber {
                    backend?.knownCall = BackendConnection.KnownCall(
                        head: head, route: route, app: known, expiresAt: expiresAt, revocations: revocationCount)
                }
            } else if !request.body.isEmpty, let fault = request.contentFault(takesBytes: route.takesBytes) {
                return .failure(fault)
            }
        }
        return .success(app)
    }

    /// nil for a token that is not good, or not any more.
    private mutating func expiry(ofLiveToken token: String?, _ app: App) -> Instant? {
        guard let token, let expiresAt = expiry(ofToken: token, app), expiresAt > now,
            revokedTokens.isEmpty || revokedTokens[Self.digest(ofToken: token)] == nil
        else { return nil }
        return expiresAt
    }

    private static var provenTokenLimit: Int { 1_024 }

    mutating func expiry(ofToken token: String, _ app: App) -> Instant? {
        if let proven = provenTokens[token], proven.app == app.id { return proven.expiresAt }
        guard let expiresAt = environment.configuration.identity.expiry(ofAPIToken: token, app: app) else { return nil }
        // Only good tokens are kept, and backends have few.
        if provenTokens.count >= Self.provenTokenLimit { provenTokens.removeAll() }
        provenTokens[token] = (app.id, expiresAt)
        return expiresAt
    }

    static func digest(ofToken token: String) -> [UInt8] {
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
        case .pushSingle where isDraining, .pushBatch where isDraining, .pushAll where isDraining,
            .list where isDraining, .report where isDraining,
            .userStatus where isDraining,
            .timeline where isDraining, .presence where isDraining, .user where isDraining, .native where isDraining,
            .task where isDraining:
            fill(origin, .failure(.busy(retryAfterSeconds: 1)))
        case .pushSingle(let push): if let app { order(push, app, origin) }
        case .pushBatch(let batch): if let app { order(batch, app, origin) }
        case .pushAll(let push): if let app { order(push, app, origin) }
        case .schedule where isDraining: fill(origin, .failure(.busy(retryAfterSeconds: 1)))
        case .schedule(let push): if let app { order(push, app, origin) }
        case .list(let call): if let app { order(call, app, origin) }
        case .userStatus(let cids) where isMemoryShort(for: cids.count * MemoryCost.loading):
            fill(origin, .failure(refusal(.memory)))
        case .userStatus(let cids): if let app { askStatus(cids, app, origin) }
        case .timeline(let query) where isMemoryShort(for: query.weight): fill(origin, .failure(refusal(.memory)))
        case .timeline(let query): if let app { askTimeline(query, app, origin) }
        case .report(let request): if let app { ask(request, app, origin) }
        case .task(let call): if let app { order(call, app, origin) }
        case .presence(let query, let token): if let app { openStream(query, app, token, origin) }
        case .user(let call) where !call.makesRoom && isMemoryShort(for: MemoryCost.userCall):
            fill(origin, .failure(refusal(.memory)))
        case .user(let call): if let app { ask(call, app, origin) }
        case .native(let request): if let app { perform(request, app, origin) }
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
        revocationCount &+= 1
        endStreams(ofToken: digest)
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

    // MARK: - Orders and replies

    mutating func take(_ order: APIOrder) {
        switch order {
        case .pushes(let pushes): take(pushes)
        case .broadcast(let order): take(order)
        case .list(let order): take(order)
        case .status(let app, let cids, let origin): gatherStatus(app, cids, origin)
        case .timeline(let order): take(order)
        case .task(let order): take(order)
        case .user(let order): take(order)
        case .census(let app, let order, let origin): take(order, of: app, origin)
        }
    }

    mutating func deliver(_ reply: ShardReply) {
        switch reply {
        case .accepted(let receipts):
            for (origin, receipt) in receipts { fill(origin, receipt) }
        case .refused(let origin, let error): fill(origin, .failure(error))
        case .settled(let origin, let result): fill(origin, result)
        case .batch(let outcomes): collect(outcomes)
        case .user(let origin, let part): collect(part, for: origin)
        case .broadcast(let origin, let result): fill(origin, result.map { .pushedAll(task: $0) })
        case .status(let origin, let statuses, let isComplete):
            collect(statuses, isComplete: isComplete, for: origin)
        case .census(let origin, let census): collect(census, for: origin)
        case .timeline(let origin, let result): fill(origin, result.map { .timeline($0) })
        case .revoked(let origin): revocationTaken(origin)
        }
    }
}
