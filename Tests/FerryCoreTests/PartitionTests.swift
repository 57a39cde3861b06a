private import FerryCore
private import FerryTestSupport
internal import Testing

struct PartitionTests {
    private static func partition(_ high: UInt64, _ low: UInt64) -> Int {
        Partition(of: CID(Identifier128(high: high, low: low))).index
    }

    /// Data folders depend on them: a change here loses every `seq` line there is.
    @Test func `A device's partition is the one that folders in the field have`() {
        let golden: [(high: UInt64, low: UInt64, index: Int)] = [
            (0x0, 0x0, 0),
            (0x0, 0x1, 485),
            (0x1, 0x0, 485),
            (0x1, 0x1, 0),
            (0x11223344556677, 0x8899aabbccddeeff, 677),
            (0xffffffffffffffff, 0x0, 379),
            (0xdeadbeefcafef00d, 0x123456789abcdef, 206),
        ]
        for entry in golden { #expect(Self.partition(entry.high, entry.low) == entry.index) }
    }

    /// How far the fullest and the emptiest partition are from the mean, as parts of it.
    private static func spread(_ indices: [Int]) -> (least: Double, most: Double) {
        var counts = [Int](repeating: 0, count: Limits.partitions)
        for index in indices { counts[index] += 1 }
        let mean = Double(indices.count) / Double(Limits.partitions)
        return (Double(counts.min() ?? 0) / mean, Double(counts.max() ?? 0) / mean)
    }

    @Test func `Devices spread evenly, whatever made their ids`() {
        var random = SplitMix(seed: 3)
        let count = 200_000 as UInt64
        let ways: [(name: String, indices: [Int])] = [
            ("random", (0..<count).map { _ in Self.partition(random.next(), random.next()) }),
            ("counted low", (0..<count).map { Self.partition(5, $0) }),
            ("counted high", (0..<count).map { Self.partition($0, 5) }),
            ("counted in steps of 1,024", (0..<count).map { Self.partition(0, $0 * 1_024) }),
            ("counted from the top", (0..<count).map { Self.partition($0 << 40, 0) }),
        ]
        for way in ways {
            let spread = Self.spread(way.indices)
            // 195 a partition: five standard deviations of chance are 36 %.
            #expect(spread.least > 0.6 && spread.most < 1.4, "\(way.name): \(spread)")
        }
    }

    @Test func `Every shard owns an equal share of the partitions`() {
        for shards in [1, 2, 3, 8, 64] {
            var owned = [Int](repeating: 0, count: shards)
            var random = SplitMix(seed: 4)
            for _ in 0..<2_000 {
                owned[Partition(of: CID(Identifier128(high: random.next(), low: 0))).owner(among: shards)] += 1
            }
            #expect(owned.allSatisfy { $0 > 2_000 / shards / 3 })
        }
    }
}
