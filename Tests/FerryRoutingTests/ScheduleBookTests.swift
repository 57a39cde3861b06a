internal import FerryCore
internal import FerryRouting
internal import FerryTestSupport
internal import Testing

struct ScheduleBookTests {
    private static let start = Instant(milliseconds: 1_700_000_000_000)

    private static func call(_ number: UInt64, app: String = "app", after: Duration = .seconds(600)) throws
        -> ScheduledCall
    {
        ScheduledCall(
            app: try #require(AppID(app)),
            taskID: TaskID(Identifier128(high: 9, low: number), monthDay: 1_130, kind: .app),
            kind: .all, createdAt: start, releaseAt: start + after, request: Identifier128(high: 1, low: number),
            content: Identifier128(high: 2, low: number), body: [1, 2, 3])
    }

    @Test func `A call is due at its time and once`() throws {
        var book = ScheduleBook()
        let call = try Self.call(1)
        #expect(book.add(call) == [])
        #expect(book.nextDue == call.releaseAt)
        #expect(book.takeDue(now: call.releaseAt + .milliseconds(-1)).release == [])
        #expect(book.takeDue(now: call.releaseAt).release == [call])
        #expect(book.takeDue(now: call.releaseAt + .seconds(60)).release == [])
        #expect(book.unsettled == 1)
        book.tryAgain(call.taskID.value, at: call.releaseAt + .seconds(5))
        #expect(book.takeDue(now: call.releaseAt + .seconds(4)).release == [])
        #expect(book.takeDue(now: call.releaseAt + .seconds(5)).release == [call])
        #expect(book.settle(call.taskID.value, .released) == [])
        #expect(book.find(call.taskID, of: call.app) == call.ended(.released))
        #expect(book.waitingCount(of: call.app) == 0)
        #expect(book.takeDue(now: call.releaseAt + .seconds(86_400)).release == [])
    }

    @Test func `What is due comes in the order of its time`() throws {
        var book = ScheduleBook()
        let calls = try (1...5).map { try Self.call($0, after: .seconds(Int64(10 - $0))) }
        for call in calls { #expect(book.add(call) == []) }
        #expect(book.takeDue(now: Self.start + .seconds(20)).release == calls.reversed())
    }

    @Test func `It is cancelled until the last minute, and a stop comes later too`() throws {
        for (left, isStop, expected) in [
            (61, false, .begun), (60, false, .tooLate), (1, false, .tooLate), (0, false, .alreadyRun),
            (60, true, .begun), (0, true, .begun), (-5, true, .begun),
        ] as [(Int64, Bool, ScheduleBook.Cancelling)] {
            var book = ScheduleBook()
            let call = try Self.call(1)
            _ = book.add(call)
            let now = call.releaseAt + .seconds(-left)
            #expect(book.beginCancelling(call.taskID, of: call.app, now: now, isStop: isStop) == expected)
            guard expected == .begun else { continue }
            #expect(book.takeDue(now: call.releaseAt + .seconds(60)).release == [], "it is on its way to be cancelled")
            book.keptWaiting(call.taskID.value)
            #expect(book.takeDue(now: call.releaseAt + .seconds(60)).release == [call], "it was not cancelled")
            let late = book.beginCancelling(call.taskID, of: call.app, now: call.releaseAt, isStop: true)
            #expect(late == .alreadyRun, "it is on its way")
        }
    }

    @Test func `Another app and another name find nothing`() throws {
        var book = ScheduleBook()
        let call = try Self.call(1)
        _ = book.add(call)
        let other = try #require(AppID("other"))
        #expect(book.find(call.taskID, of: other) == nil)
        #expect(book.beginCancelling(call.taskID, of: other, now: Self.start) == .unknown)
        let renamed = TaskID(call.taskID.value, monthDay: 101, kind: .app)
        #expect(book.find(renamed, of: call.app) == nil)
        #expect(book.beginCancelling(renamed, of: call.app, now: Self.start) == .unknown)
    }

    @Test func `What has ended is told for a week, and of each app the newest thousand`() throws {
        var book = ScheduleBook()
        let kept = try Self.call(1, app: "other")
        _ = book.add(kept.ended(.cancelled))
        for number in 2...1_001 { #expect(book.add(try Self.call(UInt64(number)).ended(.released)) == []) }
        #expect(book.add(try Self.call(1_002).ended(.released)) == [try Self.call(2).ended(.released)])
        #expect(book.count == 1_001)
        let over = kept.releaseAt + ScheduleBook.remembered
        #expect(book.takeDue(now: over + .milliseconds(-1)).forget == [])
        #expect(book.takeDue(now: over).forget.count == 1_001)
        #expect(book.count == 0)
        #expect(book.nextDue == .distantFuture)
    }

    /// Against a plain list, by chance: at most one end for each, and never both.
    @Test(arguments: Effort.seeds(20))
    func `Of a release and a cancelling one happens`(_ seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var book = ScheduleBook()
        var now = Self.start
        var calls: [ScheduledCall] = []
        var releasing: Set<Int> = []
        var cancelling: Set<Int> = []
        var ends: [Int: ScheduledCall.State] = [:]
        for _ in 0..<400 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                let after = Duration.milliseconds(
                    now.milliseconds - Self.start.milliseconds + Int64.random(in: 1...200_000, using: &random))
                let call = try Self.call(UInt64(calls.count), after: after)
                calls.append(call)
                _ = book.add(call)
            case 1: now = now + .milliseconds(Int64.random(in: 0...60_000, using: &random))
            case 2:
                for call in book.takeDue(now: now).release {
                    let number = Int(call.taskID.value.low)
                    #expect(call.releaseAt <= now && ends[number] == nil && !cancelling.contains(number))
                    #expect(releasing.insert(number).inserted)
                }
            case 3:
                guard let call = calls.randomElement(using: &random) else { continue }
                let number = Int(call.taskID.value.low)
                let isStop = Bool.random(using: &random)
                let answer = book.beginCancelling(call.taskID, of: call.app, now: now, isStop: isStop)
                #expect(answer == .begun || !(isStop && ends[number] == nil && !releasing.contains(number)))
                guard answer == .begun else { continue }
                #expect(ends[number] == nil && !releasing.contains(number))
                cancelling.insert(number)
            case 4:
                guard let number = releasing.randomElement(using: &random) else { continue }
                releasing.remove(number)
                if Bool.random(using: &random) {
                    _ = book.settle(calls[number].taskID.value, .released)
                    ends[number] = .released
                } else {
                    book.tryAgain(calls[number].taskID.value, at: now + .seconds(1))
                }
            default:
                guard let number = cancelling.randomElement(using: &random) else { continue }
                cancelling.remove(number)
                if Bool.random(using: &random) {
                    _ = book.settle(calls[number].taskID.value, .cancelled)
                    ends[number] = .cancelled
                } else {
                    book.keptWaiting(calls[number].taskID.value)
                }
            }
            #expect(book.unsettled == releasing.count + cancelling.count)
        }
        for (number, call) in calls.enumerated() {
            #expect(book.find(call.taskID, of: call.app)?.state == ends[number] ?? .waiting)
        }
        #expect(!ends.isEmpty)
    }

    @Test(arguments: ScheduledCall.State.allCases)
    func `A call is read from its row as it was, and from nothing else`(state: ScheduledCall.State) throws {
        let call = state == .waiting ? try Self.call(7) : try Self.call(7).ended(state)
        let bytes = call.encoded
        #expect(ScheduledCall(bytes) == call)
        for count in 0..<bytes.count { #expect(ScheduledCall(Array(bytes.prefix(count))) == nil) }
        #expect(ScheduledCall(bytes + [0]) == nil)
    }
}
