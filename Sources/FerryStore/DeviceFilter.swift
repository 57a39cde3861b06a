internal import FerryCore

/// Which devices may be in one file of the timeline: a Bloom filter in blocks of 64 bytes, so that a question costs one
/// small read a file. It may say yes for a device that is not there (about one in a hundred when the file is full), never no
/// for one that is. Each block ends in a checksum; a block that fails it says yes.
struct DeviceFilter {
    static let blockBytes = 64
    private static let bitsPerBlock: UInt64 = 60 * 8
    private static let probes = 6

    private var bytes: [UInt8]
    private var lastDevice: CID?

    /// For a file of `fileBytes`: one device in 64 bytes of facts at most, 12 bits each.
    init(fileBytes: Int) { bytes = Array(repeating: 0, count: Self.encodedBytes(fileBytes: fileBytes)) }

    /// Of the sidecar of a file of `fileBytes`.
    static func encodedBytes(fileBytes: Int) -> Int {
        max(1, fileBytes / 64 * 12 / Int(bitsPerBlock)) * blockBytes
    }

    mutating func insert(_ device: CID) {
        if let lastDevice, lastDevice == device { return }
        lastDevice = device
        let hash = Self.hash(device)
        let block = Self.block(hash, of: bytes.count / Self.blockBytes) * Self.blockBytes
        bytes.withUnsafeMutableBytes { bytes in
            let own = UnsafeMutableRawBufferPointer(rebasing: bytes[block..<block + Self.blockBytes])
            var bits = hash.low
            for _ in 0..<Self.probes {
                let bit = Int(bits % Self.bitsPerBlock)
                own[bit / 8] |= 1 << UInt8(bit % 8)
                bits = bits / Self.bitsPerBlock
            }
        }
    }

    /// The sidecar file.
    func encoded() -> [UInt8] {
        var encoded = bytes
        for start in stride(from: 0, to: encoded.count, by: Self.blockBytes) {
            let end = start + Self.blockBytes
            let sum = TimelineFormat.checksum(Array(encoded[start..<end - 4]), file: 0, offset: start)
            for index in 0..<4 {
                encoded[end - 4 + index] = UInt8(truncatingIfNeeded: sum >> UInt32(24 - 8 * index))
            }
        }
        return encoded
    }

    /// Where the device's block is in a sidecar of `fileBytes` bytes; nil for a file that is none.
    static func offset(of device: CID, fileBytes: Int) -> Int? {
        guard fileBytes >= blockBytes, fileBytes % blockBytes == 0 else { return nil }
        return block(hash(device), of: fileBytes / blockBytes) * blockBytes
    }

    /// Whether the device may be in the file whose sidecar has this block at `offset`.
    static func mayHold(_ device: CID, block: [UInt8], at offset: Int) -> Bool {
        guard block.count == blockBytes else { return true }
        let sum = TimelineFormat.checksum(Array(block[..<(blockBytes - 4)]), file: 0, offset: offset)
        for index in 0..<4
        where block[blockBytes - 4 + index] != UInt8(truncatingIfNeeded: sum >> UInt32(24 - 8 * index)) {
            return true
        }
        var bits = hash(device).low
        for _ in 0..<probes {
            let bit = Int(bits % bitsPerBlock)
            if block[bit / 8] & 1 << UInt8(bit % 8) == 0 { return false }
            bits = bits / bitsPerBlock
        }
        return true
    }

    private static func block(_ hash: Identifier128, of count: Int) -> Int { Int(hash.high % UInt64(count)) }

    /// Two finalizers of splitmix64, whatever made the id.
    private static func hash(_ device: CID) -> Identifier128 {
        func mix(_ value: UInt64) -> UInt64 {
            var mixed = value
            mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return mixed ^ (mixed >> 31)
        }
        let first = mix(device.value.high &+ 0x9e37_79b9_7f4a_7c15)
        return Identifier128(high: mix(first ^ device.value.low), low: mix(first &+ (device.value.low &* 3) &+ 1))
    }
}
