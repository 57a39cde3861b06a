private import FerryCore
private import FerryRouting
internal import FerryTestSupport
internal import Testing

struct WakeWalkTests {
    private static func cid(_ number: UInt64) -> CID { CID(Identifier128(high: number, low: 7)) }

    @Test(arguments: Effort.seeds(30))
    func `However often it is broken off, every device has its turn, and none after it was settled`(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        let partitions = 6
        let devices = (0..<40).map { number in
            (cid: Self.cid(UInt64(number)), local: Int.random(in: 0..<partitions, using: &random))
        }
        var walk = WakeWalk()
        var placed = 0
        var turns: [CID: Int] = [:]
        var steps: [(cursor: CID?, cids: [CID])] = []
        var isThrough = false
        while walk.done < partitions {
            if Int.random(in: 0..<30, using: &random) == 0, let found = WakeWalk(row: walk.row) {
                // A crash: what is not settled is done again.
                for (cid, local) in devices {
                    if walk.hasSettled(cid, local: local) { #expect(turns[cid] != nil) } else { turns[cid] = nil }
                }
                (walk, steps, isThrough) = (found, [], false)
            }
            placed = min(partitions, placed + Int.random(in: 0...1, using: &random))
            walk.beginWave(upTo: placed)
            guard walk.isInWave else { continue }
            if isThrough, steps.isEmpty {
                walk.endWave()
                isThrough = false
                continue
            }
            if !isThrough {
                let cursor = walk.cursor
                let behind = devices.filter { device in cursor.map { device.cid > $0 } ?? true }
                let slice = behind.prefix(Int.random(in: 1...9, using: &random))
                isThrough = slice.count == behind.count
                for device in slice where walk.wave.contains(device.local) { turns[device.cid, default: 0] += 1 }
                let last = isThrough ? nil : slice.last?.cid
                if let last { walk.move(to: last) }
                steps.append((last, slice.map(\.cid)))
            }
            while !steps.isEmpty, Bool.random(using: &random) { walk.settle(upTo: steps.removeFirst().cursor) }
        }
        #expect(devices.allSatisfy { turns[$0.cid] == 1 })
    }

    @Test func `A row reads back as it was written, and no other bytes read`() {
        var walk = WakeWalk()
        walk.beginWave(upTo: 1_024)
        walk.move(to: Self.cid(9))
        walk.settle(upTo: Self.cid(8))
        let found = WakeWalk(row: walk.row)
        #expect(found?.cursor == Self.cid(8))
        #expect(found?.wave == 0..<1_024)
        for length in 0..<walk.row.count where length != 4 {
            #expect(WakeWalk(row: Array(walk.row.prefix(length))) == nil)
        }
        #expect(WakeWalk(row: walk.row + [0]) == nil)
        #expect(WakeWalk(row: [1, 5, 4]) == nil)
        #expect(WakeWalk(row: [1, 0, 0x81, 0x08]) == nil)
        let key = WakeWalk.key(Identifier128(high: 1, low: 2), shards: 256)
        #expect(WakeWalk.read(key: key)?.shards == 256)
        #expect(WakeWalk.read(key: key)?.task == Identifier128(high: 1, low: 2))
        #expect(WakeWalk.read(key: Array(key.dropLast())) == nil)
        #expect(WakeWalk.read(key: WakeWalk.key(Identifier128(high: 1, low: 2), shards: 0)) == nil)
    }
}
