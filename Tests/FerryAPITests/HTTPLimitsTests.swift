private import FerryAPI
internal import Testing

struct HTTPLimitsTests {
    private var small: HTTPLimits {
        var limits = HTTPLimits()
        limits.requestLineBytes = 30
        limits.headerBytes = 40
        limits.headerFields = 3
        limits.bodyBytes = 20
        return limits
    }

    /// 0 for a request, else the refusal's status; the same for bytes that come one by one.
    private func outcome(_ text: String) -> Int {
        let bytes = Array(text.utf8)
        let said = decode(bytes, limits: small)
        #expect(decode(bytes, cuts: Array(0..<bytes.count), limits: small) == said)
        if said.last?.request != nil { return 0 }
        return said.last?.refusal?.status ?? -1
    }

    @Test(arguments: [(30, 0), (31, 414), (32, 414), (200, 414)] as [(Int, Int)])
    func `a request line may have so many bytes`(count: Int, status: Int) {
        let target = "/" + String(repeating: "a", count: count - 14)
        #expect(outcome("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n") == status)
    }

    @Test func `a request line that never ends is refused before it does`() {
        #expect(decode("GET /" + String(repeating: "a", count: 27), limits: small).last?.refusal?.status == 414)
    }

    @Test(arguments: [(40, 0), (41, 431), (42, 431), (400, 431)] as [(Int, Int)])
    func `header lines may have so many bytes together`(count: Int, status: Int) {
        let value = String(repeating: "b", count: count - 9 - 5)
        #expect(outcome("GET / HTTP/1.1\r\nHost: a\r\nX: \(value)\r\n\r\n") == status)
    }

    @Test(arguments: [(3, 0), (4, 431)] as [(Int, Int)])
    func `there may be so many header lines`(count: Int, status: Int) {
        let rest = String(repeating: "X:\r\n", count: count - 1)
        #expect(outcome("GET / HTTP/1.1\r\nHost: a\r\n\(rest)\r\n") == status)
    }

    @Test(arguments: [(19, 0), (20, 0), (21, 413)] as [(Int, Int)])
    func `a body may have so many bytes, counted or chunked`(count: Int, status: Int) {
        let body = String(repeating: "c", count: count)
        #expect(outcome("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n\(body)") == status)
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        let chunks = body.map { "1\r\n\($0)\r\n" }.joined()
        #expect(outcome("\(head)\(chunks)0\r\n\r\n") == status)
        #expect(outcome("\(head)\(String(count, radix: 16))\r\n\(body)\r\n0\r\n\r\n") == status)
    }

    @Test func `a chunk size beyond any number is a body too large`() {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(outcome(head + String(repeating: "f", count: 40) + "\r\n") == 413)
        #expect(outcome(head + String(repeating: "0", count: 40) + "1\r\nx\r\n0\r\n\r\n") == 0)
    }

    @Test(arguments: [(40, 0), (41, 431)] as [(Int, Int)])
    func `trailers may have so many bytes together`(count: Int, status: Int) {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        #expect(outcome(head + "X: " + String(repeating: "d", count: count - 5) + "\r\n\r\n") == status)
    }

    @Test(arguments: [(3, 0), (4, 431)] as [(Int, Int)])
    func `there may be so many trailers`(count: Int, status: Int) {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        #expect(outcome(head + String(repeating: "X:\r\n", count: count) + "\r\n") == status)
    }

    @Test(arguments: [(4, 0), (5, 400)] as [(Int, Int)])
    func `chunk extensions may have so many bytes together`(chunks: Int, status: Int) {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        let chunk = "1;aaaaaaaaa\r\nx\r\n"
        #expect(outcome(head + String(repeating: chunk, count: chunks) + "0\r\n\r\n") == status)
    }

    @Test(arguments: [(4, 0), (5, 400)] as [(Int, Int)])
    func `so many empty lines may come before a request`(count: Int, status: Int) {
        #expect(outcome(String(repeating: "\r\n", count: count) + "GET / HTTP/1.1\r\nHost: a\r\n\r\n") == status)
    }

    @Test func `the status of a thousand devices fits a request line of default size`() {
        let devices = Array(repeating: String(repeating: "a", count: 32), count: 1000).joined(separator: "%2C")
        let app = String(repeating: "x", count: 64)
        let said = decode("GET /v2/\(app)/user/status/\(devices) HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(said.first?.request != nil)
    }
}
