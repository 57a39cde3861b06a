internal import FerryCore
@testable internal import FerryStats
internal import Testing

struct StoryTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let facts: [TimedFact]
        let view: DeviceView
        var isKept = false
        let state: DeliveryState?
        let reason: EndReason?
        let words: [String]
        var testDescription: String { name }
    }

    private static func facts(_ pairs: (Int64, Fact)...) -> [TimedFact] { pairs.map { TimedFact(at($0.0), $0.1) } }
    private static let away = Sample.acceptance(7, wasOnline: false, stub: .due)
    private static let live = Sample.acceptance(7, ttl: nil)
    private static let online = Sample.acceptance(7)
    private static let second = SessionID(rawValue: 0xdef02)

    static let rows: [Row] = [
        Row(
            name: "delivered online",
            facts: facts(
                (-50, .attached(Sample.attachment())), (3, .accepted(online)),
                (4, .sent(Seq(7), Sample.session, isOffLine: false)), (132, .acknowledged(upTo: Seq(9)))),
            view: Sample.view(.attached(Sample.session), acknowledged: 9), state: .delivered, reason: .acknowledged,
            words: ["Delivered", "132 ms after", "session abc01", "offLine=false"]),
        Row(
            name: "flushed",
            facts: facts(
                (-90, .attached(Sample.attachment())), (-60, .detached(Sample.session, .bye, closeCode: 0)),
                (-60, .wentOffline), (1, .accepted(away)), (9, .attached(Sample.attachment(second))),
                (10, .sent(Seq(7), second, isOffLine: true)), (20, .acknowledged(upTo: Seq(7)))),
            view: Sample.view(.attached(second), acknowledged: 7), state: .delivered, reason: .acknowledged,
            words: ["Delivered", "offLine=true", "had been away since \(at(-60).utcText)"]),
        Row(
            name: "sent twice",
            facts: facts(
                (1, .accepted(online)), (2, .sent(Seq(7), Sample.session, isOffLine: false)),
                (5, .sent(Seq(7), second, isOffLine: false)), (8, .acknowledged(upTo: Seq(7)))),
            view: Sample.view(acknowledged: 7), state: .delivered, reason: .acknowledged, words: ["sent 2 times"]),
        Row(
            name: "kept, stub accepted",
            facts: facts(
                (-60, .attached(Sample.attachment())), (-50, .detached(Sample.session, .lost, closeCode: 1003)),
                (1, .accepted(away)), (2, .stubRequested(.standard, upTo: Seq(7))),
                (3, .stubAnswered(.standard, upTo: Seq(7), .accepted))),
            view: Sample.view(kept: 1), isKept: true, state: .kept, reason: nil,
            words: ["Kept", "offline since \(at(-50).utcText)", "code 1003", "stub was accepted", "expires at"]),
        Row(
            name: "kept, stub refused",
            facts: facts(
                (1, .accepted(away)), (2, .stubRequested(.standard, upTo: Seq(7))),
                (3, .stubAnswered(.standard, upTo: Seq(7), .refused("BadDeviceToken")))),
            view: Sample.view(kept: 1), isKept: true, state: .kept, reason: nil,
            words: ["stub was refused", "BadDeviceToken"]),
        Row(
            name: "kept, no token",
            facts: facts((1, .accepted(Sample.acceptance(7, wasOnline: false, stub: .noToken)))),
            view: Sample.view(kept: 1, hasToken: false), isKept: true, state: .kept, reason: nil,
            words: ["no push token"]),
        Row(
            name: "kept, stub waits",
            facts: facts((1, .accepted(away))), view: Sample.view(kept: 1), isKept: true, state: .kept, reason: nil,
            words: ["waits for its turn"]),
        Row(
            name: "kept, connection just lost", facts: facts((1, .accepted(online))),
            view: Sample.view(.grace(until: at(9)), kept: 1), isKept: true, state: .kept, reason: nil,
            words: ["counts as online until", "No stub is due yet"]),
        Row(
            name: "kept, in flight",
            facts: facts((1, .accepted(online)), (2, .sent(Seq(7), Sample.session, isOffLine: false))),
            view: Sample.view(.attached(Sample.session), kept: 1, sentUpTo: 7), isKept: true, state: .kept, reason: nil,
            words: ["was sent in session abc01", "has not acknowledged"]),
        Row(
            name: "kept, behind the window",
            facts: facts(
                (-9, .attached(Sample.attachment())), (-2, .acknowledged(upTo: Seq(2))), (1, .accepted(online))),
            view: Sample.view(.attached(Sample.session), acknowledged: 2, kept: 9, sentUpTo: 6), isKept: true,
            state: .kept, reason: nil, words: ["waits in the window", "nothing since \(at(-2).utcText)"]),
        Row(
            name: "kept after a crash",
            facts: facts((-60, .attached(Sample.attachment())), (1, .accepted(online)), (50, .started)),
            view: Sample.view(.restored(until: at(999)), kept: 1), isKept: true, state: .kept, reason: nil,
            words: ["has not come back since the gateway's start"]),
        Row(
            name: "expired",
            facts: facts(
                (-50, .attached(Sample.attachment())), (-40, .detached(Sample.session, .background, closeCode: 0)),
                (1, .accepted(away)), (60_000, .ended(Seq(7), .ttlRanOut))),
            view: Sample.view(), state: .expired, reason: .ttlRanOut,
            words: ["Expired", "ttl of 1 min", "never sent", "away since \(at(-40).utcText)", "background"]),
        Row(
            name: "live only, nobody there",
            facts: facts(
                (1, .accepted(Sample.acceptance(7, ttl: nil, wasOnline: false, stub: .notWanted))),
                (1, .ended(Seq(7), .noLiveSession))),
            view: Sample.view(), state: .expired, reason: .noLiveSession, words: ["live only", "no live session"]),
        Row(
            name: "live only, session ended",
            facts: facts(
                (1, .accepted(live)), (2, .sent(Seq(7), Sample.session, isOffLine: false)),
                (9, .ended(Seq(7), .liveSessionEnded))),
            view: Sample.view(), state: .expired, reason: .liveSessionEnded,
            words: ["session ended before the device acknowledged"]),
        Row(
            name: "overflowed by count", facts: facts((1, .accepted(away)), (9, .ended(Seq(7), .countCap))),
            view: Sample.view(kept: 3), state: .overflowed, reason: .countCap, words: ["Dropped", "messageCap"]),
        Row(
            name: "overflowed by bytes", facts: facts((1, .accepted(away)), (9, .ended(Seq(7), .byteCap))),
            view: Sample.view(kept: 3), state: .overflowed, reason: .byteCap, words: ["Dropped", "byteCap"]),
        Row(
            name: "unreadable", facts: facts((1, .accepted(away)), (9, .ended(Seq(7), .unreadable))),
            view: Sample.view(), state: .failed, reason: .unreadable, words: ["Failed"]),
        Row(
            name: "the fact of its ack was lost", facts: facts((1, .accepted(online)), (9, .started)),
            view: Sample.view(acknowledged: 9), state: .delivered, reason: .acknowledged,
            words: ["acknowledged everything up to seq 9", "lost"]),
        Row(
            name: "the fact of its end was lost", facts: facts((1, .accepted(online)), (9, .started)),
            view: Sample.view(acknowledged: 2), state: nil, reason: nil,
            words: ["facts of its end were lost", "has run out"]),
        Row(
            name: "an end that a crash undid",
            facts: facts(
                (1, .accepted(away)), (9, .ended(Seq(7), .countCap)), (10, .started),
                (11, .attached(Sample.attachment())), (12, .sent(Seq(7), Sample.session, isOffLine: true)),
                (13, .acknowledged(upTo: Seq(7)))),
            view: Sample.view(acknowledged: 7), state: .delivered, reason: .acknowledged,
            words: ["Delivered", "offLine=true"]),
        Row(
            name: "an end that a crash undid, still kept",
            facts: facts((1, .accepted(away)), (9, .ended(Seq(7), .countCap)), (10, .started)),
            view: Sample.view(kept: 1), isKept: true, state: .kept, reason: nil, words: ["Kept"]),
        Row(
            name: "an end is final",
            facts: facts((1, .accepted(away)), (9, .ended(Seq(7), .ttlRanOut)), (12, .acknowledged(upTo: Seq(9)))),
            view: Sample.view(acknowledged: 9), state: .expired, reason: .ttlRanOut, words: ["Expired"]),
    ]

    @Test(arguments: rows) func `A verdict says what became of a message and why`(row: Row) throws {
        for target in [TimelineTarget.message(Sample.messageID(7)), .task(Sample.taskID(7).value)] {
            let facts = FactSelection.select(row.facts, target: target)
            let story = DeviceStory(
                facts: facts, view: row.view, coverage: coverage(), target: target, isKept: { _ in row.isKept })
            let message = try #require(story.messages.first)
            #expect(story.messages.count == 1)
            #expect(message.state == row.state)
            #expect(message.reason == row.reason)
            for word in row.words { #expect(story.verdict.contains(word), "\(story.verdict)") }
            #expect(story.isFound)
        }
    }

    private func coverage(hasAgedOut: Bool = false) -> TimelineCoverage {
        var coverage = TimelineCoverage()
        coverage.from = at(-1_000)
        coverage.hasAgedOut = hasAgedOut
        return coverage
    }

    private func unknown(_ coverage: TimelineCoverage) -> DeviceStory {
        DeviceStory(
            facts: Self.facts((1, .accepted(Self.online))), view: Sample.view(), coverage: coverage,
            target: .message(Sample.messageID(99)), isKept: { _ in false })
    }

    @Test func `What is not found may have aged out, or was never there`() {
        #expect(unknown(coverage()).verdict.contains("never accepted"))
        #expect(!unknown(coverage()).verdict.contains("aged out"))
        let aged = unknown(coverage(hasAgedOut: true))
        #expect(aged.verdict.contains("has aged out"))
        #expect(aged.verdict.contains("reaches back to \(at(-1_000).utcText)"))
        #expect(!aged.isFound)
        var off = TimelineCoverage()
        off.isOff = true
        #expect(unknown(off).verdict.contains("switched off"))
    }

    @Test(arguments: [true, false]) func `What is not found may have been lost in a crash`(wasStopped: Bool) {
        var facts: [TimedFact] = [TimedFact(at(0), .started)]
        if wasStopped { facts.append(TimedFact(at(1), .stopped)) }
        facts.append(TimedFact(at(2), .started))
        let story = DeviceStory(
            facts: facts, view: Sample.view(kept: 3), coverage: coverage(), target: .message(Sample.messageID(99)),
            isKept: { _ in true })
        #expect(story.verdict.contains("crash") == !wasStopped)
        #expect(story.verdict.contains("3 messages are kept") == !wasStopped)
    }

    @Test func `A stream that begins anew after a loss is not taken for the one before`() {
        let story = DeviceStory(
            facts: Self.facts(
                (1, .accepted(Sample.acceptance(5))), (2, .ended(Seq(5), .ttlRanOut)),
                (3, .accepted(Sample.acceptance(9))),
                (4, .accepted(Sample.acceptance(5))), (5, .acknowledged(upTo: Seq(5)))),
            view: Sample.view(acknowledged: 5), coverage: coverage(), target: nil, isKept: { _ in false })
        #expect(story.messages.map(\.reason) == [.ttlRanOut, nil, .acknowledged])
    }

    @Test func `Without a target all messages are told, each with its state`() {
        let story = DeviceStory(
            facts: Self.facts(
                (1, .accepted(Sample.acceptance(1))), (2, .accepted(Sample.acceptance(2))),
                (3, .accepted(Sample.acceptance(3))), (4, .ended(Seq(2), .ttlRanOut)), (5, .acknowledged(upTo: Seq(2)))),
            view: Sample.view(acknowledged: 2, kept: 1), coverage: coverage(), target: nil, isKept: { $0 == Seq(3) })
        #expect(story.messages.map(\.state) == [.delivered, .expired, .kept])
        #expect(story.verdict.contains("3 messages in the log: 1 kept, 1 delivered, 1 expired"))
    }

    @Test func `A question for one message is answered with its own facts and the device's meanwhile`() {
        let facts = Self.facts(
            (-9, .attached(Sample.attachment())), (0, .accepted(Sample.acceptance(6))), (1, .accepted(Self.online)),
            (2, .sent(Seq(6), Sample.session, isOffLine: false)), (3, .sent(Seq(7), Sample.session, isOffLine: false)),
            (4, .acknowledged(upTo: Seq(6))), (5, .acknowledged(upTo: Seq(7))), (6, .wentOffline),
            (7, .acknowledged(upTo: Seq(9))))
        let chosen = FactSelection.select(facts, target: .message(Sample.messageID(7)))
        #expect(chosen.map(\.at) == [-9, 1, 3, 5].map { at($0) })
    }

    @Test func `Times are told in UTC, durations shortly`() {
        #expect(Instant(milliseconds: 0).utcText == "1970-01-01 00:00:00.000 UTC")
        #expect(Instant(milliseconds: 951_827_696_789).utcText == "2000-02-29 12:34:56.789 UTC")
        #expect(Instant(milliseconds: -1).utcText == "-1 ms")
        #expect(Instant(milliseconds: .max).utcText == "\(Int64.max) ms")
        let texts = [-5, 999, 1_000, 1_250, 61_000, 7_500_000, 100_000_000].map { Duration.milliseconds($0).shortText }
        #expect(texts == ["0 ms", "999 ms", "1 s", "1.2 s", "1 min 1 s", "2 h 5 min", "1 d 3 h"])
    }
}
