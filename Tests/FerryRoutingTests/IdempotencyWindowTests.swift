private import FerryCore
private import FerryRouting
internal import Testing

struct IdempotencyWindowTests {
    private func key(_ number: UInt64) -> Identifier128 { Identifier128(high: 0, low: number) }

    /// Each retirement took the answers of all segments before it along again.
    @Test func `an answer goes to the tables once, and is found from then on too`() {
        var window = IdempotencyWindow<String>(length: .seconds(60), byteBudget: 1 << 20)
        let now = Instant(milliseconds: 1_000)
        window.settle(key(1), "tables", acceptedAt: now, segment: 0)
        window.settle(key(2), "first", acceptedAt: now, segment: 4)
        window.settle(key(3), "second", acceptedAt: now, segment: 5)
        #expect(window.takeEntries(upTo: 4).map(\.answer) == ["first"])
        #expect(window.takeEntries(upTo: 5).map(\.answer) == ["second"])
        #expect(window.takeEntries(upTo: 6).isEmpty)
        guard case .answered("first") = window.find(key(2)) else {
            Issue.record("the answer is gone")
            return
        }
    }
}
