internal import FerryClientCore
internal import FerryIO

extension HandshakeProofs.Cipher {
    static let openSSL = HandshakeProofs.Cipher(
        mac: { Cryptography.hmacSHA256(key: $0, $1) }, isEqual: { Cryptography.isEqual($0, $1) })
}

/// OpenSSL's random bytes, eight at a time.
struct CryptographicRandom: RandomNumberGenerator {
    mutating func next() -> UInt64 {
        Cryptography.random(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
