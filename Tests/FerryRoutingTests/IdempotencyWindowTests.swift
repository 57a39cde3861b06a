private import FerryCore
private import FerryRouting
internal import Testing

struct IdempotencyWindowTests {
    private func key(_ number: UInt64) -> Identifier128 { Identifier128(high: number, low: number) }
    private let start = Instant(milliseconds: 1_000_000)

    private func window(entries: Int = 1_000) -> IdempotencyWindow {
        IdempotencyWindow(
            length: .seconds(100), byteBudget: entries * IdempotencyWindow.bytesPerEntry,
            seed: Identifier128(high: 3, low: 5))
    }

    /// An answer with a number of its own.
    private func made(_ number: UInt64) -> RequestAnswer {
        RequestAnswer(
            content: key(number), taskID: TaskID(key(number), monthDay: 1130, kind: .single), wasOnline: false,
            acceptedAt: start)
    }

    private func answer(_ window: IdempotencyWindow, _ number: UInt64) -> UInt64? {
        if case .answered(let answer) = window.find(key(number)) { answer.content.high } else { nil }
    }

    @Test func `A repeat finds the first answer, also while the first try is under way`() {
        var window = window()
        guard case .unknown = window.find(key(1)) else { return #expect(Bool(false), "never heard of") }
        _ = window.begin(key(1), content: key(7))
        guard case .inFlight(let content) = window.find(key(1)) else {
            return #expect(Bool(false), "it is under way")
        }
        #expect(content == key(7))
        window.settle(key(1), made(11), acceptedAt: start, segment: 1)
        #expect(answer(window, 1) == 11)
    }

    @Test func `A first try that came to nothing leaves no trace`() {
        var window = window()
        _ = window.begin(key(1), content: key(7))
        window.abandon(key(1))
        if case .unknown = window.find(key(1)) {} else { Issue.record("it is remembered") }
        window.settle(key(2), made(12), acceptedAt: start, segment: 1)
        window.abandon(key(2))
        #expect(answer(window, 2) == 12)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `It says of every request what a naive window would`(seed: UInt64) {
        var state = seed
        func random(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        var window = window(entries: 40)
        var tried: [UInt64: UInt64] = [:]
        var rows: [(key: UInt64, answer: UInt64)] = []
        func known(_ number: UInt64) -> UInt64? { rows.last { $0.key == number }?.answer }
        for step in 0..<20_000 as Range<UInt64> {
            let number = random(60)
            if let content = tried[number], random(3) > 0 {
                if random(4) == 0 {
                    window.abandon(key(number))
                } else {
                    window.settle(key(number), made(step), acceptedAt: start, segment: 1)
                    rows.append((number, step))
                    if rows.count > 40 { rows.removeFirst() }
                }
                #expect(content < step)
                tried[number] = nil
            } else {
                switch window.begin(key(number), content: key(step)) {
                case .unknown:
                    #expect(tried[number] == nil && known(number) == nil)
                    tried[number] = step
                case .inFlight(let content): #expect(content == key(tried[number] ?? .max))
                case .answered(let answer): #expect(answer.content == key(known(number) ?? .max))
                }
            }
            switch window.find(key(number)) {
            case .unknown: #expect(tried[number] == nil && known(number) == nil)
            case .inFlight(let content): #expect(content == key(tried[number] ?? .max))
            case .answered(let answer): #expect(answer.content == key(known(number) ?? .max))
            }
        }
    }

    @Test func `Answers leave when their window is over and not before`() {
        var window = window()
        window.settle(key(1), made(1), acceptedAt: start, segment: 1)
        window.settle(key(2), made(2), acceptedAt: start + .seconds(50), segment: 1)
        window.expire(now: start + .milliseconds(99_999), limit: 10)
        #expect(answer(window, 1) == 1)
        window.expire(now: start + .seconds(100), limit: 10)
        #expect(answer(window, 1) == nil)
        #expect(answer(window, 2) == 2)
        #expect(window.evictedEarly == 0)
    }

    @Test func `Beyond the budget the oldest leave early and are counted`() {
        var window = window(entries: 3)
        for number in 1...5 as ClosedRange<UInt64> {
            window.settle(key(number), made(number), acceptedAt: start, segment: 1)
        }
        #expect((1...5).map { answer(window, $0) } == [nil, nil, 3, 4, 5])
        #expect(window.evictedEarly == 2)
        #expect(window.count == 3)
    }

    @Test func `A request id that was settled twice is remembered as long as the second time`() {
        var window = window()
        window.settle(key(1), made(1), acceptedAt: start, segment: 1)
        window.settle(key(1), made(2), acceptedAt: start + .seconds(50), segment: 2)
        window.expire(now: start + .seconds(100), limit: 10)
        #expect(answer(window, 1) == 2)
        #expect(window.takeEntries(upTo: 2).count == 1)
        window.expire(now: start + .seconds(150), limit: 10)
        #expect(answer(window, 1) == nil)
        #expect(window.count == 0)
    }

    @Test func `A long life with a small budget remembers exactly the last ones`() {
        var window = window(entries: 1_500)
        for number in 1...10_000 as ClosedRange<UInt64> {
            _ = window.begin(key(number), content: key(number))
            window.settle(key(number), made(number), acceptedAt: start, segment: 1)
        }
        #expect(window.count == 1_500)
        #expect(window.evictedEarly == 8_500)
        for number in 8_501...10_000 as ClosedRange<UInt64> { #expect(answer(window, number) == number) }
        for number in 1...8_500 as ClosedRange<UInt64> { #expect(answer(window, number) == nil) }
    }

    @Test func `A retiring segment gets the answers that lie in it and in earlier ones`() {
        var window = window(entries: 5_000)
        window.settle(key(1), made(1), acceptedAt: start, segment: 0)
        for number in 2...2_500 as ClosedRange<UInt64> {
            window.settle(
                key(number), made(number), acceptedAt: start + .milliseconds(Int64(number)),
                segment: UInt32(number / 1_000 + 1))
        }
        #expect(window.takeEntries(upTo: 1).map(\.answer.content.high) == Array(2...999))
        // The front has left: what lies in the segment is still found.
        window.expire(now: start + .seconds(100) + .milliseconds(1_500), limit: 10_000)
        #expect(window.takeEntries(upTo: 2).map(\.answer.content.high) == Array(1_501...1_999))
    }
}
