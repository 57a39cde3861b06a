private import FerryCore
internal import FerryTestSupport
internal import Testing

struct Base64Tests {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    private static func decode(_ text: [UInt8]) -> [UInt8]? { text.withUnsafeBufferPointer { Base64.decode($0) } }

    /// Written apart from what is tested: three bytes at a time.
    private static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = Array(bytes[start..<min(start + 3, bytes.count)])
            let number = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for sign in 0..<4 {
                text.append(sign <= group.count ? alphabet[number >> (18 - 6 * sign) & 63] : 0x3d)
            }
        }
        return text
    }

    @Test func `what was coded is what comes out, whatever its length`() {
        var random = SplitMix(seed: 1)
        for count in 0...200 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Self.decode(Self.encode(bytes)) == bytes)
        }
        #expect(Self.decode(Array("Zm9vYmFy".utf8)) == Array("foobar".utf8))
        #expect(Self.decode(Array("Zm9vYg==".utf8)) == Array("foob".utf8))
    }

    @Test func `every text of four signs is either the one spelling of its bytes or refused`() {
        let signs: [UInt8] = [0x41, 0x42, 0x51, 0x67, 0x2f, 0x2b, 0x39, 0x3d, 0x2d, 0x20, 0x00, 0xff]
        var taken = 0
        for first in signs {
            for second in signs {
                for third in signs {
                    for fourth in signs {
                        let text = [first, second, third, fourth]
                        guard let bytes = Self.decode(text) else { continue }
                        taken += 1
                        #expect(Self.encode(bytes) == text)
                    }
                }
            }
        }
        #expect(taken > 2_000)
    }

    @Test(arguments: [
        "A", "AA", "AAA", "AAAAA", "====", "A===", "AA=A", "=AAA", "AA==AAAA", "AB==", "AAB=", "AA-_", "AAA\n",
    ])
    func `what is not a spelling is refused`(text: String) { #expect(Self.decode(Array(text.utf8)) == nil) }
}
