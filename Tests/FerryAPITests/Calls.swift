internal import FerryAPI

/// Reads a call's body as the gateway does; `parser` is made anew, so that each test stands alone.
func parse(
    _ call: APIRoute.Call, _ body: [UInt8], limits: APILimits = APILimits()
) -> Result<APIRequest, APIError> {
    guard let request = decode("POST / HTTP/1.1\r\nHost: a\r\n\r\n").first?.request else {
        return .failure(.notFound(""))
    }
    var called = request
    called.body = body
    return APIRequestParser(limits: limits).parse(APIRoute(call: call, appID: "demo"), called)
}

func parse(_ call: APIRoute.Call, _ body: String, limits: APILimits = APILimits()) -> Result<APIRequest, APIError> {
    parse(call, Array(body.utf8), limits: limits)
}

extension Result where Failure == APIError {
    var error: APIError? {
        guard case .failure(let error) = self else { return nil }
        return error
    }
}

extension Result<APIRequest, APIError> {
    var push: SinglePush? {
        guard case .success(.pushSingle(let push)) = self else { return nil }
        return push
    }
}

/// A single push's body with some of its members replaced; an empty text leaves a member out.
struct PushBody {
    static let cid = "00112233445566778899aabbccddeeff"

    var requestID = #""request-0001""#
    var audience = #"{"cid":["\#(cid)"]}"#
    var settings = ""
    var message = #"{"transmission":"hello"}"#
    var channel = ""

    var text: String {
        let members = [
            ("request_id", requestID), ("audience", audience), ("settings", settings), ("push_message", message),
            ("push_channel", channel),
        ]
        return "{" + members.filter { !$0.1.isEmpty }.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
    }

    static func ios(_ members: String) -> PushBody { PushBody(channel: "{\"ios\":{\(members)}}") }
    static func aps(_ members: String) -> PushBody { ios("\"aps\":{\(members)}") }

    func parsed(limits: APILimits = APILimits()) -> Result<APIRequest, APIError> {
        parse(.pushSingle, text, limits: limits)
    }
}
