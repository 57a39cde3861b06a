private import FerryCore
@testable internal import FerryGateway
internal import Testing

struct WriteCountTests {
    @Test func `A connection may cause so many writes in a minute and no more`() {
        var writes = WriteCount()
        let start = Instant(milliseconds: 1_700_000_000_500)
        for _ in 0..<3 {
            let isAllowed = writes.add(now: start, limit: 3)
            #expect(isAllowed)
        }
        for _ in 0..<600 {
            let isAllowed = writes.add(now: start + .seconds(58), limit: 3)
            #expect(!isAllowed)
        }
        let isAllowed = writes.add(now: start + .seconds(60), limit: 3)
        #expect(isAllowed)
    }
}
