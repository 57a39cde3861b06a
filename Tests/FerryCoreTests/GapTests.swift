internal import FerryCore
internal import Testing

struct GapTests {
    @Test func `A gap counts by reason and stands at its last drop`() {
        var gap = Gap(upTo: Seq(4))
        gap.add(Seq(4), .expired)
        gap.add(Seq(9), .overflowed)
        gap.add(Seq(7), .overflowed)
        #expect(gap == Gap(upTo: Seq(9), expired: 1, overflowed: 2))
        #expect(gap.count == 3)
    }

    @Test(arguments: DeliveryState.allCases)
    func `Only expiry and overflow make a gap`(_ state: DeliveryState) {
        var gap = Gap(upTo: Seq(1))
        gap.add(Seq(2), state)
        let counts = state == .expired || state == .overflowed
        #expect(gap.count == (counts ? 1 : 0))
        #expect(gap.upTo == (counts ? Seq(2) : Seq(1)))
    }

    @Test func `Counts stay at their ceiling`() {
        var gap = Gap(upTo: Seq(1), expired: .max, overflowed: .max - 1)
        #expect(gap.count == .max)
        gap.add(Seq(2), .expired)
        gap.add(Seq(3), .overflowed)
        gap.add(Seq(4), .overflowed)
        #expect(gap == Gap(upTo: Seq(4), expired: .max, overflowed: .max))
    }

    @Test func `Two gaps become one that tells of both`() {
        var gap = Gap(upTo: Seq(9), expired: 1)
        gap.add(Gap(upTo: Seq(4), expired: 2, overflowed: 3))
        #expect(gap == Gap(upTo: Seq(9), expired: 3, overflowed: 3))
    }

    @Test func `A state is terminal unless the message is still kept`() {
        #expect(DeliveryState.allCases.filter { !$0.isTerminal } == [.kept])
    }

    @Test func `Taking back what was added leaves the count as it was, and never below nothing`() {
        for state in DeliveryState.allCases {
            var gap = Gap(upTo: Seq(4), expired: 1, overflowed: 1)
            gap.add(Seq(9), state)
            let place = gap.upTo
            gap.remove(state)
            #expect(gap == Gap(upTo: place, expired: 1, overflowed: 1))
            var empty = Gap(upTo: Seq(4))
            empty.remove(state)
            #expect(empty == Gap(upTo: Seq(4)))
        }
    }
}
