/// Blocks of one size that buffers gave back, for buffers that begin: in one turn many connections have something to say for a
/// moment, more than the allocator keeps at hand.
///
/// Invariant: `first` is nil or a block of `blockBytes` bytes that nobody else knows; its first word is the next such block.
struct SpareBlocks: ~Copyable {
    private var first: UnsafeMutableRawPointer?
    private(set) var count = 0
    /// Holds a push of some 400 bytes with what belongs to it.
    static let blockBytes = 512
    static let alignment = 16
    private static let most = 256

    init() {}

    deinit {
        var next = first
        while let block = next {
            next = block.load(as: UnsafeMutableRawPointer?.self)
            block.deallocate()
        }
    }

    /// A block of `blockBytes`; the caller owns it.
    mutating func take() -> UnsafeMutableRawPointer {
        guard let block = first else {
            return .allocate(byteCount: Self.blockBytes, alignment: Self.alignment)
        }
        first = block.load(as: UnsafeMutableRawPointer?.self)
        count -= 1
        return block
    }

    /// `block` is of `blockBytes`, and the caller's no more.
    mutating func giveBack(_ block: UnsafeMutableRawPointer) {
        guard count < Self.most else { return block.deallocate() }
        block.storeBytes(of: first, as: UnsafeMutableRawPointer?.self)
        first = block
        count += 1
    }
}
