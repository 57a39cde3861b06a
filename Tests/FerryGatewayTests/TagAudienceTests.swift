private import FerryAudience
private import FerryCore
private import FerryRouting
internal import Testing

@testable private import FerryGateway

struct TagAudienceTests {
    private static func task() throws -> ListTask {
        ListTask(
            app: try #require(AppID("app-1")),
            taskID: TaskID(Identifier128(high: 7, low: 1), monthDay: 1231, kind: .app),
            createdAt: Instant(milliseconds: 1), timeToLive: 1_000, payloadBytes: 5, hasAlert: false,
            request: Identifier128(high: 1, low: 1), content: Identifier128(high: 2, low: 1))
    }

    @Test func `An audience comes back from its row, and from no other bytes`() throws {
        let task = try Self.task()
        let expressions = [
            AudienceExpression([]), AudienceExpression(tag: "größte"),
            AudienceExpression([
                AudienceExpression.Condition(.phoneType, .not, ["ios"]),
                AudienceExpression.Condition(.customTag, .and, ["a", "b"]),
            ]),
        ]
        for expression in expressions {
            let row = TagAudience(task, expression, speed: 70).encoded
            let again = try #require(TagAudience(task, encoded: row))
            #expect(again.audience == expression)
            #expect(again.speed == 70)
            for end in 0..<row.count { #expect(TagAudience(task, encoded: Array(row[..<end])) == nil) }
            #expect(TagAudience(task, encoded: row + [0]) == nil)
        }
    }

    @Test func `A push to an audience takes no devices from other calls and outlives its ttl`() throws {
        let task = try Self.task()
        #expect(!task.isOpen)
        #expect(task.contentOverAt > task.createdAt + ListTask.longestExpansion)
    }

    private static func cid(_ number: Int) -> CID { CID(Identifier128(high: 5, low: UInt64(number))) }

    @Test func `A device is given up when it alone cannot be read, and later when none can`() {
        var troubles = TagTroubles()
        func tries(othersAnswer: Bool) -> Int {
            for count in 1...10_000 {
                troubles.note(.failed, Self.cid(1))
                if othersAnswer { troubles.note(.known, Self.cid(2)) }
                if troubles.isHopeless(Self.cid(1)) { return count }
            }
            return .max
        }
        let together = tries(othersAnswer: true)
        troubles.forget(Self.cid(1))
        #expect(troubles.isEmpty && !troubles.isHopeless(Self.cid(1)))
        let alone = tries(othersAnswer: false)
        #expect(together > 1 && alone > 10 * together && alone < 10_000)
        // Once it can be read all is forgotten.
        troubles.note(.known, Self.cid(1))
        #expect(troubles.isEmpty)
    }

    @Test func `Pushes of one app do not count against another`() throws {
        var work = TagWork()
        for (number, name) in ["app-1", "app-1", "app-2"].enumerated() {
            let task = ListTask(
                app: try #require(AppID(name)),
                taskID: TaskID(Identifier128(high: 7, low: UInt64(number)), monthDay: 1231, kind: .app),
                createdAt: Instant(milliseconds: 1), timeToLive: 1_000, payloadBytes: 5, hasAlert: false,
                request: Identifier128(high: 1, low: 1), content: Identifier128(high: 2, low: 1))
            work.begin(task, speed: 0, shards: 1)
            // One that is being fixed is one, not two.
            work.calls[task.taskID.value] = TagCall(
                order: TagAudience(task, AudienceExpression(), speed: 0), missing: [0], waiting: [])
        }
        #expect(work.open(of: try #require(AppID("app-1"))) == 2)
        #expect(work.open(of: try #require(AppID("app-2"))) == 1)
        #expect(work.open(of: try #require(AppID("app-3"))) == 0)
    }

    @Test func `Memory of audiences is counted while they are there`() throws {
        var work = TagWork()
        let task = try Self.task()
        work.begin(task, speed: 0, shards: 1)
        for piece in 0..<3 as Range<UInt16> {
            let part = TagExpansion.Part(
                partition: Partition(index: 1), piece: piece, cids: (0..<100).map { Self.cid($0) }, done: 0)
            work.add(part, to: task.taskID.value)
        }
        #expect(work.bytes >= 300 * 16)
        #expect(work.bytes == work.expansions[task.taskID.value]?.bytes)
        work.remove(task.taskID.value)
        #expect(work.bytes == 0 && work.turns.isEmpty)
    }

    @Test func `A push that waits for a device or for its content leaves the others their turn`() throws {
        var work = TagWork()
        let now = Instant(milliseconds: 10_000)
        let task = try Self.task()
        let name = task.taskID.value
        work.begin(task, speed: 0, shards: 1)
        work.add(TagExpansion.Part(partition: Partition(index: 1), cids: [Self.cid(1)], done: 0), to: name)
        #expect(work.nextTurn(of: name, now: now) == now)
        work.resting[name] = now + .seconds(1)
        #expect(work.nextTurn(of: name, now: now) == now + .seconds(1))
        #expect(work.nextTurn(now: now) == now + .seconds(1))
        work.resting = [:]
        // Its content does not come: it is not waited for longer than the push has time.
        work.late = [name]
        #expect(work.nextTurn(of: name, now: now) == task.usableUntil)
        #expect(work.nextTurn(of: name, now: task.usableUntil) == task.usableUntil)
        work.awaited = name
        work.awaitedSince = now
        #expect(work.nextTurn(now: now) == now + TagWork.patience)
    }
}
