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
}
