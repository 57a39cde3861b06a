/// Bytes on their way in or out of one connection: memory is held only while there are some, and an empty one is a null
/// pointer. A trivial value, so that it can live in the slab.
///
/// Invariant: `block` is nil, or points to a `Head` and behind it `capacity` bytes of which `start..<end` are initialized;
/// the one value in the slab owns it, and who frees the slot calls `release` first.
struct ByteBuffer: BitwiseCopyable {
    private struct Head: BitwiseCopyable {
        var start: Int32
        var end: Int32
        var capacity: Int32
    }

    private var block: UnsafeMutableRawPointer?
    private static let headBytes = 16
    private static let smallest = 256 - headBytes
    /// Of a block that `SpareBlocks` deals with. All blocks of this capacity are of that size, whoever made them.
    private static let spareCapacity = SpareBlocks.blockBytes - headBytes
    /// Bytes that it holds at most; far above what any connection should come to.
    static let largest = 1 << 30

    private var head: UnsafeMutablePointer<Head>? { block?.assumingMemoryBound(to: Head.self) }

    var count: Int { head.map { Int($0.pointee.end - $0.pointee.start) } ?? 0 }
    var isEmpty: Bool { count == 0 }
    /// Memory that it takes now.
    var heldBytes: Int { head.map { Self.headBytes + Int($0.pointee.capacity) } ?? 0 }

    var bytes: UnsafeRawBufferPointer {
        guard let block, let head else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let start = Int(head.pointee.start)
        return UnsafeRawBufferPointer(start: block + Self.headBytes + start, count: Int(head.pointee.end) - start)
    }

    /// False, and nothing appended, when it would be more than `largest`.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return true }
        guard hasRoom(for: bytes.count) else { return false }
        reserve(bytes.count).copyMemory(from: source, byteCount: bytes.count)
        head?.pointee.end += Int32(bytes.count)
        return true
    }

    mutating func append(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { append($0) } }

    /// The same, where a buffer that begins takes its memory from `spare` if it suffices.
    mutating func append(
        upTo count: Int, from spare: inout SpareBlocks, _ write: (UnsafeMutableRawBufferPointer) -> Int
    ) -> Bool {
        if block == nil, count <= Self.spareCapacity {
            block = Self.begin(spare.take(), capacity: Self.spareCapacity)
        }
        return append(upTo: count, write)
    }

    /// Lets `write` put up to `count` bytes at the end; it answers how many it wrote. False, and `write` not called, when
    /// `count` would be more than `largest`.
    mutating func append(upTo count: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) -> Bool {
        guard hasRoom(for: count) else { return false }
        let room = UnsafeMutableRawBufferPointer(start: reserve(count), count: count)
        head?.pointee.end += Int32(min(count, max(0, write(room))))
        if isEmpty { release() }
        return true
    }

    private func hasRoom(for more: Int) -> Bool { more >= 0 && more <= Self.largest - count }

    /// Drops the first `count` bytes.
    mutating func consume(_ count: Int) {
        head?.pointee.start += Int32(min(max(0, count), self.count))
        if isEmpty { release() }
    }

    /// The same; memory that can be used again goes to `spare`.
    mutating func consume(_ count: Int, into spare: inout SpareBlocks) {
        guard count >= self.count, let block, let head, Int(head.pointee.capacity) == Self.spareCapacity else {
            return consume(count)
        }
        spare.giveBack(block)
        self.block = nil
    }

    mutating func release() {
        block?.deallocate()
        block = nil
    }

    private static func begin(_ block: UnsafeMutableRawPointer, capacity: Int) -> UnsafeMutableRawPointer {
        block.initializeMemory(as: Head.self, to: Head(start: 0, end: 0, capacity: Int32(capacity)))
        return block
    }

    private mutating func reserve(_ count: Int) -> UnsafeMutableRawPointer {
        let held = self.count
        if let block, let head, Int(head.pointee.capacity - head.pointee.end) >= count {
            return block + Self.headBytes + Int(head.pointee.end)
        }
        let wanted = max(Self.smallest, held + count)
        let doubled = min(Self.largest, Int(head?.pointee.capacity ?? 0) * 2)
        let grown = held == 0 ? wanted : max(wanted, doubled)
        let fresh = UnsafeMutableRawPointer.allocate(byteCount: Self.headBytes + grown, alignment: 16)
        if let source = bytes.baseAddress { (fresh + Self.headBytes).copyMemory(from: source, byteCount: held) }
        block?.deallocate()
        fresh.initializeMemory(as: Head.self, to: Head(start: 0, end: Int32(held), capacity: Int32(grown)))
        block = fresh
        return fresh + Self.headBytes + held
    }
}
