internal import FerryCore
@testable internal import FerryStats
private import Foundation
internal import Testing

/// Stories of devices to which much happens: neither their size nor their verdict may suffer.
struct LongStoryTests {
    private static let covered = TimelineCoverage()

    /// So many messages to a device that is away, each with its stub, then the end of the first.
    private static func busy(_ count: UInt64, end: EndReason? = .ttlRanOut) -> [TimedFact] {
        var facts: [TimedFact] = []
        for seq in 1...count {
            let time = Int64(seq) * 10
            facts.append(TimedFact(at(time), .accepted(Sample.acceptance(seq, wasOnline: false, stub: .due))))
            facts.append(TimedFact(at(time + 1), .stubRequested(.standard, upTo: Seq(seq))))
            facts.append(TimedFact(at(time + 2), .stubAnswered(.standard, upTo: Seq(seq), .accepted)))
        }
        if let end { facts.append(TimedFact(at(Int64(count) * 10 + 9), .ended(Seq(1), end))) }
        return facts
    }

    private static func story(
        _ facts: [TimedFact], of seq: UInt64, limit: Int = 500, isKept: Bool = false
    ) -> DeviceStory {
        let target = TimelineTarget.message(Sample.messageID(seq))
        return DeviceStory(
            facts: FactSelection.select(facts, target: target), view: Sample.view(), coverage: covered, target: target,
            limit: limit, isKept: { _ in isKept })
    }

    private static func object(_ json: [UInt8]) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
    }

    @Test func `A message is not credited with a stub that was asked for a later one`() throws {
        var facts = Self.busy(2, end: nil)
        facts[5] = TimedFact(at(22), .stubAnswered(.standard, upTo: Seq(2), .refused("BadDeviceToken")))
        let all = DeviceStory(
            facts: facts, view: Sample.view(), coverage: Self.covered, target: nil, isKept: { _ in true })
        for message in all.messages + Self.story(facts, of: 1, isKept: true).messages
            + Self.story(facts, of: 2, isKept: true).messages
        {
            #expect(message.events.count == 3)
            let isFirst = message.acceptance.seq == Seq(1)
            #expect(message.verdict.contains("The stub was accepted at \(at(12).utcText)") == isFirst)
            #expect(message.verdict.contains("refused") == !isFirst)
        }
    }

    @Test func `A stub that went down with the gateway is told of again, and its answer settles it`() throws {
        let request = Fact.stubRequested(.standard, upTo: Seq(1))
        let facts = [
            TimedFact(at(0), .accepted(Sample.acceptance(1, wasOnline: false, stub: .due))), TimedFact(at(1), request),
            TimedFact(at(2), .started), TimedFact(at(3), request),
            TimedFact(at(4), .stubAnswered(.standard, upTo: Seq(1), .accepted)), TimedFact(at(5), request),
        ]
        let message = try #require(Self.story(facts, of: 1, isKept: true).messages.first)
        #expect(message.events.map(\.at) == [0, 1, 3, 4].map { at($0) })
        #expect(message.verdict.contains("accepted at \(at(4).utcText)"))
    }

    @Test func `The story of many messages is no longer than its facts, and an answer has a bound`() throws {
        let facts = Self.busy(1_666)
        let story = DeviceStory(
            facts: facts, view: Sample.view(), coverage: Self.covered, target: nil, isKept: { _ in true })
        #expect(story.messages.reduce(0) { $0 + $1.events.count } == facts.count)
        let whole = try Self.object(story.json(cid: Sample.device, limit: 1 << 26))
        #expect(whole["more"] as? Bool == false)
        #expect((whole["messages"] as? [Any])?.count == 1_666)
        for limit in [20_000, DeviceStory.answerBytes] {
            let json = story.json(cid: Sample.device, limit: limit)
            #expect(json.count < limit + 2_000 && json.count > limit / 2)
            let cut = try Self.object(json)
            #expect(cut["more"] as? Bool == true)
            let last = try #require((cut["messages"] as? [[String: Any]])?.last)
            #expect(last["seq"] as? String == "1666")
        }
    }

    @Test(arguments: [1, 2, 10, 500])
    func `A message that waited long is told to its end, however much came to others`(limit: Int) throws {
        var facts = Self.busy(3_000)
        for _ in 0..<2_000 { facts.insert(TimedFact(at(5_000), .tokenChanged(hasToken: true)), at: 1_500) }
        let story = Self.story(facts, of: 1, limit: limit)
        let message = try #require(story.messages.first)
        #expect(message.state == .expired && message.reason == .ttlRanOut)
        #expect(message.verdict.contains("The stub was accepted at \(at(12).utcText)"))
        #expect(message.events.last?.fact == .ended(Seq(1), .ttlRanOut))
        if limit > 1 { #expect(message.events.first?.at == at(10)) }
        if limit >= 10 { #expect(message.events.count == 4) }
        #expect(message.events.count + story.events.count == limit)
        #expect(story.isThinned)
        #expect(try Self.object(story.json(cid: Sample.device))["more"] as? Bool == true)
    }

    @Test func `One message's own events do not burst an answer, and keep their ends`() throws {
        var facts = [TimedFact(at(0), .accepted(Sample.acceptance(1)))]
        for time in 1...5_000 {
            facts.append(
                TimedFact(at(Int64(time)), .sent(Seq(1), SessionID(rawValue: UInt64(time)), isOffLine: false)))
        }
        facts.append(TimedFact(at(6_000), .acknowledged(upTo: Seq(1))))
        let story = Self.story(facts, of: 1, limit: 10_000)
        #expect(story.verdict.contains("sent 5000 times"))
        let json = story.json(cid: Sample.device, limit: 50_000)
        #expect(json.count < 52_000)
        let messages = try #require(try Self.object(json)["messages"] as? [[String: Any]])
        let events = try #require(messages[0]["events"] as? [[String: Any]]).compactMap { $0["event"] as? String }
        #expect(events.first == "accepted" && events.last == "acknowledged" && events.count > 100)
    }

    @Test func `A life of more sessions than a question may hold loses its middle and keeps its verdict`() throws {
        var selection = FactSelection(.message(Sample.messageID(1)), limit: 100)
        selection.take(TimedFact(at(0), .accepted(Sample.acceptance(1, wasOnline: false, stub: .due))))
        for time in 1...1_000 { selection.take(TimedFact(at(Int64(time)), .wentOffline)) }
        selection.take(TimedFact(at(2_000), .stubRequested(.standard, upTo: Seq(1))))
        for time in 2_001...3_000 { selection.take(TimedFact(at(Int64(time)), .wentOffline)) }
        selection.take(TimedFact(at(4_000), .ended(Seq(1), .ttlRanOut)))
        #expect(selection.facts.count <= 100 && selection.isThinned)
        #expect(selection.facts.first?.at == at(0) && selection.facts.last?.at == at(4_000))
        #expect(selection.facts.contains { $0.at == at(2_000) })
    }

    @Test func `What happens after a stream began anew is not told of a message before`() throws {
        let facts = [
            TimedFact(at(0), .accepted(Sample.acceptance(5))), TimedFact(at(1), .started),
            TimedFact(at(2), .accepted(Sample.acceptance(2))), TimedFact(at(3), .acknowledged(upTo: Seq(9))),
        ]
        let story = DeviceStory(
            facts: FactSelection.select(facts, target: .message(Sample.messageID(5))), view: Sample.view(),
            coverage: Self.covered, target: .message(Sample.messageID(5)), isKept: { _ in false })
        #expect(story.messages.map(\.reason) == [nil])
    }

    @Test func `What may be told in an unreadable part of the log is not said never to have been`() {
        var coverage = TimelineCoverage()
        coverage.isPartial = true
        let story = DeviceStory(
            facts: [], view: Sample.view(), coverage: coverage, target: .message(Sample.messageID(5)),
            isKept: { _ in false })
        #expect(story.verdict.contains("Either it was never accepted"))
        #expect(story.verdict.contains("could not be read"))
    }

    /// A start notes messages again of which it cannot know whether it was done before.
    @Test(arguments: [true, false])
    func `A message that is noted again at a start is told of once, with all that came to it`(wasNoted: Bool) {
        let own = Sample.acceptance(5, wasOnline: false, stub: .due)
        let again = Sample.acceptance(5, wasOnline: false, stub: .due, isNotedAgain: true)
        let later = Sample.acceptance(9, wasOnline: false, stub: .due)
        var facts: [TimedFact] = []
        if wasNoted {
            facts += [
                TimedFact(at(1), .accepted(own)), TimedFact(at(2), .sent(Seq(5), Sample.session, isOffLine: true)),
            ]
            facts += [TimedFact(at(3), .accepted(later))]
        }
        facts += [TimedFact(at(10), .started), TimedFact(at(11), .accepted(again))]
        if !wasNoted { facts.append(TimedFact(at(12), .accepted(later))) }
        facts += [
            TimedFact(at(13), .sent(Seq(9), Sample.session, isOffLine: true)),
            TimedFact(at(14), .acknowledged(upTo: Seq(9))),
        ]
        let view = Sample.view(acknowledged: 9)
        let all = DeviceStory(facts: facts, view: view, coverage: Self.covered, target: nil, isKept: { _ in false })
        #expect(all.messages.map(\.acceptance.seq) == [Seq(5), Seq(9)])
        #expect(all.messages.allSatisfy { $0.state == .delivered })
        for seq in [5, 9] as [UInt64] {
            let target = TimelineTarget.message(Sample.messageID(seq))
            let one = DeviceStory(
                facts: FactSelection.select(facts, target: target), view: view, coverage: Self.covered, target: target,
                isKept: { _ in false })
            #expect(one.messages.map(\.acceptance.seq) == [Seq(seq)])
            #expect(one.messages.first?.reason == .acknowledged)
            let events = one.messages.first?.events ?? []
            #expect(events.contains { if case .sent = $0.fact { true } else { false } } == (wasNoted || seq == 9))
        }
    }

    @Test func `A message that is noted again behind later ones takes its own place`() {
        let facts: [TimedFact] = [
            TimedFact(at(1), .accepted(Sample.acceptance(9))),
            TimedFact(at(11), .accepted(Sample.acceptance(5, isNotedAgain: true))),
            TimedFact(at(12), .ended(Seq(5), .deviceFull)), TimedFact(at(14), .acknowledged(upTo: Seq(9))),
        ]
        let all = DeviceStory(
            facts: facts, view: Sample.view(acknowledged: 9), coverage: Self.covered, target: nil,
            isKept: { _ in false })
        #expect(all.messages.map(\.acceptance.seq) == [Seq(5), Seq(9)])
        #expect(all.messages.map(\.reason) == [.deviceFull, .acknowledged])
    }
}
