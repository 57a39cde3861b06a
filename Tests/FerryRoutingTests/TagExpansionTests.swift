private import FerryCore
internal import FerryRouting
private import FerryTestSupport
internal import Testing

struct TagExpansionTests {
    private static let start = Instant(milliseconds: 5_000)

    private static func cid(_ number: Int) -> CID { CID(Identifier128(high: 5, low: UInt64(number))) }

    private static func expansion(_ sizes: [Int], speed: Int64 = 0, shards: Int = 1) throws -> TagExpansion {
        var expansion = TagExpansion(
            task: TaskID(Identifier128(high: 1, low: 2), monthDay: 1231, kind: .app), app: try #require(AppID("app-1")),
            speed: speed, shards: shards)
        for (place, size) in sizes.enumerated() {
            expansion.add(
                TagExpansion.Part(
                    partition: Partition(index: place), cids: (0..<size).map { cid(place * 1_000 + $0) }, done: 0))
        }
        return expansion
    }

    private static func names(_ slice: TagExpansion.Slice, _ expansion: TagExpansion) -> [CID] {
        slice.runs.flatMap { run in run.range.map { expansion.parts[run.part].cids[$0] } }
    }

    @Test(arguments: [1, 2, 3, 7, 64])
    func `Slices cover each device once, however they are cut, and those that came to nothing come again`(
        limit: Int
    ) throws {
        var expansion = try Self.expansion([3, 0, 1, 5, 0, 0, 20, 1])
        let all = expansion.parts.flatMap(\.cids)
        var seen: [CID] = []
        var step = 0
        while true {
            let slice = expansion.slice(limit: limit, now: Self.start)
            guard slice.count > 0 else { break }
            #expect(slice.count <= limit)
            step += 1
            // The disk refuses every third.
            if step % 3 == 0 { continue }
            seen += Self.names(slice, expansion)
            expansion.settle(slice, now: Self.start)
        }
        #expect(seen == all)
        #expect(expansion.isOver)
        #expect(expansion.remaining == 0)
        #expect(expansion.nextAt(now: Self.start) == nil)
    }

    @Test func `After a restart it goes on behind what its rows say`() throws {
        let first = try Self.expansion([4, 4])
        var again = TagExpansion(task: first.task, app: first.app, speed: 0, shards: 2)
        again.add(TagExpansion.Part(partition: Partition(index: 0), cids: first.parts[0].cids, done: 4))
        again.add(TagExpansion.Part(partition: Partition(index: 1), cids: first.parts[1].cids, done: 1))
        #expect(again.remaining == 3)
        let slice = again.slice(limit: 10, now: Self.start)
        #expect(Self.names(slice, again) == Array(first.parts[1].cids.dropFirst()))
        // A row that says more than there is.
        #expect(TagExpansion.Part(partition: Partition(index: 1), cids: [], done: 7).isOver)
    }

    @Test(arguments: [Int64(1), 10, 250, 1_000], [1, 2, 3])
    func `It is as fast as its part of the speed and never faster`(speed: Int64, shards: Int) throws {
        var expansion = try Self.expansion([5_000], speed: speed, shards: shards)
        var now = Self.start
        var random = SplitMix(seed: UInt64(speed))
        var sent = 0
        while now < Self.start + .seconds(60), !expansion.isOver {
            let slice = expansion.slice(limit: 256, now: now)
            expansion.settle(slice, now: now)
            sent += slice.count
            let elapsed = Double((now - Self.start).inMilliseconds) / 1_000
            let most = Double(speed) / Double(shards) * elapsed
            #expect(Double(sent) <= most + max(1, Double(speed) / Double(shards)) + 1, "\(sent) after \(elapsed) s")
            // Wakes when told to, or a little late.
            let next = expansion.nextAt(now: now) ?? now
            now = max(now, next) + .milliseconds(Int64(random.next() % 20))
        }
        let elapsed = Double((now - Self.start).inMilliseconds) / 1_000
        #expect(expansion.isOver || Double(sent) >= Double(speed) / Double(shards) * elapsed * 0.7 - 1)
    }

    @Test func `It wakes at the moment at which the next is due`() throws {
        var expansion = try Self.expansion([10], speed: 4)
        for number in 0..<10 {
            let now = Self.start + .milliseconds(Int64(number * 250))
            if number > 0 {
                #expect(expansion.slice(limit: 9, now: now + .milliseconds(-1)).count == 0)
            }
            #expect(expansion.nextAt(now: Self.start) ?? now <= now)
            let slice = expansion.slice(limit: 9, now: now)
            #expect(slice.count == 1)
            expansion.settle(slice, now: now)
        }
        #expect(expansion.isOver)
    }

    @Test func `Rows come back as they were written, and no other bytes do`() throws {
        let expansion = try Self.expansion([3])
        let row = TagExpansion.audienceRow(expansion.parts[0], task: expansion.task, app: expansion.app, speed: 70)
        let audience = try #require(TagExpansion.audience(row))
        #expect(audience.cids == expansion.parts[0].cids)
        #expect(audience.task == expansion.task)
        #expect(audience.app == expansion.app)
        #expect(audience.speed == 70)
        for end in 0..<row.count { #expect(TagExpansion.audience(Array(row[..<end])) == nil) }
        #expect(TagExpansion.audience(row + [0]) == nil)
        for done in [0, 1, 300] {
            let cursor = TagExpansion.cursorRow(done)
            #expect(TagExpansion.cursor(cursor) == done)
            #expect(TagExpansion.cursor(cursor + [0]) == nil)
            #expect(TagExpansion.cursor(Array(cursor.dropLast())) == nil)
        }
    }
}
