private import FerryAPI
internal import Testing

struct HTTPResponseTests {
    private func text(_ response: HTTPResponse, keepAlive: Bool = true, includesBody: Bool = true) -> String {
        var bytes: [UInt8] = []
        response.encode(into: &bytes, keepAlive: keepAlive, includesBody: includesBody)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `an answer is a status line, its headers and the body`() {
        let response = HTTPResponse(status: 200, body: Array("{}".utf8))
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json;charset=utf-8\r\nContent-Length: 2\r\n"
        #expect(text(response) == head + "Connection: keep-alive\r\n\r\n{}")
        #expect(text(response, keepAlive: false) == head + "Connection: close\r\n\r\n{}")
        #expect(text(response, includesBody: false) == head + "Connection: keep-alive\r\n\r\n")
    }

    @Test func `busy says when to come again and 405 what to use`() {
        #expect(text(APIError.busy(retryAfterSeconds: 3).response).contains("\r\nRetry-After: 3\r\n"))
        #expect(text(APIError.busy(retryAfterSeconds: 3).response).hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
        let error = APIError.methodNotAllowed(allow: "GET, HEAD")
        #expect(text(error.response).contains("\r\nAllow: GET, HEAD\r\n"))
    }

    @Test func `a refusal is an envelope with the status as its code`() {
        let refusal = decode("x\r\n").first?.refusal
        let response = refusal.map { HTTPResponse($0) }
        #expect(
            response?.body == Array(#"{"code":400,"msg":"the request line is not: method, target, version"}"#.utf8))
        #expect(response?.status == 400)
    }

    @Test func `answers are appended, so that pipelined ones leave together`() {
        var bytes = HTTPResponse.continueBytes
        HTTPResponse(status: 404, body: []).encode(into: &bytes, keepAlive: true)
        #expect(String(decoding: bytes, as: UTF8.self).hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found"))
    }
}
