/// Random numbers that nobody can guess, taken from OpenSSL some thousand bytes at a time: a number that is asked of the
/// kernel costs a system call, and each message has four. One thread's own.
package struct RandomPool: RandomNumberGenerator {
    private var bytes: [UInt8] = []
    private var cursor = 0
    /// The state of splitmix64 where the numbers must come again; nil draws from the system.
    private var repeatable: UInt64?
    private static let refill = 4_096

    package init() {}

    /// The same `seed`, the same numbers: for simulation and nothing else, since anybody can guess what follows.
    package init(repeatable seed: UInt64) { repeatable = seed }

    package mutating func next() -> UInt64 {
        if let state = repeatable {
            let stepped = state &+ 0x9e37_79b9_7f4a_7c15
            repeatable = stepped
            var mixed = stepped
            mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return mixed ^ (mixed >> 31)
        }
        if cursor + 8 > bytes.count {
            bytes = Cryptography.random(Self.refill)
            cursor = 0
        }
        let start = cursor
        cursor += 8
        return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start, as: UInt64.self) }
    }

    /// `count` bytes.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(count + 8)
        while result.count < count {
            withUnsafeBytes(of: next()) { result.append(contentsOf: $0) }
        }
        return Array(result[..<count])
    }
}
