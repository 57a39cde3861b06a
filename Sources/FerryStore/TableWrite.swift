internal import FerryCore

/// A message's row in the queue.
struct MessageKey: Hashable, Sendable, BitwiseCopyable {
    var cid: CID
    var seq: Seq
}

/// Rows to be put and keys to be deleted, of any table, in any order. Of several puts the last holds; what is deleted stays
/// deleted, put or not. All of it lies in two arrays, since a segment brings in hundreds of thousands of rows.
struct TableWrite: Sendable {
    /// Lies in `storage`: the engine's key (the table's number first), then the value.
    private struct Change: BitwiseCopyable {
        /// The key's first 16 bytes as a number, where most keys differ.
        var high: UInt64 = 0
        var low: UInt64 = 0
        var start: Int
        var keyCount: UInt32
        /// Below 0 for a deletion.
        var valueCount: Int32
    }

    private var storage: [UInt8] = []
    private var changes: [Change] = []

    init() {}

    var isEmpty: Bool { changes.isEmpty }
    /// Of keys and values.
    var bytes: Int { storage.count }

    /// Room for so many more.
    mutating func reserve(rows: Int, bytes: Int) {
        changes.reserveCapacity(changes.count + rows)
        storage.reserveCapacity(storage.count + bytes)
    }

    mutating func put(_ table: Table, key: [UInt8], value: [UInt8]) {
        begin(table)
        storage += key
        endKey()
        storage += value
        endValue()
    }

    mutating func delete(_ table: Table, key: [UInt8]) {
        begin(table)
        storage += key
        endKey()
    }

    /// The row of a kept message.
    mutating func put(_ message: MessageKey, body: UnsafeRawBufferPointer) {
        begin(.queue)
        append(message)
        endKey()
        storage.append(contentsOf: body)
        endValue()
    }

    mutating func delete(_ message: MessageKey) {
        begin(.queue)
        append(message)
        endKey()
    }

    /// Visits the changes in the order of their keys, each key once; `value` is nil for a deletion. What it is lent ends with
    /// the call.
    func visit<Failure: Error>(
        _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer?) throws(Failure) -> Void
    ) throws(Failure) {
        try storage.lend { storage throws(Failure) in
            func key(_ change: Change) -> UnsafeRawBufferPointer {
                UnsafeRawBufferPointer(rebasing: storage[change.start..<change.start + Int(change.keyCount)])
            }
            func order(_ left: Change, _ right: Change) -> Int {
                if left.high != right.high { return left.high < right.high ? -1 : 1 }
                if left.low != right.low { return left.low < right.low ? -1 : 1 }
                return Self.compare(key(left), key(right))
            }
            let sorted = changes.sorted { left, right in
                let order = order(left, right)
                return order == 0 ? left.start < right.start : order < 0
            }
            var index = 0
            while index < sorted.count {
                var last = sorted[index]
                index += 1
                while index < sorted.count, order(last, sorted[index]) == 0 {
                    if last.valueCount >= 0 { last = sorted[index] }
                    index += 1
                }
                guard last.valueCount >= 0 else {
                    try visit(key(last), nil)
                    continue
                }
                let start = last.start + Int(last.keyCount)
                try visit(
                    key(last), UnsafeRawBufferPointer(rebasing: storage[start..<start + Int(last.valueCount)]))
            }
        }
    }

    private static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
        for index in 0..<min(left.count, right.count) where left[index] != right[index] {
            return left[index] < right[index] ? -1 : 1
        }
        return left.count - right.count
    }

    private mutating func begin(_ table: Table) {
        changes.append(Change(start: storage.count, keyCount: 0, valueCount: -1))
        storage.append(table.rawValue)
    }

    private mutating func append(_ message: MessageKey) {
        append(message.cid.value.high)
        append(message.cid.value.low)
        append(message.seq.rawValue)
    }

    private mutating func append(_ number: UInt64) {
        withUnsafeBytes(of: number.bigEndian) { storage.append(contentsOf: $0) }
    }

    private mutating func endKey() {
        let last = changes.count - 1
        let start = changes[last].start
        let count = storage.count - start
        changes[last].keyCount = UInt32(truncatingIfNeeded: count)
        changes[last].high = number(from: start)
        changes[last].low = number(from: start + 8)
    }

    private mutating func endValue() {
        let last = changes.count - 1
        let start = changes[last].start + Int(changes[last].keyCount)
        changes[last].valueCount = Int32(truncatingIfNeeded: storage.count - start)
    }

    /// Eight bytes, big-endian; zero stands for those that are not there.
    private func number(from start: Int) -> UInt64 {
        var number: UInt64 = 0
        for index in start..<start + 8 { number = number << 8 | UInt64(index < storage.count ? storage[index] : 0) }
        return number
    }
}
