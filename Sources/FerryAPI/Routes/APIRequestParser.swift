internal import FerryCore

/// Reads the parameters of calls. It keeps a JSON parser, so there is one a thread.
package final class APIRequestParser {
    let limits: APILimits
    private let json: JSONParser

    package init(limits: APILimits) {
        self.limits = limits
        json = JSONParser(maximumBytes: limits.bodyBytes)
    }

    /// The call that `route` and the request's body make. Bodies of calls that need none are not looked at: PHP sends
    /// `null`, or what is left of the call before.
    package func parse(_ route: APIRoute, _ request: HTTPRequest) -> Result<APIRequest, APIError> {
        let limits = limits
        return switch route.call {
        case .authenticate where request.body.count > AuthRequest.bodyBytes:
            // Who has proven nothing yet is not read at length.
            .failure(.overLimit("body", "\(request.body.count) bytes, at most \(AuthRequest.bodyBytes)"))
        case .authenticate:
            read(request.body) { fields throws(APIError) in .authenticate(try AuthRequest(fields)) }
        case .pushSingle:
            read(request.body) { fields throws(APIError) in .pushSingle(try SinglePush(fields, limits: limits)) }
        case .pushBatch:
            read(request.body) { fields throws(APIError) in .pushBatch(try PushBatch(fields, limits: limits)) }
        case .pushAll:
            read(request.body) { fields throws(APIError) in
                let push = try APIRequest.pushAll(fields, limits: limits)
                return try ScheduledPush(push, body: request.body).map { .schedule($0) } ?? push
            }
        case .task(let verb, let task): TaskCall.read(verb, task).map { .task($0) }
        case .list(let call):
            read(request.body) { fields throws(APIError) in
                let list = try call.read(fields, limits: limits)
                return try ScheduledPush(list, call, body: request.body).map { .schedule($0) } ?? .list(list)
            }
        case .revoke(let token): .success(.revoke(token: token))
        case .userStatus(let cids): Self.devices(cids).map { .userStatus($0) }
        case .timeline(let cid, let query): TimelineQuery.read(cid: cid, query: query).map { .timeline($0) }
        case .report(let call): call.read().map { .report($0) }
        case .presence(let query):
            PresenceQuery.read(query: query).map { .presence($0, token: request.fields.first("token") ?? "") }
        case .user(let route): user(route, request.body)
        case .native(let call): read(call, request)
        case .health: .success(.health)
        case .ready: .success(.ready)
        }
    }

    /// What a stored call asks for, which was read before: it fails where the limits are others now.
    package func stored(_ kind: ScheduledKind, _ body: [UInt8]) -> Result<ScheduledContent, APIError> {
        let limits = limits
        let request = read(body) { fields throws(APIError) in
            switch kind {
            case .all: try .pushAll(fields, limits: limits)
            case .tag: .list(try ListRoute.tag.read(fields, limits: limits))
            case .fastCustomTag: .list(try ListRoute.fastCustomTag.read(fields, limits: limits))
            }
        }
        return request.flatMap { request in
            switch request {
            case .pushAll(let push): .success(.all(push))
            case .list(.audience(let message, let audience)): .success(.audience(message, audience))
            default: .failure(.type("body", mustBe: "a push to many"))
            }
        }
    }

    private func user(_ route: UserRoute, _ body: [UInt8]) -> Result<APIRequest, APIError> {
        do throws(APIError) {
            switch try UserReading(route, limits) {
            case .ready(let call): return .success(.user(call))
            case .body(let build): return read(body) { fields throws(APIError) in .user(try build(fields)) }
            }
        } catch {
            return .failure(error)
        }
    }

    /// A push that came over a link, checked like one that came over HTTP, but for the characters of its payload, which is
    /// of bytes. `ttl` is in milliseconds, 0 for the default, and not looked at for a live-only one. `alert` and
    /// `collapseID` are empty where there is none. Allocates nothing where there is no alert.
    package func linkPush(
        payload: UnsafeRawBufferPointer, ttl: UInt64, isLiveOnly: Bool, alert: UnsafeRawBufferPointer,
        collapseID: UnsafeRawBufferPointer, isBackground: Bool
    ) -> Result<LinkPushTerms, APIError> {
        guard !payload.isEmpty else { return .failure(.empty("payload")) }
        let time: TimeToLive
        if isLiveOnly {
            time = .liveOnly
        } else {
            let milliseconds = ttl == 0 ? UInt64(APILimits.defaultTimeToLive) : ttl
            guard milliseconds <= UInt64(APILimits.maximumTimeToLive) else {
                return .failure(
                    .invalid("ttl", "\(milliseconds), must be 1 to \(APILimits.maximumTimeToLive) milliseconds"))
            }
            time = .milliseconds(Int64(milliseconds))
        }
        var checked: APNsAlert?
        if !alert.isEmpty || !collapseID.isEmpty {
            do throws(APIError) {
                checked = try APNsAlert.read(
                    Array(alert), collapseID: String(decoding: collapseID, as: UTF8.self), isBackground: isBackground,
                    json)
            } catch {
                return .failure(error)
            }
        }
        return .success(LinkPushTerms(ttl: time, alert: checked))
    }

    /// Reads a body of JSON, which is to be an object.
    func read(
        _ body: [UInt8], _ build: (FieldReader) throws(APIError) -> APIRequest
    ) -> Result<APIRequest, APIError> {
        let parsed = json.withParsed(body) { root -> Result<APIRequest, APIError> in
            // `null` equals absent for the body too: what it lacks is then said by name.
            guard root.kind == .object || root.isNull else { return .failure(.type("body", mustBe: "an object")) }
            do throws(APIError) {
                return .success(try build(FieldReader(root)))
            } catch {
                return .failure(error)
            }
        }
        switch parsed {
        case .success(let result): return result
        case .failure(.noMemory): return .failure(.busy(retryAfterSeconds: 1))
        case .failure(let fault): return .failure(.notJSON(fault))
        }
    }

    private static func devices(_ list: String) -> Result<[CID], APIError> {
        do throws(APIError) {
            return .success(try CIDList.read(list.split(separator: ",", omittingEmptySubsequences: false)))
        } catch {
            return .failure(error)
        }
    }
}

extension AuthRequest {
    fileprivate init(_ fields: FieldReader) throws(APIError) {
        guard let sign = try fields.nonEmptyString("sign") else { throw .empty("sign") }
        // Not shown: it is made from a secret.
        guard sign.utf8.count == 64, Hexadecimal.decode(sign) != nil else {
            throw .invalid("sign", "\(sign.utf8.count) bytes, must be the 64 hex digits of a SHA-256")
        }
        guard let timestamp = try fields.integer("timestamp") else { throw .empty("timestamp") }
        guard timestamp >= 0 else {
            throw .invalid("timestamp", "\(timestamp), must be milliseconds since 1970")
        }
        guard let appKey = try fields.nonEmptyString("appkey") else { throw .empty("appkey") }
        self.init(sign: sign, timestamp: timestamp, appKey: appKey)
    }
}
