internal import FerryAPI

/// What a decoder says to `bytes` given in pieces that end at `cuts` (rising), until it wants more after the last.
func decode(_ bytes: [UInt8], cuts: [Int] = [], limits: HTTPLimits = HTTPLimits()) -> [HTTPDecoded] {
    var decoder = HTTPRequestDecoder(limits: limits)
    return decode(bytes, cuts: cuts, with: &decoder)
}

func decode(_ bytes: [UInt8], cuts: [Int] = [], with decoder: inout HTTPRequestDecoder) -> [HTTPDecoded] {
    var said: [HTTPDecoded] = []
    var start = 0
    for end in cuts + [bytes.count] {
        Array(bytes[start..<end]).withUnsafeBytes { decoder.append($0) }
        start = end
        asking: while true {
            let next = decoder.next()
            switch next {
            case .needsMore: break asking
            case .refused:
                said.append(next)
                return said
            case .request, .expectsContinue: said.append(next)
            }
        }
    }
    return said
}

func decode(_ text: String, limits: HTTPLimits = HTTPLimits()) -> [HTTPDecoded] {
    decode(Array(text.utf8), limits: limits)
}

extension HTTPDecoded {
    var request: HTTPRequest? {
        guard case .request(let request) = self else { return nil }
        return request
    }

    var refusal: HTTPRefusal? {
        guard case .refused(let refusal) = self else { return nil }
        return refusal
    }
}

/// The same numbers for the same seed (SplitMix64), so that a failure can be had again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

enum Samples {
    static let texts = [
        "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /v2/demo/push/single/cid HTTP/1.1\r\nhost: a:1\r\ntoken:  t1 \t\r\ncontent-length: 5\r\n\r\nhello",
        "DELETE /v2/demo/auth/t1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "POST /v2/demo/auth HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
            + "4;x=\"y\"\r\nwiki\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
        "\r\nGET http://host.example:80?q=1 HTTP/1.1\r\nHost: other\r\nConnection: foo, Close\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
    ]
    static let pipelined = Array(texts.joined().utf8)
}
