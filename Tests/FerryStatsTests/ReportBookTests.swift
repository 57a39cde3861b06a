internal import FerryCore
internal import FerryStats
internal import FerryTestSupport
internal import Testing

/// What a shard's book says of what was counted, across days, shards and restarts.
struct ReportBookTests {
    private static let china = UTCOffset(minutes: 480)
    private static let start = Instant(milliseconds: 1_796_054_400_000)  // 2026-12-01 00:00 +08:00
    private let app: AppID
    private let other: AppID

    init() throws {
        app = try #require(AppID("demo"))
        other = try #require(AppID("other"))
    }

    private func book(
        shard: Int = 0, now: Instant = start, retention: Int = 90, taskLimit: Int = 100, rows: [ReportRow] = []
    ) -> ReportBook {
        var book = ReportBook(
            shard: shard, offset: Self.china, now: now, retention: retention, taskLimit: taskLimit)
        for row in rows { book.restore(row) }
        book.begin(app)
        book.begin(other)
        return book
    }

    private func terms(_ number: UInt64, group: String = "", at: Instant = start) -> TaskTerms {
        TaskTerms(
            task: TaskID(Identifier128(high: 7, low: number), monthDay: 1201, kind: .app), acceptedAt: at, group: group)
    }

    private func day(_ text: String, _ book: ReportBook, _ app: AppID) throws -> DayCounters? {
        book.answer(.day(try #require(CalendarDay(text))), of: app).day
    }

    @Test func `what was counted is told by task and by day, of its own app only`() throws {
        var book = book()
        book.accept(0, count: 3)
        book.accept(terms(1, group: "spring"), 0, count: 5)
        book.end(terms(1).task.value, 0, .acknowledged, count: 2)
        book.end(0, .countCap)
        let task = terms(1).task.value
        let told = try #require(book.answer(.tasks([task, Identifier128(high: 0, low: 1)]), of: app).tasks[task])
        #expect(told.accepted == 5 && told.ended(.acknowledged) == 2 && told.kept == 3)
        #expect(book.answer(.tasks([task]), of: other).tasks.isEmpty)
        let today = try #require(try day("2026-12-01", book, app)).messages
        #expect(today.accepted == 8 && today.kept == 5)
        #expect(try day("2026-12-01", book, other)?.messages == ReportCounters())
        #expect(try day("2026-11-30", book, app) == nil)
        #expect(book.answer(.group("spring", from: nil, through: nil), of: app).group == told)
        let later = CalendarDay("2026-12-02")
        #expect(book.answer(.group("spring", from: later, through: nil), of: app).group == nil)
        #expect(book.answer(.group("spring", from: nil, through: later), of: app).group == told)
        #expect(book.answer(.group("spring", from: nil, through: nil), of: other).group == nil)
    }

    @Test func `rows that are read again make the same book, and none is written twice`() throws {
        var book = book()
        book.accept(terms(1), 0, count: 5)
        book.register(1, total: 9)
        book.come(1, before: nil)
        book.noteOnline(1, 4)
        let rows = book.takeRows()
        #expect(rows.count == 3)
        #expect(!book.hasChanges && book.takeRows().isEmpty)
        let again = self.book(rows: rows)
        #expect(
            again.answer(.tasks([terms(1).task.value]), of: app) == book.answer(.tasks([terms(1).task.value]), of: app))
        for app in [app, other] {
            #expect(try day("2026-12-01", again, app) == (try day("2026-12-01", book, app)))
        }
        #expect(try day("2026-12-01", again, other)?.active == 1)
    }

    @Test func `another shard's rows are added, and never written`() throws {
        var first = book()
        first.accept(terms(1), 0, count: 5)
        var second = book(shard: 1)
        second.accept(terms(1), 0, count: 2)
        second.end(terms(1).task.value, 0, .acknowledged)
        var both = book(rows: first.takeRows() + second.takeRows())
        both.finishRestoring(kept: [6], waiting: [terms(1).task.value: 6], corrections: ReportCorrections())
        #expect(!both.hasChanges)
        both.end(terms(1).task.value, 0, .acknowledged, count: 6)
        let told = both.answer(.tasks([terms(1).task.value]), of: app).tasks[terms(1).task.value]
        #expect(told?.accepted == 7 && told?.kept == 0)
        let written = both.takeRows()
        #expect(written.allSatisfy { $0.writer == 0 })
        #expect(book(rows: written).answer(.tasks([terms(1).task.value]), of: app).tasks.values.first?.accepted == 5)
    }

    @Test func `a day begins at midnight of its clocks, and rows of the old one are still written`() throws {
        var book = book()
        book.accept(0)
        book.timePassed(Self.start + .seconds(86_399))
        book.end(0, .acknowledged)
        book.timePassed(Self.start + .seconds(86_400))
        book.accept(0, count: 2)
        #expect(book.day.description == "2026-12-02")
        let again = self.book(now: Self.start + .seconds(86_401), rows: book.takeRows())
        #expect(try day("2026-12-01", again, app)?.messages.accepted == 1)
        #expect(try day("2026-12-01", again, app)?.messages.kept == 0)
        #expect(try day("2026-12-02", again, app)?.messages.accepted == 2)
    }

    @Test func `a device is active once a day`() throws {
        var book = book()
        book.come(0, before: Self.start + .milliseconds(-1))
        book.come(0, before: Self.start)
        book.come(0, before: Self.start + .seconds(5))
        #expect(try day("2026-12-01", book, app)?.active == 1)
    }

    @Test func `what is older than its days goes with its rows, and what was kept on it is kept on`() throws {
        var rows = Set<[UInt8]>()
        var book = book(retention: 2)
        func write() {
            for row in book.takeRows() {
                if row.value == nil { rows.remove(row.key) } else { rows.insert(row.key) }
            }
        }
        book.accept(terms(1), 0, count: 5)
        write()
        for hours in 1...120 {
            book.timePassed(Self.start + .seconds(Int64(hours) * 3_600))
            write()
        }
        #expect(book.answer(.tasks([terms(1).task.value]), of: app).tasks.isEmpty)
        #expect(try day("2026-12-01", book, app) == nil)
        #expect(book.sum(0).kept == 5 && book.sum(0).accepted == 0)
        #expect(rows.count <= 4)
    }

    @Test func `of too many tasks the oldest that have ended go`() throws {
        var book = book(taskLimit: 3)
        for number in 1...5 as ClosedRange<UInt64> {
            book.accept(terms(number), 0, count: 1)
            if number != 1 { book.end(terms(number).task.value, 0, .acknowledged) }
        }
        let names = (1...5 as ClosedRange<UInt64>).map { terms($0).task.value }
        #expect(Set(book.answer(.tasks(names), of: app).tasks.keys) == [names[0], names[3], names[4]])
        let gone = book.takeRows().filter { $0.value == nil }
        #expect(gone.count == 2)
    }

    @Test func `rows that the disk refused are written again`() throws {
        var book = book()
        book.accept(terms(1), 0, count: 5)
        let rows = book.takeRows()
        book.timePassed(Self.start + .seconds(86_400))
        book.refused(rows)
        let again = self.book(now: Self.start + .seconds(86_400), rows: book.takeRows())
        #expect(again.answer(.tasks([terms(1).task.value]), of: app).tasks.values.first?.accepted == 5)
        #expect(try day("2026-12-01", again, app)?.messages.accepted == 5)
    }

    @Test func `a damaged row is left out`() throws {
        var book = book()
        book.accept(terms(1, group: "spring"), 0, count: 5)
        book.end(terms(1).task.value, 0, .ttlRanOut)
        for row in book.takeRows() {
            let value = try #require(row.value)
            for count in value.indices {
                let cut = self.book(rows: [ReportRow(writer: 0, key: row.key, value: Array(value[..<count]))])
                #expect(cut.sum(0) == ReportCounters())
                #expect(cut.answer(.tasks([terms(1).task.value]), of: app).tasks.isEmpty)
            }
            for place in row.key.indices {
                var key = row.key
                key[place] ^= 0xff
                _ = self.book(rows: [ReportRow(writer: 0, key: key, value: value)])
            }
            for place in value.indices {
                for byte in [0, 0x7f, 0x80, 0xff] as [UInt8] {
                    var changed = value
                    changed[place] = byte
                    _ = self.book(rows: [ReportRow(writer: 0, key: row.key, value: changed)]).sum(0)
                }
            }
        }
    }
}
