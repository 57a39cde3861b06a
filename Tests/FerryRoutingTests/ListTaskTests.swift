private import FerryCore
internal import FerryRouting
internal import Testing

struct ListTaskTests {
    private static let start = Instant(milliseconds: 1_000_000)
    private static let window = Duration.seconds(24 * 3_600)

    private static func task(
        _ number: UInt64, at: Instant = start, ttl: Int64 = 60_000, request: UInt64? = nil, app: String = "app-1"
    ) throws -> ListTask {
        ListTask(
            app: try #require(AppID(app)),
            taskID: TaskID(Identifier128(high: 7, low: number), monthDay: 1231, kind: .list), createdAt: at,
            timeToLive: ttl, payloadBytes: 100, hasAlert: number % 2 == 0,
            request: Identifier128(high: 1, low: request ?? number), content: Identifier128(high: 2, low: number))
    }

    @Test func `A task comes back from its row, and from no other bytes`() throws {
        for task in [try Self.task(1), try Self.task(2, ttl: 0), try Self.task(3, at: .distantPast, ttl: 259_200_000)] {
            #expect(ListTask(task.encoded) == task)
            for end in 0..<task.encoded.count { #expect(ListTask(Array(task.encoded[..<end])) == nil) }
            #expect(ListTask(task.encoded + [0]) == nil)
            #expect(ListTask([2] + task.encoded.dropFirst()) == nil)
        }
        // A ttl that no sender may ask for.
        #expect(ListTask(try Self.task(1, ttl: 259_200_001).encoded) == nil)
    }

    @Test func `Devices may be added for as long as the ttl, and to a live-only task for the usual one`() throws {
        #expect(try Self.task(1).usableUntil == Self.start + .seconds(60))
        #expect(try Self.task(1, ttl: 0).usableUntil == Self.start + .seconds(7_200))
    }

    @Test func `A content stays until the last message that may refer to it is over`() throws {
        var table = ListTaskTable(requestWindow: Self.window)
        let task = try Self.task(1)
        table.add(task)
        let lastMessage = task.usableUntil + .milliseconds(task.timeToLive)
        #expect(table.takeEnded(now: lastMessage).isEmpty)
        #expect(table.takeEnded(now: task.contentOverAt + .seconds(-1)).isEmpty)
        #expect(table.takeEnded(now: task.contentOverAt + .seconds(60)) == [.content(task)])
        #expect(table.contentBytes == 0)
        #expect(table[task.taskID.value] == task, "its name is still known to those who repeat the call")
        #expect(table.takeEnded(now: Self.start + Self.window).isEmpty)
        #expect(table.takeEnded(now: Self.start + Self.window + .seconds(60)) == [.task(task)])
        #expect(table[task.taskID.value] == nil)
        #expect(table.find(request: task.request) == .unknown)
        #expect(table.count == 0)
        #expect(table.count(of: task.app) == 0)
        #expect(table.nextEnd == .distantFuture)
    }

    @Test func `A task that lives longer than request ids are remembered is known to its end`() throws {
        var table = ListTaskTable(requestWindow: .seconds(1))
        let task = try Self.task(1)
        table.add(task)
        #expect(table.takeEnded(now: task.contentOverAt + .seconds(60)) == [.content(task), .task(task)])
    }

    @Test func `A repeat finds the first try while it is on its way, and its task afterwards`() throws {
        var table = ListTaskTable(requestWindow: Self.window)
        let task = try Self.task(1)
        #expect(table.find(request: task.request) == .unknown)
        table.begin(task)
        #expect(table.find(request: task.request) == .inFlight(content: task.content))
        #expect(table.count(of: task.app) == 1)
        #expect(table[task.taskID.value] == nil, "what is not on disk can get no devices")
        table.add(task)
        #expect(table.find(request: task.request) == .known(task))
        #expect(table.count(of: task.app) == 1)
        #expect(table.contentBytes == 100)
    }

    @Test func `What the disk refused leaves nothing behind`() throws {
        var table = ListTaskTable(requestWindow: Self.window)
        let task = try Self.task(1)
        table.begin(task)
        table.abandon(task)
        #expect(table.find(request: task.request) == .unknown)
        #expect(table.count(of: task.app) == 0)
        #expect(table.contentBytes == 0)
        #expect(table.nextEnd == .distantFuture)
    }

    @Test func `Tasks are counted by app and end in order of time`() throws {
        var table = ListTaskTable(requestWindow: Self.window)
        let tasks = try (1...50).map {
            try Self.task(UInt64($0), at: Self.start + .seconds(Int64($0 * 7_919 % 50) * 60), app: "app-\($0 % 2)")
        }
        for task in tasks { table.add(task) }
        #expect(table.count(of: try #require(AppID("app-0"))) == 25)
        #expect(table.count == 50)
        let ended = table.takeEnded(now: Self.start + .seconds(200_000))
        #expect(ended.count == 100)
        let contents = ended.compactMap { if case .content(let task) = $0 { task } else { nil } }
        #expect(contents.map(\.createdAt) == tasks.map(\.createdAt).sorted())
        #expect(table.count == 0)
        #expect(table.contentBytes == 0)
    }
}
