private import FerryCore
internal import Testing

struct InstantTests {
    /// 00:00 UTC of days whose count since 1970 is known.
    @Test(
        arguments: [
            (0, 101), (58, 228), (59, 301), (364, 1231), (365, 101), (789, 229), (790, 301), (11_015, 228),
            (11_016, 229),
            (11_017, 301), (19_782, 229), (19_783, 301), (20_453, 1231), (20_454, 101), (47_540, 228), (47_541, 301),
            (-1, 1231), (-365, 101), (-719_162, 101),
        ] as [(Int64, UInt16)])
    func `A day has its month and number, leap years and centuries too`(_ day: Int64, _ expected: UInt16) {
        let start = day * 86_400_000
        #expect(Instant(milliseconds: start).monthDay == expected)
        #expect(Instant(milliseconds: start + 86_399_999).monthDay == expected)
        #expect(Instant(milliseconds: start - 1).monthDay != expected)
    }

    @Test func `Every day follows the one before`() {
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as [UInt16]
        var (year, month, day) = (1970, 1 as UInt16, 1 as UInt16)
        for count in 0..<60_000 as Range<Int64> {
            #expect(Instant(milliseconds: count * 86_400_000 + 1).monthDay == month * 100 + day)
            let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            day += 1
            if day > lengths[Int(month) - 1] + (month == 2 && isLeap ? 1 : 0) { (month, day) = (month + 1, 1) }
            if month > 12 { (year, month) = (year + 1, 1) }
        }
    }

    @Test func `Arithmetic stays at the ends of its range`() {
        #expect(Instant(milliseconds: 5) + .seconds(1) == Instant(milliseconds: 1_005))
        #expect(Instant(milliseconds: 5) + .seconds(-1) == Instant(milliseconds: -995))
        #expect(Instant.distantFuture + .milliseconds(1) == .distantFuture)
        #expect(Instant.distantFuture + .seconds(Int64.max) == .distantFuture)
        #expect(Instant(milliseconds: .min) + .milliseconds(-1) == Instant(milliseconds: .min))
        #expect(Instant(milliseconds: 7) - Instant(milliseconds: 9) == .milliseconds(-2))
        #expect(Instant.distantFuture - Instant(milliseconds: -1) == .milliseconds(Int64.max))
        #expect(Instant(milliseconds: .min) - Instant(milliseconds: 1) == .milliseconds(Int64.min))
        #expect(Instant.distantPast < Instant(milliseconds: 1))
    }

    @Test func `A duration is whole milliseconds, towards zero`() {
        #expect(Duration.microseconds(1_999).inMilliseconds == 1)
        #expect(Duration.microseconds(-1_999).inMilliseconds == -1)
        #expect(Duration.nanoseconds(-1).inMilliseconds == 0)
        #expect((Duration.seconds(3) + .milliseconds(7)).inMilliseconds == 3_007)
        #expect(Duration.seconds(Int64.max).inMilliseconds == .max)
        #expect(Duration.seconds(Int64.min).inMilliseconds == .min)
    }

    /// The first and last moment that the type holds trapped.
    @Test func `No moment is without a day`() {
        for milliseconds in [Int64.min, .min + 1, .max] {
            let monthDay = Instant(milliseconds: milliseconds).monthDay
            #expect((1...12).contains(monthDay / 100) && (1...31).contains(monthDay % 100))
        }
    }
}
