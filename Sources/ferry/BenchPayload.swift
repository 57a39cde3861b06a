internal import FerryIO

/// What payloads are made of, behind their stamp.
enum BenchPayload: String, CaseIterable {
    /// One byte again and again.
    case filler
    /// Records such as apps exchange, drawn from a few names and words.
    case json
    /// Bytes that cannot be made shorter.
    case random

    /// Payloads of `count` bytes that differ from one another; the same in every run, but for the random ones.
    func variants(_ count: Int) -> [[UInt8]] {
        switch self {
        case .filler: return [[UInt8](repeating: 0x78, count: count)]
        case .json:
            var draw = BenchDraw()
            return (0..<16).map { _ in Self.records(count, &draw) }
        case .random: return (0..<16).map { _ in Cryptography.random(count) }
        }
    }

    private static let names = ["Anna", "Bertrand", "Chen", "Dimitri", "Elif", "Farah", "Goran", "Hana"]
    private static let words = [
        "the", "order", "has", "been", "shipped", "and", "will", "arrive", "tomorrow", "at", "your", "door", "please",
        "confirm", "delivery", "address", "meeting", "moved", "to", "Friday", "thanks", "call", "me", "back", "when",
        "you", "can", "invoice", "attached", "price", "changed", "new", "photo", "from", "holiday", "see",
    ]

    private static func records(_ count: Int, _ draw: inout BenchDraw) -> [UInt8] {
        var bytes = [UInt8](repeating: 0x30, count: min(count, BenchStamp.bytes))
        while bytes.count < count {
            let text = (0..<6 + draw.below(14)).map { _ in words[draw.below(words.count)] }.joined(separator: " ")
            let id = draw.below(1_000_000)
            let user = String(draw.next(), radix: 16)
            let time = 1_796_050_000 + draw.below(100_000)
            let record = """
                {"id":\(id),"type":"message","from":{"name":"\(names[draw.below(names.count)])","uid":"\(user)"},\
                "at":\(time),"text":"\(text)","read":\(draw.below(2) == 0)},
                """
            bytes += Array(record.utf8)
        }
        return Array(bytes[..<count])
    }
}

/// xorshift.
struct BenchDraw {
    private var state: UInt64 = 0x9e37_79b9_7f4a_7c15

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }

    mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
}
