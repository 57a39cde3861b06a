internal import FerryAudience
internal import FerryCore

/// `POST /v1/{appId}/push`: a payload of bytes for one device, for several, for those that meet conditions, or for all. It becomes the same requests as a
/// push of GeTui's API.
struct NativePush {
    private enum Audience {
        case devices([CID])
        case tag(AudienceExpression)
        case all
    }

    private let requestID: String?
    private let audience: Audience
    /// nil in a dry run that brings none.
    private let payload: [UInt8]?
    private let ttl: TimeToLive
    private let traits: MessageTraits
    private let alert: APNsAlert?
    /// Devices a second; 0 has no limit.
    private let speed: Int64
    private let isDryRun: Bool

    /// The payload counts once for each device: one call must not become many times its own size.
    private static let deliveredBytes = 4_194_304

    // MARK: - Its two forms

    /// JSON in the body. `key` is the header `Idempotency-Key`.
    init(_ fields: FieldReader, key: String?, limits: APILimits) throws(APIError) {
        isDryRun = try fields.truth("dry_run") ?? false
        requestID = try Self.requestID(named: try fields.nonEmptyString("request_id"), key: key)
        audience = try Self.audience(fields, limits.users)
        payload = try Self.payload(fields)
        let options = try MessageOptions(native: fields)
        (ttl, traits, alert, speed) = (options.ttl, options.traits, options.alert, options.speed)
        try check()
    }

    /// The body is the payload, and the query says the rest.
    init(bytes body: [UInt8], query: String, key: String?) throws(APIError) {
        let fields = try QueryFields(query, names: ["request_id", "cid", "audience", "ttl", "dry_run"])
        isDryRun = try fields.truth("dry_run") ?? false
        requestID = try Self.requestID(named: fields["request_id"], key: key)
        switch (fields["cid"], fields["audience"]) {
        case (let list?, nil):
            audience = .devices(try CIDList.read(list.split(separator: ",", omittingEmptySubsequences: false)))
        case (nil, "all"): audience = .all
        case (nil, let other?): throw .invalid("audience", "\(Excerpt.quoted(other)), must be \"all\", or cid given")
        case (nil, nil): throw .null("cid")
        case (_?, _?): throw .badParameter("choose one of cid and audience")
        }
        payload = body.isEmpty ? nil : body
        ttl = try MessageOptions.timeToLive(try fields.integer("ttl"), "ttl")
        (traits, alert, speed) = (.none, nil, 0)
        try check()
    }

    private static func requestID(named: String?, key: String?) throws(APIError) -> String? {
        let key = key.flatMap { $0.isEmpty ? nil : $0 }
        if let named, let key, named != key {
            throw .badParameter("request_id and idempotency-key differ: give one of them")
        }
        guard let requestID = named ?? key else { return nil }
        return try SinglePush.checkRequestID(requestID)
    }

    private static func audience(_ fields: FieldReader, _ limits: UserLimits) throws(APIError) -> Audience {
        guard let value = try fields.value("audience") else { throw .null("audience") }
        if value.kind == .string {
            guard value.string == "all" else {
                throw .invalid("audience", "\(Excerpt.quoted(value.string ?? "")), must be \"all\" or an object")
            }
            return .all
        }
        guard let object = try fields.object("audience", at: "audience") else { throw .null("audience") }
        switch (try object.value("cid"), try object.value("tag")) {
        case (nil, nil): throw .null("audience.cid")
        case (_?, _?): throw .badParameter("choose one of audience.cid and audience.tag")
        case (nil, _?): return .tag(try AudienceExpression(object, "tag", limits))
        case (_?, nil):
            return .devices(try CIDList.read(try object.strings("cid", atMost: APILimits.cidsPerCall) ?? []))
        }
    }

    private static func payload(_ fields: FieldReader) throws(APIError) -> [UInt8]? {
        let text = try fields.value("payload")
        let coded = try fields.value("payload_base64")
        switch (text, coded) {
        case (nil, nil): return nil
        case (_?, _?): throw .badParameter("choose one of payload and payload_base64")
        case (let text?, nil):
            guard let bytes = text.stringBytes else { throw .type("payload", mustBe: "a string") }
            return bytes
        case (nil, let coded?):
            guard let decoded = coded.withStringBytes({ Base64.decode($0) }) else {
                throw .type("payload_base64", mustBe: "a string")
            }
            guard let decoded else { throw .invalid("payload_base64", "it is not Base64 with its padding") }
            return decoded
        }
    }

    // MARK: - What holds for both

    private func check() throws(APIError) {
        if let payload {
            guard !payload.isEmpty else { throw .empty("payload") }
            guard payload.count <= Limits.payloadBytes else {
                throw .overLimit("payload", "\(payload.count) bytes, at most \(Limits.payloadBytes)")
            }
        }
        if case .all = audience, !traits.isForEachDevice { try BroadcastPush.check(alert, ttl) }
        if case .devices = audience, speed != 0 {
            throw .invalid("settings.speed", "\(speed), paced are pushes to audience.tag and to all")
        }
        guard !isDryRun else { return }
        guard requestID != nil else { throw .empty("request_id") }
        guard let payload else { throw .empty("payload") }
        if case .devices(let cids) = audience, cids.count * payload.count > Self.deliveredBytes {
            throw .overLimit(
                "payload",
                "\(payload.count) bytes for \(cids.count) devices, at most \(Self.deliveredBytes) in one call")
        }
    }

    /// What it comes to.
    var request: APIRequest {
        switch audience {
        case .devices(let cids) where isDryRun: .native(.dryRun(.devices(cids)))
        case .tag(let audience) where isDryRun: .native(.dryRun(.audience(audience)))
        case .all where isDryRun: .native(.dryRun(.audience(AudienceExpression())))
        case .devices(let cids):
            .pushBatch(
                PushBatch(
                    pushes: cids.map {
                        SinglePush(
                            requestID: requestID ?? "", cid: $0, payload: payload ?? [], ttl: ttl, traits: traits,
                            alert: alert)
                    }, isAsync: false, isNative: true))
        case .tag(let audience):
            .list(
                .audience(
                    ListMessage(
                        requestID: requestID ?? "", payload: payload ?? [], ttl: ttl, traits: traits, alert: alert),
                    ListAudience(audience, speed: speed)))
        case .all where traits.isForEachDevice:
            .list(
                .audience(
                    ListMessage(
                        requestID: requestID ?? "", payload: payload ?? [], ttl: ttl, traits: traits, alert: alert),
                    ListAudience(AudienceExpression(), speed: speed)))
        case .all:
            .pushAll(
                BroadcastPush(
                    requestID: requestID ?? "", payload: payload ?? [], ttl: ttl, sender: traits, alert: alert,
                    speed: speed))
        }
    }
}

/// Devices that a call names.
enum CIDList {
    /// 1...1000 of them, each once, in their order.
    static func read(_ texts: some Sequence<some StringProtocol>) throws(APIError) -> [CID] {
        var devices: [CID] = []
        var seen: Set<CID> = []
        var count = 0
        for text in texts {
            count += 1
            guard count <= APILimits.cidsPerCall else {
                throw .overLimit("cid", "at most \(APILimits.cidsPerCall) in one call")
            }
            guard !text.isEmpty else { throw .empty("cid") }
            guard let cid = CID(hex: String(text)) else { throw .targetInvalid(String(text)) }
            if seen.insert(cid).inserted { devices.append(cid) }
        }
        guard !devices.isEmpty else { throw .empty("cid") }
        return devices
    }
}

extension APIRequestParser {
    func read(_ call: NativeCall, _ request: HTTPRequest) -> Result<APIRequest, APIError> {
        switch call {
        case .push(let query):
            let key = request.fields.first("idempotency-key")
            guard request.fields.contentType == .bytes else {
                let limits = limits
                return read(request.body) { fields throws(APIError) in
                    try NativePush(fields, key: key, limits: limits).request
                }
            }
            do throws(APIError) {
                return .success(try NativePush(bytes: request.body, query: query, key: key).request)
            } catch {
                return .failure(error)
            }
        case .message(let id, let query): return TimelineQuery.read(message: id, query: query).map { .timeline($0) }
        case .device(let cid): return TimelineQuery.present(cid: cid).map { .timeline($0) }
        }
    }
}
