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

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        reserve(bytes.count).copyMemory(from: source, byteCount: bytes.count)
        head?.pointee.end += Int32(bytes.count)
    }

    mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

    /// Lets `write` put up to `count` bytes at the end; it answers how many it wrote.
    mutating func append(upTo count: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        let room = UnsafeMutableRawBufferPointer(start: reserve(count), count: count)
        head?.pointee.end += Int32(min(count, max(0, write(room))))
        if isEmpty { release() }
    }

    /// Drops the first `count` bytes.
    mutating func consume(_ count: Int) {
        head?.pointee.start += Int32(min(max(0, count), self.count))
        if isEmpty { release() }
    }

    mutating func release() {
        block?.deallocate()
        block = nil
    }

    private mutating func reserve(_ count: Int) -> UnsafeMutableRawPointer {
        let held = self.count
        if let block, let head, Int(head.pointee.capacity - head.pointee.end) >= count {
            return block + Self.headBytes + Int(head.pointee.end)
        }
        let wanted = max(Self.smallest, held + count)
        // Buffers are bounded by the high-water mark plus one frame, far below this type's range.
        let grown = held == 0 ? wanted : max(wanted, Int(head?.pointee.capacity ?? 0) * 2)
        let fresh = UnsafeMutableRawPointer.allocate(byteCount: Self.headBytes + grown, alignment: 16)
        if let source = bytes.baseAddress { (fresh + Self.headBytes).copyMemory(from: source, byteCount: held) }
        block?.deallocate()
        fresh.initializeMemory(as: Head.self, to: Head(start: 0, end: Int32(held), capacity: Int32(grown)))
        block = fresh
        return fresh + Self.headBytes + held
    }
}
