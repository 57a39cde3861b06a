private import FerryCore
@testable internal import FerryGateway
internal import Testing

struct ConnectionWritesTests {
    @Test func `A connection may cause so many writes in a minute and no more`() {
        var connection = Connection()
        let start = Instant(milliseconds: 1_700_000_000_500)
        for _ in 0..<3 {
            let isAllowed = connection.mayWrite(now: start, limit: 3)
            #expect(isAllowed)
        }
        for _ in 0..<600 {
            let isAllowed = connection.mayWrite(now: start + .seconds(58), limit: 3)
            #expect(!isAllowed)
        }
        let isAllowed = connection.mayWrite(now: start + .seconds(60), limit: 3)
        #expect(isAllowed)
    }
}
