private import FerryAPI
internal import Testing

struct ContentTypeTests {
    private func request(_ lines: String, method: String = "POST") throws -> HTTPRequest {
        try #require(decode("\(method) / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n").first?.request)
    }

    @Test(arguments: [
        "", "Content-Type:\r\n", "Content-Type: application/json\r\n",
        "content-type: APPLICATION/JSON;CHARSET=UTF-8\r\n",
        "Content-Type: application/json ; charset = \"utf-8\"; q=1\r\n",
        "Content-Type: application/json;charset=utf8\r\n",
        "Content-Type: application/json;\r\nContent-Encoding: identity\r\n",
    ])
    func `what senders of JSON say is taken`(lines: String) throws {
        #expect(try request(lines).contentFault(takesBytes: false) == nil)
        #expect(try request(lines).contentFault(takesBytes: true) == nil)
    }

    @Test(arguments: [
        "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: application/json; charset=gbk\r\n", "Content-Type: application/jsonp\r\n",
        "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
        "Content-Type: application/json, text/plain\r\n",
        "Content-Encoding: gzip\r\n", "Content-Type: application/octet-stream\r\nContent-Encoding: br\r\n",
    ])
    func `another form is refused by the name of its header`(lines: String) throws {
        for takesBytes in [false, true] {
            let fault = try #require(try request(lines).contentFault(takesBytes: takesBytes))
            #expect(fault.code == 20001)
            #expect(fault.httpStatus == 400)
            #expect(fault.nativeStatus == 415)
            #expect(fault.message.hasPrefix("content-type is") || fault.message.hasPrefix("content-encoding is"))
        }
    }

    @Test func `bytes are taken where a call takes bytes`() throws {
        let bytes = try request("Content-Type: application/octet-stream\r\n")
        #expect(bytes.contentFault(takesBytes: true) == nil)
        #expect(bytes.contentFault(takesBytes: false)?.message.contains("application/octet-stream") == true)
    }

    @Test(arguments: ["GET", "HEAD"])
    func `nobody looks at what is left over behind a question`(method: String) throws {
        #expect(try request("Content-Type: text/plain\r\n", method: method).contentFault(takesBytes: false) == nil)
    }

    @Test func `a message shows little of a long value`() throws {
        let long = String(repeating: "x", count: 5_000)
        for name in ["Content-Type", "Content-Encoding"] {
            let fault = try request("\(name): \(long)\r\n").contentFault(takesBytes: false)
            #expect(try #require(fault).message.utf8.count < 160)
        }
    }
}
