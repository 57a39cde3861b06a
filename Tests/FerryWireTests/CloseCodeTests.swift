private import FerryWire
internal import Testing

struct CloseCodeTests {
    @Test func `a code's thousand is its duty, also for codes that nobody has named yet`() {
        let cases: [(UInt16, CloseCode.Duty)] = [
            (0, .reconnectWithBackoff), (999, .reconnectWithBackoff), (1000, .reconnectWithBackoff),
            (1999, .reconnectWithBackoff), (2000, .reconnectAtOnce), (2999, .reconnectAtOnce), (3000, .registerAnew),
            (3999, .registerAnew), (4000, .stopUntilForeground), (4999, .stopUntilForeground), (5000, .stop),
            (5999, .stop), (6000, .reconnectWithBackoff), (.max, .reconnectWithBackoff),
        ]
        for (number, duty) in cases { #expect(CloseCode(rawValue: number).duty == duty) }
    }

    @Test func `every named code has a text of its own`() {
        #expect(Set(CloseCode.all.map(\.text)).count == CloseCode.all.count)
        #expect(!CloseCode.all.contains { $0.text == CloseCode(rawValue: 1999).text })
    }
}
