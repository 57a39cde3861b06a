private import FerryCore
private import FerryIO
internal import Testing

/// The vectors of the RFCs.
struct CryptographyTests {
    private static func bytes(_ hex: String) -> [UInt8] {
        guard let bytes = Hexadecimal.decode(hex) else {
            Issue.record("not hex: \(hex)")
            return []
        }
        return bytes
    }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `SHA-256 is that of FIPS 180-2`(_ text: String, _ digest: String) {
        #expect(Hexadecimal.encode(Cryptography.sha256(Array(text.utf8))) == digest)
    }

    /// RFC 4231, cases 1 to 4 and 6: key, data, digest.
    @Test(arguments: [
        (
            "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", String(repeating: "dd", count: 50),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
        ),
        (
            "0102030405060708090a0b0c0d0e0f10111213141516171819", String(repeating: "cd", count: 50),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"
        ),
        (
            String(repeating: "aa", count: 131),
            "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `HMAC-SHA-256 is that of RFC 4231`(_ key: String, _ data: String, _ digest: String) {
        #expect(Hexadecimal.encode(Cryptography.hmacSHA256(key: Self.bytes(key), Self.bytes(data))) == digest)
    }

    /// RFC 5869, case 3 (no salt, no info), to the 32 bytes that are derived here.
    @Test func `HKDF-SHA-256 is that of RFC 5869`() {
        let key = [UInt8](repeating: 0x0b, count: 22)
        #expect(
            Hexadecimal.encode(Cryptography.hkdfSHA256(key: key, info: []))
                == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d")
    }

    @Test func `HKDF is two rounds of HMAC, and another purpose gives other bytes`() {
        let key = [UInt8](repeating: 7, count: 32)
        let info = Array("ferry device".utf8)
        let extracted = Cryptography.hmacSHA256(key: [UInt8](repeating: 0, count: 32), key)
        #expect(Cryptography.hkdfSHA256(key: key, info: info) == Cryptography.hmacSHA256(key: extracted, info + [1]))
        #expect(Cryptography.hkdfSHA256Extract(key: key) == extracted)
        #expect(
            Cryptography.hkdfSHA256Expand(extracted: extracted, info: info)
                == Cryptography.hkdfSHA256(key: key, info: info))
        #expect(Cryptography.hkdfSHA256(key: key, info: info) != Cryptography.hkdfSHA256(key: key, info: info + [0]))
    }

    @Test func `An empty key or text is a key or text`() {
        #expect(
            Hexadecimal.encode(Cryptography.hmacSHA256(key: [], []))
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    }

    @Test func `Equality looks at every byte and at the size`() {
        let left = [UInt8](repeating: 1, count: 32)
        #expect(Cryptography.isEqual(left, left))
        for index in left.indices {
            var right = left
            right[index] ^= 0x80
            #expect(!Cryptography.isEqual(left, right))
        }
        #expect(!Cryptography.isEqual(left, Array(left.dropLast())))
        #expect(Cryptography.isEqual([], []))
    }

    @Test func `Random bytes are as many as asked for, and never the same`() {
        #expect(Cryptography.random(0) == [])
        #expect(Cryptography.random(33).count == 33)
        #expect(Set((0..<100).map { _ in Cryptography.random(16) }).count == 100)
    }
}
