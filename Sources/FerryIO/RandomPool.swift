/// Random numbers that nobody can guess, taken from OpenSSL some thousand bytes at a time: a number that is asked of the
/// kernel costs a system call, and each message has four. One thread's own.
package struct RandomPool: RandomNumberGenerator {
    private var bytes: [UInt8] = []
    private var cursor = 0
    private static let refill = 4_096

    package init() {}

    package mutating func next() -> UInt64 {
        if cursor + 8 > bytes.count {
            bytes = Cryptography.random(Self.refill)
            cursor = 0
        }
        let start = cursor
        cursor += 8
        return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start, as: UInt64.self) }
    }
}
