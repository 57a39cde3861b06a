private import FerryCore
internal import FerryRouting
private import FerryTestSupport
internal import Testing

struct TagExpansionTests {
    private static let start = Instant(milliseconds: 5_000)

    private static func cid(_ number: Int) -> CID { CID(Identifier128(high: 5, low: UInt64(number))) }

    private static func content() throws -> ListTask {
        ListTask(
            app: try #require(AppID("app-1")),
            taskID: TaskID(Identifier128(high: 1, low: 2), monthDay: 1231, kind: .app), createdAt: start,
            timeToLive: 60_000, payloadBytes: 70, hasAlert: true, request: Identifier128(high: 3, low: 4),
            content: Identifier128(high: 5, low: 6))
    }

    private static func expansion(_ sizes: [Int], speed: Int64 = 0, shards: Int = 1) throws -> TagExpansion {
        var expansion = TagExpansion(try content(), speed: speed, shards: shards)
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
        var again = TagExpansion(first.content, speed: 0, shards: 2)
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

    @Test func `When its time is over the rest has its turn at once, however slow it was`() throws {
        var expansion = try Self.expansion([300], speed: 1)
        let end = Self.start + ListTask.longestExpansion
        #expect(expansion.endsAt == end)
        expansion.settle(expansion.slice(limit: 100, now: Self.start), now: Self.start)
        #expect(expansion.slice(limit: 100, now: Self.start).count == 0)
        #expect(try #require(expansion.nextAt(now: Self.start)) <= end)
        #expect(expansion.nextAt(now: end) == end)
        #expect(expansion.slice(limit: 100, now: end).count == 100)
    }

    @Test(arguments: [0, 1, 4, 5, 6, 10, 11])
    func `A partition with more devices than a row holds is in pieces, and nobody is left out`(count: Int) throws {
        let cids = (0..<count).map { Self.cid($0) }
        let parts = TagExpansion.parts(of: Partition(index: 3), cids, most: 5)
        #expect(parts.count == (count + 4) / 5)
        #expect(parts.flatMap(\.cids) == cids)
        #expect(parts.map { Int($0.piece) } == Array(0..<parts.count))
        // Each comes back under its own name.
        var expansion = TagExpansion(try Self.content(), speed: 0, shards: 1)
        for part in parts {
            let key = TagExpansion.rowKey(expansion.task.value, piece: part.piece)
            let name = try #require(TagExpansion.read(key: key))
            #expect(name.task == expansion.task.value && name.piece == part.piece)
            expansion.add(TagExpansion.Part(partition: part.partition, piece: name.piece, cids: part.cids, done: 0))
        }
        if let last = parts.last {
            expansion.restore(last.partition, piece: last.piece, done: last.cids.count)
            #expect(expansion.remaining == count - last.cids.count)
        }
        #expect(TagExpansion.read(key: expansion.task.value.bytes + [0, 0]) == nil)
        #expect(TagExpansion.read(key: expansion.task.value.bytes + [1]) == nil)
    }

    @Test func `A row holds the devices that it is said to`() throws {
        let most = TagExpansion.mostTargets(inRowOf: 1 << 20)
        let part = TagExpansion.Part(
            partition: Partition(index: 0), cids: (0..<most).map { Self.cid($0) }, done: 0)
        #expect(TagExpansion.audienceRow(part, of: try Self.content(), speed: .max).count <= 1 << 20)
    }

    @Test func `Rows come back as they were written, and no other bytes do`() throws {
        let expansion = try Self.expansion([3])
        let row = TagExpansion.audienceRow(expansion.parts[0], of: expansion.content, speed: 70)
        let audience = try #require(TagExpansion.audience(row))
        #expect(audience.cids == expansion.parts[0].cids)
        #expect(audience.content == expansion.content)
        #expect(audience.speed == 70)
        for end in 0..<row.count { #expect(TagExpansion.audience(Array(row[..<end])) == nil) }
        #expect(TagExpansion.audience(row + [0]) == nil)
        let leftOut = [
            TagExpansion.Cursor.LeftOut(place: 2, seq: Seq(7), reason: .deviceFull),
            TagExpansion.Cursor.LeftOut(place: 299, seq: Seq(.max), reason: .filtered),
        ]
        for cursor in [
            TagExpansion.Cursor(done: 0, first: 0, at: Self.start, leftOut: []),
            TagExpansion.Cursor(done: 300, first: 2, at: Self.start, leftOut: leftOut),
        ] {
            let row = TagExpansion.cursorRow(cursor)
            #expect(TagExpansion.cursor(row) == cursor)
            #expect(TagExpansion.cursor(row + [0]) == nil)
            for end in 0..<row.count { #expect(TagExpansion.cursor(Array(row[..<end])) == nil) }
        }
        // Somebody who was not in the step.
        for place in [1, 300] {
            let damaged = TagExpansion.Cursor(
                done: 300, first: 2, at: Self.start,
                leftOut: [TagExpansion.Cursor.LeftOut(place: place, seq: Seq(7), reason: .deviceFull)])
            #expect(TagExpansion.cursor(TagExpansion.cursorRow(damaged)) == nil)
        }
    }
}
