internal import FerryIO

/// All chance of one run, drawn from its seed.
struct Dice: RandomNumberGenerator {
    private var pool: RandomPool

    init(seed: UInt64) { pool = RandomPool(repeatable: seed &* 0xd134_2543_de82_ef95 &+ 1) }

    mutating func next() -> UInt64 { pool.next() }

    /// 0..<limit; `limit` at least 1.
    mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(max(1, limit))) }
    mutating func within(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }
    mutating func chance(_ perMille: Int) -> Bool { below(1000) < perMille }
    mutating func pick<Item>(_ items: [Item]) -> Item? { items.isEmpty ? nil : items[below(items.count)] }
    mutating func bytes(_ count: Int) -> [UInt8] { pool.bytes(count) }
}
