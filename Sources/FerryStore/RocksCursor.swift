internal import CRocksDB

/// A walk over all rows of an open database, in the order of the engine's keys.
struct RocksCursor: ~Copyable {
    private let database: RocksDatabase
    private let iterator: OpaquePointer?

    init(_ database: RocksDatabase) {
        self.database = database
        iterator = rocksdb_create_iterator(database.handles.database, database.handles.read)
    }

    deinit { rocksdb_iter_destroy(iterator) }

    /// To the first row at or after `key`; whether there is one that can be read.
    func seek(_ key: some Sequence<UInt8>) -> Bool {
        Array(key).withUnsafeBytes {
            rocksdb_iter_seek(iterator, $0.bindMemory(to: CChar.self).baseAddress, $0.count)
        }
        return rocksdb_iter_valid(iterator) != 0
    }

    /// To the next row; whether there is one that can be read.
    func next() -> Bool {
        rocksdb_iter_next(iterator)
        return rocksdb_iter_valid(iterator) != 0
    }

    /// Why there is no row; nil at the end of all rows.
    func failure() -> StoreFailure? {
        var error: UnsafeMutablePointer<CChar>?
        rocksdb_iter_get_error(iterator, &error)
        return error == nil ? nil : RocksDatabase.failure("read the tables", error)
    }

    /// Of the row that was found.
    var key: [UInt8] {
        var count = 0
        return [UInt8](UnsafeRawBufferPointer(start: rocksdb_iter_key(iterator, &count), count: count))
    }

    var value: [UInt8] {
        var count = 0
        return [UInt8](UnsafeRawBufferPointer(start: rocksdb_iter_value(iterator, &count), count: count))
    }
}

/// A key of the engine as a number, so that a key between two others can be named.
struct KeyNumber: Equatable {
    /// More than any key has.
    static let bytes = 40
    private var digits: [UInt8]

    init(_ key: some Sequence<UInt8>) {
        digits = Array(key.prefix(Self.bytes))
        digits += repeatElement(0, count: Self.bytes - digits.count)
    }

    /// The shortest key that this number stands for: others follow it at once.
    var key: ArraySlice<UInt8> { digits[..<((digits.lastIndex { $0 != 0 } ?? -1) + 1)] }

    /// `self` + 2^`bit`; nil where that is beyond all keys.
    func adding(bit: Int) -> KeyNumber? {
        var sum = self
        var index = Self.bytes - 1 - bit / 8
        var carry = 1 << (bit % 8)
        while carry > 0 {
            guard index >= 0 else { return nil }
            let digit = Int(sum.digits[index]) + carry
            sum.digits[index] = UInt8(truncatingIfNeeded: digit)
            carry = digit >> 8
            index -= 1
        }
        return sum
    }

    /// Half-way to `other`, rounded down.
    func middle(to other: KeyNumber) -> KeyNumber {
        var result = self
        var carry = 0
        for index in (0..<Self.bytes).reversed() {
            carry += Int(digits[index]) + Int(other.digits[index])
            result.digits[index] = UInt8(truncatingIfNeeded: carry)
            carry >>= 8
        }
        // `carry` is the sum's highest bit: the half takes it back in.
        for index in 0..<Self.bytes {
            let digit = carry << 8 + Int(result.digits[index])
            result.digits[index] = UInt8(truncatingIfNeeded: digit >> 1)
            carry = digit & 1
        }
        return result
    }
}
