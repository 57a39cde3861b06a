private import FerrySession
private import FerryTestSupport
private import FerryWire
internal import Testing

struct AnswerWindowTests {
    @Test func `an answer covers everything whose outcome is known, and nothing behind what is open`() {
        var window = AnswerWindow(messages: 4, bytes: 100)
        #expect((0..<4).map { _ in window.take(bytes: 10) } == [1, 2, 3, 4])
        #expect(window.take(bytes: 10) == nil)
        window.settle(2, .accepted)
        #expect(window.nextAnswer() == nil)
        window.settle(1, .refused(code: 7, text: "no"))
        #expect(
            window.nextAnswer() == LinkAnswerFrame(upTo: 2, refusals: [LinkRefusal(number: 1, code: 7, text: "no")]))
        #expect(window.nextAnswer() == nil)
        #expect(window.heldBytes == 20)
        #expect(window.take(bytes: 10) == 5)
    }

    @Test func `bytes bound the window too`() {
        var window = AnswerWindow(messages: 10, bytes: 25)
        #expect(window.take(bytes: 20) == 1)
        #expect(window.take(bytes: 6) == nil)
        #expect(window.take(bytes: 5) == 2)
        window.settle(1, .accepted)
        #expect(window.nextAnswer() == LinkAnswerFrame(upTo: 1))
        #expect(window.take(bytes: 20) == 3)
    }

    @Test func `many refusals take several answers, none of which goes beyond the frame's limit`() {
        var window = AnswerWindow(messages: 200, bytes: .max)
        for _ in 0..<200 { _ = window.take(bytes: 1) }
        for number in (1...200 as ClosedRange<UInt64>).reversed() {
            window.settle(number, .refused(code: .max, text: String(repeating: "x", count: 500)))
        }
        var answers: [LinkAnswerFrame] = []
        while let answer = window.nextAnswer() { answers.append(answer) }
        #expect(answers.map(\.upTo) == [64, 128, 192, 200])
        #expect(answers.flatMap(\.refusals).map(\.number) == Array(1...200))
        #expect(answers.allSatisfy { $0.body().count < 20_000 })
    }

    @Test func `nothing from an unanswered push on is answered`() {
        var window = AnswerWindow(messages: 8, bytes: 100)
        for _ in 0..<5 { _ = window.take(bytes: 1) }
        for number: UInt64 in [1, 2, 4, 5] { window.settle(number, .accepted) }
        window.settle(3, .unanswered)
        #expect(window.open == 0)
        #expect(window.nextAnswer()?.upTo == 2)
        #expect(window.nextAnswer() == nil)
    }

    /// Against a list of outcomes, by chance.
    @Test func `every push is answered once, in order, whatever the order of the outcomes`() {
        for seed in Effort.seeds(200) {
            var random = SplitMix(seed: seed)
            let size = Int.random(in: 1...9, using: &random)
            var window = AnswerWindow(messages: size, bytes: 1_000)
            var outcomes: [Bool?] = []
            var answered = 0
            for _ in 0..<300 {
                switch Int.random(in: 0..<4, using: &random) {
                case 0, 1:
                    let isFull = outcomes.count - answered == size
                    let number = window.take(bytes: 3)
                    #expect(number == (isFull ? nil : UInt64(outcomes.count + 1)))
                    if number != nil { outcomes.append(nil) }
                case 2:
                    guard let index = outcomes.indices.filter({ outcomes[$0] == nil }).randomElement(using: &random)
                    else { continue }
                    let isAccepted = Bool.random(using: &random)
                    outcomes[index] = isAccepted
                    window.settle(UInt64(index + 1), isAccepted ? .accepted : .refused(code: 1, text: ""))
                    // A second outcome, and ones of numbers that are not open, change nothing.
                    window.settle(UInt64(index + 1), .refused(code: 2, text: ""))
                    window.settle(UInt64(outcomes.count + 1), .accepted)
                    window.settle(0, .accepted)
                default:
                    let expected = outcomes.firstIndex { $0 == nil } ?? outcomes.count
                    let answer = window.nextAnswer()
                    #expect(answer?.upTo == (expected > answered ? UInt64(expected) : nil))
                    let refused = (answered..<expected).filter { outcomes[$0] == false }.map { UInt64($0 + 1) }
                    #expect(answer?.refusals.map(\.number) ?? [] == refused)
                    answered = expected
                }
                #expect(window.heldBytes == 3 * (outcomes.count - answered))
                #expect(window.open == outcomes.count { $0 == nil })
            }
        }
    }
}
