private import FerryAPI
internal import Testing

/// Requests that must not be read as any request at all; most are known ways to smuggle one past a proxy.
struct HTTPRefusalTests {
    static let refused: [(String, Int)] = [
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("GET / http/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400),
        ("GET /\r\nHost: a\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
        (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET http://u@h/a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /é HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /% HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /%4g HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\r\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\r: b\r\n\r\n", 400),
        ("GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\u{e9}: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\u{0}\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\u{7f}c\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999999\r\n\r\n", 413),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \u{b}chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n", 417),
    ]

    @Test(arguments: refused)
    func `a malformed request is refused, whole and byte by byte`(text: String, status: Int) {
        let bytes = Array(text.utf8)
        let said = decode(bytes)
        #expect(said.count == 1)
        #expect(said.first?.refusal?.status == status)
        #expect(decode(bytes, cuts: Array(0..<bytes.count)) == said)
    }

    @Test(arguments: [
        "\r\n", "g\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\nx\r\n", "1 \r\nx\r\n", "1 ;a\r\nx\r\n", "1\nx\r\n",
        "1;a\rb\r\nx\r\n", "1;\u{0}\r\nx\r\n", "1\r\nxx\r\n", "1\r\nx\n0\r\n\r\n", "1\r\n\r\n\r\n", "1\r\nx0\r\n\r\n",
        "0\r\nX : y\r\n\r\n", "0\r\nX\r\n\r\n", "0\r\n X: y\r\n\r\n", "0\r\n\n",
        "1;" + String(repeating: "a", count: 1023) + "\r\nx\r\n",
    ])
    func `a malformed chunk is refused, whole and byte by byte`(chunks: String) {
        let bytes = Array("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)".utf8)
        let said = decode(bytes)
        #expect(said.count == 1)
        #expect(said.first?.refusal?.status == 400)
        #expect(decode(bytes, cuts: Array(0..<bytes.count)) == said)
    }

    @Test(arguments: [" ", "\t"])
    func `a folded header is called so`(fold: String) {
        let said = decode("GET / HTTP/1.1\r\nHost: a\r\n\(fold)X: b\r\n\r\n")
        #expect(said.first?.refusal?.message == "a header line is folded")
    }

    @Test func `equal lengths said twice are one length`() {
        let said = decode("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 01\r\n\r\nx")
        #expect(said.first?.request?.body == [0x78])
    }
}
