/// A shard's connections by index. Memory is touched only up to the most that were ever open at once.
struct ConnectionSlab: ~Copyable {
    let capacity: Int
    private let base: UnsafeMutablePointer<Connection>
    /// Slots that were in use at some time; all below are initialized.
    private(set) var highWater = 0
    private var free: [Int32] = []
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = max(1, capacity)
        base = .allocate(capacity: self.capacity)
    }

    deinit {
        for index in 0..<highWater {
            base[index].input.release()
            base[index].output.release()
        }
        base.deallocate()
    }

    /// `index` comes from `insert` or from a token that `index(of:)` accepted.
    subscript(index: Int) -> Connection {
        unsafeAddress {
            precondition(index >= 0 && index < highWater)
            return UnsafePointer(base + index)
        }
        unsafeMutableAddress {
            precondition(index >= 0 && index < highWater)
            return base + index
        }
    }

    /// Takes a slot; nil when all are taken.
    mutating func insert(_ connection: Connection) -> Int? {
        let index: Int
        var generation: UInt32 = 1
        if let reused = free.popLast() {
            index = Int(reused)
            generation = base[index].generation
        } else {
            guard highWater < capacity else { return nil }
            index = highWater
            (base + index).initialize(to: Connection())
            highWater += 1
        }
        base[index] = connection
        base[index].generation = generation
        count += 1
        return index
    }

    /// Frees a slot; its buffers are released, its descriptor is the caller's.
    mutating func remove(_ index: Int) {
        base[index].input.release()
        base[index].output.release()
        let generation = base[index].generation
        base[index] = Connection()
        base[index].generation = generation &+ 1
        free.append(Int32(index))
        count -= 1
    }

    /// What the poller and other shards call a connection: `generation << 32 | index`.
    func token(of index: Int) -> UInt64 { UInt64(self[index].generation) << 32 | UInt64(index) }

    /// The connection that a token names, if it is still that one.
    func index(of token: UInt64) -> Int? {
        let index = Int(token & 0xffff_ffff)
        guard index < highWater, base[index].kind != .free, base[index].generation == UInt32(token >> 32) else {
            return nil
        }
        return index
    }
}
