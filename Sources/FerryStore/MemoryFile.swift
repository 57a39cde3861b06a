/// A file of `MemoryDisk`: as the process sees it, and as it was at its last sync.
///
/// Bytes beyond `current.count` and below `size` are zero.
struct MemoryFile {
    static let sector = 512
    var size: Int
    var current: [UInt8] = []
    var durable: [UInt8] = []
    /// Sectors that were written since the last sync.
    var dirty: Set<Int> = []
    /// Sectors that a failed sync left in either state; only writing them again helps.
    var doubtful: Set<Int> = []

    init(size: Int) { self.size = size }

    mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        guard !bytes.isEmpty else { return }
        let end = offset + bytes.count
        if current.count < end {
            current.append(contentsOf: repeatElement(0, count: end - current.count))
        }
        current.withUnsafeMutableBytes {
            UnsafeMutableRawBufferPointer(rebasing: $0[offset..<end]).copyMemory(from: bytes)
        }
        size = max(size, end)
        dirty.formUnion(offset / Self.sector...(end - 1) / Self.sector)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        let count = max(0, min(buffer.count, size - offset))
        let held = max(0, min(count, current.count - offset))
        if held > 0 {
            current.withUnsafeBytes {
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + held]))
            }
        }
        for index in held..<count { buffer[index] = 0 }
        return count
    }

    mutating func resize(to bytes: Int) {
        size = bytes
        if current.count > bytes { current.removeLast(current.count - bytes) }
        if durable.count > bytes { durable.removeLast(durable.count - bytes) }
    }

    mutating func sync(remembers: Bool) {
        if remembers { copy(dirty, from: current, to: &durable) }
        doubtful.subtract(dirty)
        dirty = []
    }

    mutating func failSync() {
        doubtful.formUnion(dirty)
        dirty = []
    }

    func afterCrash(_ fate: MemoryDisk.Fate, salt: Int) -> MemoryFile {
        var after = MemoryFile(size: size)
        after.durable = durable
        copy(dirty.union(doubtful).filter { fate.keeps($0 ^ salt) }, from: current, to: &after.durable)
        after.current = after.durable
        return after
    }

    private func copy(_ sectors: Set<Int>, from source: [UInt8], to target: inout [UInt8]) {
        for sector in sectors {
            let start = sector * Self.sector
            let end = min(start + Self.sector, source.count)
            guard start < end else { continue }
            if target.count < end {
                target.append(contentsOf: repeatElement(0, count: end - target.count))
            }
            target.replaceSubrange(start..<end, with: source[start..<end])
        }
    }
}
