internal import FerryCore

/// Walks the batches of one segment's bytes and judges what follows the last whole one.
struct SegmentScan {
    /// What stands at a place where a batch may start.
    enum Step {
        /// The offset of the batch and the place of its records.
        case batch(BatchHeader, at: Int, records: Range<Int>)
        /// Nothing was written from here on.
        case end
        /// No whole batch, though something was written. Ends the walk.
        case broken(Tail)
    }

    enum Tail: Equatable {
        /// What a crash leaves of the one batch that was not yet synced: nothing of it was answered.
        case torn
        /// Batches of later numbers stand behind, so what cannot be read here had been synced.
        case damaged
    }

    let bytes: UnsafeRawBufferPointer
    let salt: UInt64
    let segment: UInt32
    /// Where the next batch starts; when the walk ended, how far the segment is whole.
    private(set) var offset = SegmentHeader.bytes
    /// The number of the next batch.
    private(set) var number: UInt64

    init(_ bytes: UnsafeRawBufferPointer, salt: UInt64, segment: UInt32, firstBatch: UInt64) {
        self.bytes = bytes
        self.salt = salt
        self.segment = segment
        number = firstBatch
    }

    mutating func next() -> Step {
        if let header = BatchHeader.decode(bytes, at: offset, salt: salt, segment: segment), isWhole(header) {
            let start = offset
            offset += header.totalBytes
            number = header.number &+ 1
            let first = start + BatchHeader.bytes
            return .batch(header, at: start, records: first..<first + Int(header.recordBytes))
        }
        if isZero(from: offset) { return .end }
        return .broken(laterBatch(from: offset) == nil ? .torn : .damaged)
    }

    /// Goes on at the next readable batch, as far as there is one; answers whether there is.
    mutating func skipDamage() -> Bool {
        guard let next = laterBatch(from: offset) else { return false }
        number = next.header.number
        offset = next.offset
        return true
    }

    private func isWhole(_ header: BatchHeader) -> Bool {
        guard header.totalBytes <= bytes.count - offset else { return false }
        // A hole bears the number before that of the batch behind it.
        if header.kind == .hole { return header.number >= number }
        guard header.number == number else { return false }
        let start = offset + BatchHeader.bytes
        var rest = UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(header.recordBytes)])
        var count: UInt32 = 0
        while !rest.isEmpty {
            guard let body = RecordCodec.body(of: rest) else { return false }
            rest = UnsafeRawBufferPointer(rebasing: rest[(RecordCodec.headerBytes + body.count)...])
            count += 1
        }
        return count == header.recordCount
    }

    private func isZero(from start: Int) -> Bool {
        guard start < bytes.count else { return true }
        var cursor = start
        while cursor % 8 != 0, cursor < bytes.count {
            if bytes[cursor] != 0 { return false }
            cursor += 1
        }
        while cursor + 8 <= bytes.count {
            if bytes.loadUnaligned(fromByteOffset: cursor, as: UInt64.self) != 0 { return false }
            cursor += 8
        }
        return bytes[cursor...].allSatisfy { $0 == 0 }
    }

    /// The first batch header from `start` on whose number is above the one that should have stood there.
    private func laterBatch(from start: Int) -> (header: BatchHeader, offset: Int)? {
        var cursor = start
        while cursor <= bytes.count - BatchHeader.bytes {
            if let header = BatchHeader.decode(bytes, at: cursor, salt: salt, segment: segment),
                header.number > number
            {
                return (header, cursor)
            }
            cursor += BatchHeader.alignment
        }
        return nil
    }
}
