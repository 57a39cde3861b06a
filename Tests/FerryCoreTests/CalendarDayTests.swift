internal import FerryCore
internal import Testing

struct CalendarDayTests {
    private let china = UTCOffset(minutes: 480)

    @Test func `every day from 1970 to 9999 is read as it is written, one after the other`() throws {
        var days = 0
        var text = ""
        for number in Int32(0)...2_932_896 where number % 97 == 0 || number < 40_000 {
            let day = CalendarDay(number: number)
            #expect(day.description > text)
            text = day.description
            guard CalendarDay(text) == day else {
                Issue.record("\(number) is written as \(text)")
                return
            }
            days += 1
        }
        #expect(days > 60_000)
        #expect(CalendarDay(number: 2_932_896).description == "9999-12-31")
        #expect(CalendarDay("2024-02-29")?.number == 19_782)
    }

    @Test(arguments: [
        "", "2026-1-30", "2026-13-01", "2026-00-01", "2026-02-30", "2025-02-29", "2026-11-31", "2026-11-00",
        "1969-12-31",
        "2026/11/30", "2026-11-30 ", "٢٠٢٦-11-30", "2026-11-3a", "-026-11-30", "20261130",
    ])
    func `what is no day is none`(text: String) {
        #expect(CalendarDay(text) == nil)
    }

    @Test func `a day begins at midnight of its clocks`() throws {
        let day = try #require(CalendarDay("2026-12-01"))
        #expect(day.start(china) == Instant(milliseconds: 1_796_054_400_000))
        #expect(CalendarDay(of: day.start(china), china) == day)
        #expect(CalendarDay(of: day.start(china).advanced(byMilliseconds: -1), china).description == "2026-11-30")
        #expect(CalendarDay(of: day.start(china), UTCOffset(minutes: 0)).description == "2026-11-30")
        #expect(day.advanced(by: -1).description == "2026-11-30")
    }

    @Test func `a time is told as clocks show it`() throws {
        let day = try #require(CalendarDay("2026-12-01"))
        #expect(day.start(china).clockText(china) == "2026-12-01 00:00:00")
        #expect((day.start(china) + .milliseconds(86_399_999)).clockText(china) == "2026-12-01 23:59:59")
        #expect(day.start(china).clockText(UTCOffset(minutes: -30)) == "2026-11-30 15:30:00")
        for end in [Instant.distantPast, .distantFuture, Instant(milliseconds: .min)] {
            #expect(end.clockText(china).utf8.count == 19)
        }
    }
}
