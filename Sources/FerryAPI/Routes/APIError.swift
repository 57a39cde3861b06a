/// A refusal as the API words it: GeTui's code, and a message that names the field and the value at fault. The message
/// shows at most `Excerpt.limit` bytes of what the peer wrote.
package struct APIError: Error, Hashable, Sendable {
    package let code: Int
    package let message: String
    package var retryAfterSeconds: Int?
    /// For 405: the methods that the path takes.
    package var allow: String?
    /// The HTTP status under `/v1`, where that says more than the code; see `nativeStatus`.
    var ownStatus: Int?

    package init(code: Int, message: String, retryAfterSeconds: Int? = nil, allow: String? = nil) {
        self.code = code
        self.message = message
        self.retryAfterSeconds = retryAfterSeconds
        self.allow = allow
    }

    /// The same refusal with an HTTP status of its own under `/v1`.
    func answered(_ status: Int) -> APIError {
        var error = self
        error.ownStatus = status
        return error
    }

    /// GeTui's table of codes: small codes are answered with 200, 1xxxx with 401, 2xxxx with 400, 3xxxx with 403. The
    /// rest are HTTP's own.
    package var httpStatus: Int {
        switch code {
        case 400...599: code
        case 10_000...19_999: 401
        case 20_000...29_999: 400
        case 30_000...39_999: 403
        default: 200
        }
    }

    /// The HTTP status of the same refusal under `/v1`, whose clients are not GeTui's: there it says by itself whether
    /// the call is wrong (400), names what is not there (404), contradicts an earlier one (409), is too large (413), comes
    /// too often (429) or at a bad moment (503).
    package var nativeStatus: Int {
        if let ownStatus { return ownStatus }
        return switch code {
        case 1: 400
        case 2: 503
        case 10_003, 10_005: 429
        case 30_019: isGatewayBusy ? 503 : 429
        default: httpStatus
        }
    }

    /// 1: the body is not JSON.
    package static func notJSON(_ fault: JSONFault) -> APIError {
        APIError(code: 1, message: "the body is not JSON: \(fault.explanation)")
    }

    /// 2: the gateway is starting.
    package static let starting = APIError(code: 2, message: "the service is starting, please retry")

    /// 404. The path is shown.
    package static func notFound(_ path: String) -> APIError {
        APIError(code: 404, message: "there is no call at \(Excerpt.quoted(path))")
    }

    /// 405. `allow` names the methods that the path takes, comma-separated.
    package static func methodNotAllowed(allow: String) -> APIError {
        APIError(code: 405, message: "the method is not allowed here, use \(allow)", allow: allow)
    }

    /// 10001: the token is missing, unknown or expired. GeTui's own clients answer it by one new authentication, so it
    /// must never be the answer to an authentication.
    package static let tokenInvalid = APIError(code: 10001, message: "token is invalid or expired")

    /// 20001 with any wording.
    package static func badParameter(_ message: String) -> APIError { APIError(code: 20001, message: message) }

    /// 30019: overloaded. GeTui's clients retry every other refusal at once.
    package static func busy(retryAfterSeconds: Int) -> APIError {
        APIError(code: 30019, message: busyMessage, retryAfterSeconds: retryAfterSeconds)
    }

    private static let busyMessage = "the service is busy, please retry later"

    /// The gateway as a whole, not one target of the call, has no room now.
    package var isGatewayBusy: Bool { code == 30019 && message == Self.busyMessage }
}

/// The wordings of 20001 that GeTui publishes, each with the value at fault where there is one.
extension APIError {
    /// `{param} is invalid`
    package static func invalid(_ parameter: String, _ why: String) -> APIError {
        badParameter("\(parameter) is invalid: \(why)")
    }

    /// `{param} can not be empty`
    package static func empty(_ parameter: String) -> APIError { badParameter("\(parameter) can not be empty") }

    /// `{param} cannot be null`
    package static func null(_ parameter: String) -> APIError { badParameter("\(parameter) cannot be null") }

    /// `{param} type error`
    package static func type(_ parameter: String, mustBe expected: String) -> APIError {
        badParameter("\(parameter) type error: must be \(expected)")
    }

    /// `{param} size over limit`
    package static func overLimit(_ parameter: String, _ why: String) -> APIError {
        badParameter("\(parameter) size over limit: \(why)").answered(413)
    }

    /// `contains duplicate {param}`
    package static func duplicate(_ parameter: String) -> APIError {
        badParameter("contains duplicate \(parameter)")
    }

    /// `target user is invalid`: no such device, or another app's. The device is shown.
    package static func targetInvalid(_ cid: String) -> APIError {
        badParameter("target user is invalid: cid \(Excerpt.quoted(cid))").answered(404)
    }

    /// The call names an app that is not there. The name is shown.
    package static func appInvalid(_ appID: String) -> APIError {
        invalid("appId", "this gateway has no app \(Excerpt.quoted(appID))").answered(404)
    }

    /// A body in a form that the call does not take. `forms` are those that it takes.
    package static func contentTypeInvalid(_ value: String, forms: String) -> APIError {
        invalid("content-type", "\(Excerpt.quoted(value)), must be \(forms)").answered(415)
    }

    /// A body that is compressed, or coded in another way.
    package static func contentEncodingInvalid(_ value: String) -> APIError {
        invalid("content-encoding", "\(Excerpt.quoted(value)), bodies are taken as they are only").answered(415)
    }

    /// A proof that does not match at `POST /auth`. See `tokenInvalid` for why it is not 10001.
    package static let signInvalid = badParameter("sign is invalid")

    /// `request_id` came again with other content.
    package static func requestIDReused(_ requestID: String) -> APIError {
        badParameter("request_id cannot be repeat.: \(Excerpt.quoted(requestID)) was used for another content")
            .answered(409)
    }
}
