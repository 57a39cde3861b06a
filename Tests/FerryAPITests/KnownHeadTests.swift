private import FerryAPI
internal import Testing

/// A head that was read is known again by its bytes. Given byte by byte it never is, so that both ways can be compared.
struct KnownHeadTests {
    private static let heads = [
        "POST /v2/demo/push/single/cid HTTP/1.1\r\nHost: a:1\r\ntoken: t1\r\nContent-Length: N\r\nx-last: 1\r\n\r\n",
        "POST /v2/demo/push/single/cid HTTP/1.1\r\ncontent-length:\t N\r\nHost: a:1\r\n\r\n",
        "POST /a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: N \r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: N\r\nContent-Length: N\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nx: content-length: 3\r\nContent-Length: N\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nX-Content-Length: N\r\nContent-Length: N\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: N\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    ]

    private func request(_ head: String, _ length: Int, digits: Int) -> [UInt8] {
        let number = String(length)
        let padded = String(repeating: "0", count: max(0, digits - number.count)) + number
        let text = head.split(separator: "N", omittingEmptySubsequences: false).joined(separator: padded)
        return Array(text.utf8) + [UInt8](repeating: 0x78, count: head.contains("N") ? length : 0)
    }

    private func isSameEitherWay(_ bytes: [UInt8], limits: HTTPLimits = HTTPLimits()) -> Bool {
        decode(bytes, limits: limits) == decode(bytes, cuts: Array(1..<max(2, bytes.count)), limits: limits)
    }

    @Test func `a head that comes again is read as it was the first time`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<2_000 {
            let head = Self.heads.randomElement(using: &generator) ?? ""
            var bytes: [UInt8] = []
            for _ in 0..<5 {
                var next = request(
                    head, Int.random(in: 0...120, using: &generator), digits: Int.random(in: 1...4, using: &generator))
                if Int.random(in: 0..<4, using: &generator) == 0 {
                    let place = Int.random(in: 0..<next.count, using: &generator)
                    next[place] = UInt8.random(in: 0x0a...0x7f, using: &generator)
                }
                bytes += next
            }
            #expect(isSameEitherWay(bytes), "\(String(decoding: bytes, as: UTF8.self))")
        }
    }

    @Test func `only the length of a known head may differ, and it keeps the limits`() {
        var limits = HTTPLimits()
        limits.bodyBytes = 50
        for length in [0, 9, 10, 50, 51, 99] {
            let bytes = request(Self.heads[0], 10, digits: 2) + request(Self.heads[0], length, digits: 1)
            #expect(isSameEitherWay(bytes, limits: limits))
            #expect(decode(bytes, limits: limits).last?.refusal?.status == (length > 50 ? 413 : nil))
        }
        let requests = decode(
            request(Self.heads[0], 10, digits: 2) + request(Self.heads[0], 7, digits: 1)
                + request(Self.heads[0], 12, digits: 2)
        ).compactMap(\.request)
        #expect(requests.map(\.body.count) == [10, 7, 12])
        #expect(requests.map { $0.fields.first("content-length") } == ["10", "7", "12"])
        #expect(requests.map { $0.fields.first("x-last") } == ["1", "1", "1"])
    }

    @Test func `a head has the number of the one it equals, and another one has another number or none`() {
        var decoder = HTTPRequestDecoder(limits: HTTPLimits())
        func number(_ text: [UInt8]) -> UInt64? {
            _ = decode(text, with: &decoder)
            return decoder.headNumber
        }
        let first = number(request(Self.heads[0], 10, digits: 2))
        #expect(first != nil)
        #expect(number(request(Self.heads[0], 3, digits: 1)) == first)
        let token = Self.heads[0].split(separator: "t1").joined(separator: "t2")
        let second = number(request(token, 3, digits: 1))
        #expect(second != nil && second != first)
        let long = "GET /healthz HTTP/1.1\r\nHost: a\r\nx: " + String(repeating: "y", count: 2_000) + "\r\n\r\n"
        #expect(number(Array(long.utf8)) == nil)
        #expect(number(request(token, 3, digits: 1)) == second)
        #expect(number(request(Self.heads[0], 10, digits: 2)) != first)
    }
}
