internal import COpenSSL
package import FerryCore

/// What identity and API tokens are made of. Failures of OpenSSL here mean a broken installation, not a peer's doing.
package enum Cryptography {
    /// `count` bytes that nobody can guess.
    package static func random(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            buffer.initialize(repeating: 0)
            precondition(
                count == 0 || copenssl_random(buffer.baseAddress, count) == 1, "OpenSSL has no random numbers")
            initialized = count
        }
    }

    package static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        digest { copenssl_sha256(bytes, bytes.count, $0) }
    }

    /// Nil where the system's OpenSSL forbids MD5. For signatures that another service has shaped, and nothing else.
    package static func md5(_ bytes: [UInt8]) -> [UInt8]? {
        var isDone = false
        let digest = [UInt8](unsafeUninitializedCapacity: 16) { buffer, initialized in
            buffer.initialize(repeating: 0)
            isDone = copenssl_md5(bytes, bytes.count, buffer.baseAddress) == 1
            initialized = 16
        }
        return isDone ? digest : nil
    }

    /// The first half of the digest, without an array on the way.
    package static func sha256Half(_ bytes: UnsafeRawBufferPointer) -> Identifier128 {
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { digest in
            let start = digest.baseAddress?.assumingMemoryBound(to: UInt8.self)
            let content = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            precondition(copenssl_sha256(content, bytes.count, start) == 1, "OpenSSL failed")
            return Identifier128(
                high: UInt64(bigEndian: digest.load(as: UInt64.self)),
                low: UInt64(bigEndian: digest.load(fromByteOffset: 8, as: UInt64.self)))
        }
    }

    package static func hmacSHA256(key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
        digest { copenssl_hmac_sha256(key, key.count, bytes, bytes.count, $0) }
    }

    /// 32 bytes derived from `key` for the purpose that `info` names (RFC 5869, no salt).
    package static func hkdfSHA256(key: [UInt8], info: [UInt8]) -> [UInt8] {
        digest { copenssl_hkdf_sha256(key, key.count, [], 0, info, info.count, $0, 32) }
    }

    /// The two steps of `hkdfSHA256`, for who derives much from one key. What the first makes is as secret as the key.
    package static func hkdfSHA256Extract(key: [UInt8]) -> [UInt8] {
        hmacSHA256(key: [UInt8](repeating: 0, count: 32), key)
    }

    package static func hkdfSHA256Expand(extracted: [UInt8], info: [UInt8]) -> [UInt8] {
        // Of 32 bytes there is one block, and its number is behind the purpose.
        hmacSHA256(key: extracted, info + [1])
    }

    /// Whether both are the same, in a time that does not tell where they differ.
    package static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && copenssl_equal(left, right, left.count) == 1
    }

    private static func digest(_ body: (UnsafeMutablePointer<UInt8>?) -> Int32) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { buffer, initialized in
            buffer.initialize(repeating: 0)
            precondition(body(buffer.baseAddress) == 1, "OpenSSL failed")
            initialized = 32
        }
    }
}
