internal import FerryCore
@testable internal import FerryGateway
internal import FerryIO
internal import FerryWire
internal import Testing

struct PayloadCompressorTests {
    private let text = [UInt8](#"{"type":"chat","from":"anna","text":"see you at eight"}"#.utf8)

    private func unpack(_ payload: ArraySlice<UInt8>) throws -> [UInt8] {
        let push = PushFrame(
            seq: Seq(1), flags: .compressed, messageID: MessageID(Identifier128(high: 0, low: 1)), taskID: "t",
            payload: Array(payload))
        return try push.unpacked(isAgreed: true, inflate: Inflation.inflate).payload
    }

    @Test func `What it makes is a tenth shorter at least and leads back to the payload`() throws {
        var compressor = PayloadCompressor()
        for count in [2, 4, 20, 300, 1_191] {
            let payload = Array(repeatElement(text, count: count).joined())
            let made = compressor.compress(payload)
            let length = try #require(made)
            #expect(length * 10 <= payload.count * 9)
            #expect(try unpack(compressor.output[..<length]) == payload)
        }
        let zeros = [UInt8](repeating: 0, count: Limits.payloadBytes)
        let made = compressor.compress(zeros)
        let length = try #require(made)
        #expect(try unpack(compressor.output[..<length]) == zeros)
    }

    @Test func `What does not shrink is left as it is, and the next payload is none the worse for it`() throws {
        var compressor = PayloadCompressor()
        for count in [0, 1, 2, 3, 4, 5, 8, 64, 1_024, 65_536] {
            let made = compressor.compress(Cryptography.random(count))
            #expect(made == nil)
        }
        let payload = Array(repeatElement(text, count: 9).joined())
        let made = compressor.compress(payload)
        let length = try #require(made)
        #expect(try unpack(compressor.output[..<length]) == payload)
    }

    @Test func `A payload that would shrink by less than a tenth is left as it is`() throws {
        // Of noise that turns into digits more and more, which have less than half as many bits.
        var compressor = PayloadCompressor()
        var outcomes: [Bool] = []
        for digits in stride(from: 0, through: 2_000, by: 50) {
            var payload = Cryptography.random(2_000)
            for index in 0..<digits { payload[index] = 48 + payload[index] % 10 }
            guard let length = compressor.compress(payload) else {
                outcomes.append(false)
                continue
            }
            outcomes.append(true)
            #expect(length * 10 <= payload.count * 9)
        }
        #expect(outcomes.first == false)
        #expect(outcomes.last == true)
    }

    @Test func `Noise is not even tried, and text of any kind is`() {
        for count in [1_024, 2_000, 4_096, 65_536] {
            #expect(!PayloadCompressor.mayShrink(Cryptography.random(count)))
            let hex = Array(Hexadecimal.encode(Cryptography.random(count / 2)).utf8)
            #expect(PayloadCompressor.mayShrink(hex))
            // Six bits of eight, as in base64.
            #expect(PayloadCompressor.mayShrink(Cryptography.random(count).map { 32 + $0 % 64 }))
            #expect(PayloadCompressor.mayShrink([UInt8](repeating: 7, count: count)))
            // A head of text before a body of noise is not the whole.
            #expect(!PayloadCompressor.mayShrink(Array(text + Cryptography.random(count * 16))))
        }
        #expect(!PayloadCompressor.mayShrink([]))
        #expect(!PayloadCompressor.mayShrink([1]))
    }
}
