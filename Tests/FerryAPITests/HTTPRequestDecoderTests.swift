private import FerryAPI
internal import Testing

struct HTTPRequestDecoderTests {
    @Test func `pipelined requests come out one by one with all their parts`() throws {
        let said = decode(Samples.pipelined)
        let requests = said.compactMap(\.request)
        try #require(requests.count == 6)
        #expect(said.count == 7)
        #expect(said[5] == .expectsContinue)

        #expect(requests[0].method == .get)
        #expect(requests[0].segments == ["healthz"])
        #expect(requests[0].keepAlive)
        #expect(requests[1].method == .post)
        #expect(requests[1].segments == ["v2", "demo", "push", "single", "cid"])
        #expect(requests[1].fields.first("token") == "t1")
        #expect(requests[4].fields.first("host") == "other")
        #expect(requests[1].fields.count == 3)
        #expect(requests[1].body == Array("hello".utf8))
        #expect(requests[2].method == .delete)
        #expect(requests[2].keepAlive)
        #expect(requests[3].body == Array("wiki0123456789".utf8))
        #expect(requests[3].fields.first("trailer") == nil)
        #expect(requests[4].segments == [""])
        #expect(requests[4].query == "q=1")
        #expect(!requests[4].keepAlive)
        #expect(requests[5].body == Array("ok".utf8))
    }

    @Test func `requests do not depend on where the bytes were cut`() {
        let whole = decode(Samples.pipelined)
        for cut in 0...Samples.pipelined.count {
            #expect(decode(Samples.pipelined, cuts: [cut]) == whole, "cut at \(cut)")
        }
        #expect(decode(Samples.pipelined, cuts: Array(1..<Samples.pipelined.count)) == whole)
    }

    @Test func `a prefix of a request is no request`() {
        for text in Samples.texts {
            let bytes = Array(text.utf8)
            for count in 0..<bytes.count {
                let said = decode(Array(bytes[..<count]))
                #expect(said.allSatisfy { $0 == .expectsContinue }, "\(count) bytes of \(text)")
            }
        }
    }

    @Test func `a decoder holds nothing between requests`() {
        var decoder = HTTPRequestDecoder(limits: HTTPLimits())
        for text in Samples.texts {
            let bytes = Array(text.utf8)
            _ = decode(Array(bytes.dropLast()), with: &decoder)
            #expect(decoder.isMidRequest)
            #expect(decode([bytes[bytes.count - 1]], with: &decoder).count == 1)
            #expect(decoder.heldBytes == 0)
            #expect(!decoder.isMidRequest)
        }
    }

    @Test func `bytes of a long body do not pile up in front of it`() {
        var decoder = HTTPRequestDecoder(limits: HTTPLimits())
        let head = Array("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n".utf8)
        _ = decode(head, with: &decoder)
        #expect(decoder.heldBytes == 0)
        _ = decode(Array(repeating: 7, count: 60_000), with: &decoder)
        #expect(decoder.heldBytes == 60_000)
        let said = decode(Array(repeating: 8, count: 40_000), with: &decoder)
        #expect(said.first?.request?.body.count == 100_000)
    }

    @Test func `a corrupted byte gives other requests or a refusal, the same however it is cut`() {
        for position in Samples.pipelined.indices {
            for value in [0, 9, 10, 13, 32, 0x25, 0x30, 0x3a, 0x7f, 0x80, 0xff] as [UInt8] {
                var bytes = Samples.pipelined
                bytes[position] = value
                let whole = decode(bytes)
                let cut = min(bytes.count, position + 1)
                #expect(decode(bytes, cuts: [position, cut]) == whole, "\(value) at \(position)")
            }
        }
    }

    @Test func `garbage never makes more than a refusal, the same byte by byte`() {
        let alphabet = Array("GET /%2 HTTP/1.1\r\n\r\n:;,0a\t\u{0}é".utf8)
        for seed in 0..<400 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let count = Int.random(in: 0...120, using: &generator)
            let prefix = seed.isMultiple(of: 2) ? Array("POST / HTTP/1.1\r\nHost: a\r\n".utf8) : []
            let bytes =
                prefix
                + (0..<count).map { _ in
                    seed.isMultiple(of: 3)
                        ? UInt8.random(in: 0...255, using: &generator)
                        : alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]
                }
            let each = decode(bytes, cuts: Array(0..<bytes.count))
            #expect(each == decode(bytes), "seed \(seed)")
        }
    }

    @Test func `after a refusal nothing is read any more`() {
        var decoder = HTTPRequestDecoder(limits: HTTPLimits())
        let first = decode(Array("nonsense\r\n".utf8), with: &decoder)
        #expect(first.first?.refusal?.status == 400)
        #expect(decode(Array(Samples.texts[0].utf8), with: &decoder) == first)
        #expect(decoder.heldBytes == 0)
    }

    @Test(
        arguments: [
            ("HTTP/1.1", "", true), ("HTTP/1.1", "close", false), ("HTTP/1.1", "Keep-Alive", true),
            ("HTTP/1.1", "a,CLOSE ,b", false), ("HTTP/1.1", "closed", true), ("HTTP/1.2", "", true),
            ("HTTP/1.0", "", false), ("HTTP/1.0", "keep-alive", true), ("HTTP/1.0", "keep-alive, close", false),
        ] as [(String, String, Bool)])
    func `the connection header and the version decide about keep-alive`(
        version: String, connection: String, keepAlive: Bool
    ) {
        let said = decode("GET / \(version)\r\nHost: a\r\nConnection: \(connection)\r\n\r\n")
        #expect(said.first?.request?.keepAlive == keepAlive)
    }

    @Test(
        arguments: [
            ("/", [""], ""), ("/a/b/", ["a", "b", ""], ""), ("/a%2Fb/%e4%bd%a0?x=%2F?y", ["a/b", "你"], "x=%2F?y"),
            ("//a", ["", "a"], ""), ("/../a", ["..", "a"], ""), ("HTTP://h/a", ["a"], ""),
            ("https://[::1]:80/a?", ["a"], ""), ("http://h", [""], ""),
        ] as [(String, [String], String)])
    func `a target is cut into decoded segments`(target: String, segments: [String], query: String) {
        let request = decode("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n").first?.request
        #expect(request?.segments == segments)
        #expect(request?.query == query)
    }

    @Test func `methods are told apart by their exact names`() {
        let names: [(String, HTTPMethod)] = [
            ("GET", .get), ("HEAD", .head), ("POST", .post), ("PUT", .put), ("DELETE", .delete), ("PATCH", .other),
            ("get", .other),
        ]
        for (name, method) in names {
            #expect(decode("\(name) / HTTP/1.1\r\nHost: a\r\n\r\n").first?.request?.method == method)
        }
    }

    @Test func `only a request with a body to come is told to continue`() {
        let head = "POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n"
        #expect(decode(head + "Content-Length: 0\r\n\r\n").count == 1)
        #expect(decode(head + "\r\n").count == 1)
        #expect(decode(head + "Content-Length: 1\r\n\r\n") == [.expectsContinue])
        #expect(decode(head + "Transfer-Encoding: chunked\r\n\r\n") == [.expectsContinue])
        let old = "POST /a HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"
        #expect(decode(old).count == 1)
    }
}
