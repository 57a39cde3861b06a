private import FerryCore
internal import FerryTestSupport
internal import Testing

struct IdentifierTests {
    @Test func `An identifier is 32 hex digits in either case, written in lower case`() {
        let text = "00112233445566778899aabbccddeeff"
        let value = Identifier128(hex: text)
        #expect(value == Identifier128(high: 0x0011_2233_4455_6677, low: 0x8899_aabb_ccdd_eeff))
        #expect(value?.hex == text)
        #expect(Identifier128(hex: "00112233445566778899AABBCCDDEEFF") == value)
        #expect(CID(hex: text)?.description == text)
        #expect(value.map { MessageID($0).description } == text)
    }

    @Test(arguments: [
        "", "0", "00112233445566778899aabbccddeef", "00112233445566778899aabbccddeeff0",
        "00112233445566778899aabbccddeefg", "0x112233445566778899aabbccddeeff", "ä0112233445566778899aabbccddeef",
        "+0112233445566778899aabbccddeeff",
    ])
    func `Any other text is no identifier`(_ text: String) {
        #expect(Identifier128(hex: text) == nil)
        #expect(CID(hex: text) == nil)
    }

    @Test func `An identifier's bytes are big-endian and sort as it does`() {
        var random = SplitMix(seed: 1)
        for _ in 0..<200 {
            let left = Identifier128(high: UInt64.random(in: 0...3, using: &random), low: random.next())
            let right = Identifier128(high: UInt64.random(in: 0...3, using: &random), low: random.next())
            #expect(Identifier128(bytes: left.bytes) == left)
            #expect((left < right) == left.bytes.lexicographicallyPrecedes(right.bytes))
            #expect((CID(left) < CID(right)) == (left < right))
        }
        #expect(Identifier128(bytes: [UInt8](repeating: 1, count: 15)) == nil)
        #expect(Identifier128(bytes: [UInt8](repeating: 1, count: 17)) != nil)
    }

    @Test func `An app's name is 1 to 64 of letters, digits, hyphen, underscore and full stop`() {
        #expect(AppID("Harbour_1.test-2")?.description == "Harbour_1.test-2")
        #expect(AppID(String(repeating: "a", count: 64)) != nil)
        for text in ["", String(repeating: "a", count: 65), "a b", "a/b", "ä", "a\0", "a\n"] {
            #expect(AppID(text) == nil, "\(text)")
        }
    }

    @Test func `A task's text has its kind, its day and its number`() {
        let value = Identifier128(high: 0, low: 0xabc)
        let hex = "00000000000000000000000000000abc"
        #expect(TaskID(value, monthDay: 1231, kind: .single).description == "RASS_1231_\(hex)")
        #expect(TaskID(value, monthDay: 101, kind: .list).description == "RASL_0101_\(hex)")
        #expect(TaskID(value, monthDay: 65_535, kind: .app).description == "RASA_65535_\(hex)")
    }

    @Test func `Positions and epochs print as numbers and hex`() {
        #expect(Seq.zero.next == Seq(1))
        #expect(Seq(7).description == "7" && Seq(7) < Seq(8))
        #expect(Epoch(0xab).description == "00000000000000ab")
        #expect(Epoch.none == Epoch(0))
    }

    @Test func `Hex digits spell bytes, in either case`() {
        let bytes = (0...255).map { UInt8($0) }
        let text = Hexadecimal.encode(bytes)
        #expect(text.count == 512 && text.hasPrefix("000102") && text.hasSuffix("fdfeff"))
        #expect(Hexadecimal.decode(text) == bytes)
        #expect(Hexadecimal.decode(text.uppercased()) == bytes)
        #expect(Hexadecimal.decode("") == [])
        for other in ["a", "abc", "g0", "0g", "/0", ":0", "@0", "`0", " 0", "é", "0\u{0}"] {
            #expect(Hexadecimal.decode(other) == nil, "\(other)")
        }
    }

    @Test func `A push token has a size and an environment`() {
        #expect(PushToken(environment: .sandbox, bytes: []) == nil)
        #expect(PushToken(environment: .sandbox, bytes: [UInt8](repeating: 1, count: 128)) != nil)
        #expect(PushToken(environment: .sandbox, bytes: [UInt8](repeating: 1, count: 129)) == nil)
        for environment in PushEnvironment.allCases { #expect(PushEnvironment(name: environment.name) == environment) }
        #expect(PushEnvironment(name: "Production") == nil)
    }

    @Test func `Limits fit into each other`() {
        // A push frame: seq, flags, message id, the task id's string, the payload's string.
        #expect(Limits.gatewayFrameBytes >= Limits.payloadBytes + 10 + 1 + 16 + 1 + 64 + 3)
        #expect(Limits.deviceFrameBytes > Limits.pushTokenBytes + 32)
        #expect(Limits.partitions == 1_024, "fixed for the life of every data folder")
    }
}
