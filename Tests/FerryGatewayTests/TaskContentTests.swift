private import FerryCore
private import FerryRouting
private import FerryStore
internal import Testing

@testable private import FerryGateway

struct TaskContentTests {
    private static func content(
        _ number: UInt64, payload: Int = 100, alert: OwnAlert? = nil, traits: MessageTraits = .none
    ) throws
        -> TaskContent
    {
        let task = ListTask(
            app: try #require(AppID("app-1")),
            taskID: TaskID(Identifier128(high: 7, low: number), monthDay: 1231, kind: .list),
            createdAt: Instant(milliseconds: 1), timeToLive: 1_000, payloadBytes: UInt32(payload),
            hasAlert: alert != nil, request: Identifier128(high: 1, low: number),
            content: Identifier128(high: 2, low: number))
        return TaskContent(
            task, payload: [UInt8](repeating: UInt8(number), count: payload), alert: alert, traits: traits)
    }

    @Test func `A content comes back from its row, and from no other bytes`() throws {
        let alerts: [OwnAlert?] = [
            nil, OwnAlert(body: Array("{}".utf8), collapseID: nil, isBackground: false),
            OwnAlert(body: Array("{\"aps\":{}}".utf8), collapseID: "news", isBackground: true),
        ]
        var typed = MessageTraits.none
        (typed.kind, typed.route, typed.otherRoute, typed.groupName) = (.notification, .wakeFirst, .ownFirst, "spring")
        for (alert, traits) in alerts.flatMap({ [($0, MessageTraits.none), ($0, typed)] }) {
            let content = try Self.content(1, alert: alert, traits: traits)
            let again = try #require(TaskContent(content.task, encoded: content.encoded))
            #expect(again.payload == content.payload)
            #expect(again.alert == content.alert)
            #expect(again.traits == traits)
            for end in 0..<content.encoded.count {
                #expect(TaskContent(content.task, encoded: Array(content.encoded[..<end])) == nil)
            }
            #expect(TaskContent(content.task, encoded: content.encoded + [0]) == nil)
        }
    }

    @Test func `Contents beyond the limit leave, those first that were used least lately`() throws {
        let one = try Self.content(1).weight
        var cache = TaskContentCache(limit: one * 4)
        for number in UInt64(1)...4 { cache.add(try Self.content(number)) }
        #expect(cache.bytes == one * 4)
        #expect(cache.find(Identifier128(high: 7, low: 1)) != nil)
        cache.add(try Self.content(5))
        #expect(cache.bytes <= one * 3)
        #expect(cache.find(Identifier128(high: 7, low: 1)) != nil)
        #expect(cache.find(Identifier128(high: 7, low: 5)) != nil)
        #expect(cache.find(Identifier128(high: 7, low: 2)) == nil)
    }

    @Test func `A content that is larger than the limit is held while it is the newest`() throws {
        var cache = TaskContentCache(limit: 1)
        cache.add(try Self.content(1))
        #expect(cache.count == 1)
        cache.add(try Self.content(2))
        #expect(cache.find(Identifier128(high: 7, low: 1)) == nil)
        #expect(cache.find(Identifier128(high: 7, low: 2)) != nil)
        cache.remove(Identifier128(high: 7, low: 2))
        #expect(cache.bytes == 0)
    }

    @Test func `A content that is added twice counts once`() throws {
        var cache = TaskContentCache(limit: 10_000)
        cache.add(try Self.content(1))
        cache.add(try Self.content(1, payload: 200))
        #expect(cache.count == 1)
        #expect(cache.bytes == (try Self.content(1, payload: 200)).weight)
    }
}
