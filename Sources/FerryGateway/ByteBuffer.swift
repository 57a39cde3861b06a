/// Bytes on their way in or out of one connection: memory is held only while there are some. A trivial value, so that it
/// can live in the slab.
///
/// Invariant: `base` is nil, or points to `capacity` bytes of which `start..<end` are initialized; the one value in the
/// slab owns it, and who frees the slot calls `release` first.
struct ByteBuffer: BitwiseCopyable {
    private var base: UnsafeMutableRawPointer?
    private var start: Int32 = 0
    private var end: Int32 = 0
    private var capacity: Int32 = 0

    var count: Int { Int(end - start) }
    var isEmpty: Bool { start == end }
    /// Memory that it takes now.
    var heldBytes: Int { base == nil ? 0 : Int(capacity) }

    var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base.map { $0 + Int(start) }, count: count)
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        reserve(bytes.count).copyMemory(from: source, byteCount: bytes.count)
        end += Int32(bytes.count)
    }

    mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

    /// Lets `write` put up to `count` bytes at the end; it answers how many it wrote.
    mutating func append(upTo count: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        let room = UnsafeMutableRawBufferPointer(start: reserve(count), count: count)
        end += Int32(min(count, max(0, write(room))))
    }

    /// Drops the first `count` bytes.
    mutating func consume(_ count: Int) {
        start += Int32(min(max(0, count), self.count))
        if isEmpty { release() }
    }

    mutating func release() {
        base?.deallocate()
        self = ByteBuffer()
    }

    private mutating func reserve(_ count: Int) -> UnsafeMutableRawPointer {
        let held = self.count
        if let base, Int(capacity - end) >= count { return base + Int(end) }
        let wanted = max(256, held + count)
        let grown = held == 0 ? wanted : max(wanted, Int(capacity) * 2)
        // Buffers are bounded by the high-water mark plus one frame, far below this type's range.
        let memory = UnsafeMutableRawPointer.allocate(byteCount: grown, alignment: 16)
        if let base {
            memory.copyMemory(from: base + Int(start), byteCount: held)
            base.deallocate()
        }
        base = memory
        start = 0
        end = Int32(held)
        capacity = Int32(grown)
        return memory + held
    }
}
