internal import FerryCore
private import FerryIO
internal import FerryReceipts
internal import Testing

/// Receipts as bytes and as lines.
@Suite struct ReceiptTests {
    private static let cid = CID(Identifier128(high: 1, low: 2))
    private static let name = MessageName(
        taskID: TaskID(Identifier128(high: 3, low: 4), monthDay: 1201, kind: .list),
        messageID: MessageID(Identifier128(high: 5, low: 6)), callback: Array("order \"7\"".utf8))

    private static let samples: [Receipt] =
        EndReason.allCases.map {
            .ended(EndedMessage(cid: cid, name: name, reason: $0, at: Instant(milliseconds: 1_764_500_000_123)))
        } + [
            .presence(PresenceChange(cid: cid, isOnline: true, at: Instant(milliseconds: 7), session: 0xabc)),
            .presence(PresenceChange(cid: cid, isOnline: false, at: Instant(milliseconds: 8), session: 0)),
        ]

    @Test(arguments: samples) func `a receipt is read as it was written, and no part of it is one`(receipt: Receipt) {
        let bytes = receipt.bytes
        #expect(Receipt(bytes) == receipt)
        for count in 0..<bytes.count { #expect(Receipt(Array(bytes.prefix(count))) == nil) }
        #expect(Receipt(bytes + [0]) == nil)
        #expect(Receipt([9] + bytes.dropFirst()) == nil)
    }

    @Test(arguments: samples) func `whatever byte is damaged, reading it does not trap`(receipt: Receipt) {
        let bytes = receipt.bytes
        for index in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << UInt8(bit)
                #expect(Receipt(damaged) != receipt)
            }
        }
    }

    private static func line(_ receipt: Receipt) throws -> String {
        let app = try #require(AppID("shop"))
        var text: [UInt8] = []
        ReceiptLine.append(receipt, app: app, masterSecret: "master-of-shop", to: &text, md5: Cryptography.md5)
        return String(decoding: text, as: UTF8.self)
    }

    // The signatures are those of `printf %s … | md5sum`.
    @Test func `a message's line has GeTui's fields and signature`() throws {
        let receipt = Receipt.ended(
            EndedMessage(
                cid: Self.cid, name: Self.name, reason: .acknowledged, at: Instant(milliseconds: 1_764_500_000_123)))
        #expect(
            try Self.line(receipt)
                == #"{"appid":"shop","cid":"00000000000000010000000000000002","#
                + #""taskid":"RASL_1201_00000000000000030000000000000004","#
                + #""msgid":"00000000000000050000000000000006","code":200,"desc":"delivered","reason":"acknowledged","#
                + #""recvtime":1764500000123,"custom_callback":"order \"7\"","#
                + #""sign":"d6e5cbc1a6d1fb6c0d67747e4309eba3"}"# + "\n")
    }

    @Test func `a device's line says whether it came or went`() throws {
        #expect(
            try Self.line(Self.samples[EndReason.allCases.count])
                == #"{"appid":"shop","cid":"00000000000000010000000000000002","event":"online","time":7,"#
                + #""session":"0000000000000abc","sign":"faccf1341d73fa248595a808268359d9"}"# + "\n")
        #expect(
            try Self.line(Self.samples[EndReason.allCases.count + 1])
                == #"{"appid":"shop","cid":"00000000000000010000000000000002","event":"offline","time":8,"#
                + #""sign":"e6f5913af66b92f2a1915f9541d01f4c"}"# + "\n")
    }

    @Test(arguments: EndReason.allCases) func `only what reached the device, or APNs, has the code 200`(
        reason: EndReason
    ) {
        let isGood = reason.state == .delivered || reason.state == .handed
        #expect((reason.receiptCode == 200) == isGood)
        #expect([200, 400, 401, 402, 500].contains(reason.receiptCode))
    }

    @Test(arguments: ["http://a", "https://b.example/path?x=1", "HTTPS://c:8443/"])
    func `an address of http or https is taken`(url: String) { #expect(ReceiptTarget.fault(of: url) == nil) }

    @Test(
        arguments: [
            "", "ftp://a", "file:///etc/passwd", "https://", "https:///x", "http://a b", "http://ä", "gopher://x",
            "http://a\r\nX: y", "//a", "http://" + String(repeating: "a", count: 2_048),
        ])
    func `any other address is refused with a reason`(url: String) { #expect(ReceiptTarget.fault(of: url) != nil) }
}
