internal import FerryAudience
internal import FerryCore
internal import Testing

/// The time in which the gateway was away counts against no device.
struct AbsencesTests {
    private static let day: Int64 = 86_400_000

    private func at(_ days: Int64) -> Instant { Instant(milliseconds: days * Self.day) }
    private func days(_ count: Int64) -> Duration { .milliseconds(count * Self.day) }

    @Test func `a restart is no absence, and neither is the first start`() {
        var absences = Absences()
        let first = absences.note(from: .distantPast, until: at(20_000))
        #expect(!first)
        let short = absences.note(from: at(20_000), until: at(20_000) + .seconds(3_599))
        #expect(!short)
        let backwards = absences.note(from: at(20_000), until: at(19_000))
        #expect(!backwards)
        #expect(absences.gaps.isEmpty)
        let long = absences.note(from: at(20_000), until: at(20_000) + .seconds(3_600))
        #expect(long)
    }

    @Test func `a device that was seen before an outage has missed only what the gateway was there for`() {
        var absences = Absences()
        _ = absences.note(from: at(100), until: at(200))
        #expect(absences.missed(since: at(95), now: at(201)) == days(6))
        #expect(absences.missed(since: at(200), now: at(201)) == days(1))
        _ = absences.note(from: at(210), until: at(220))
        #expect(absences.missed(since: at(95), now: at(221)) == days(16))
        #expect(absences.missed(since: at(205), now: at(221)) == days(6))
        #expect(absences.missed(since: at(221), now: at(221)) == .zero)
    }

    @Test func `the limit of a period lies before no device that has missed it`() {
        var absences = Absences()
        for (from, until) in [(100, 130), (150, 151), (190, 250)] as [(Int64, Int64)] {
            _ = absences.note(from: at(from), until: at(until))
        }
        let times = Array(0...100) + Array(130...150) + Array(151...190) + Array(250...300)
        for now in 250...300 as ClosedRange<Int64> {
            for period in [1, 10, 90] as [Int64] {
                let limit = absences.limit(of: days(period), now: at(now))
                for seen in times.map(Int64.init) where seen <= now {
                    let hasMissed = absences.missed(since: at(seen), now: at(now)) >= days(period)
                    #expect(hasMissed == (at(seen) <= limit), "seen \(seen), now \(now), period \(period)")
                }
            }
        }
    }

    @Test func `what shards wrote down goes together, and many outages take little room and forget nothing`() throws {
        var one = Absences()
        var other = Absences()
        _ = one.note(from: at(100), until: at(130))
        _ = other.note(from: at(100), until: at(130))
        _ = other.note(from: at(140), until: at(150))
        one.merge(other)
        #expect(one == other)
        var many = Absences()
        for number in 0..<1_000 as Range<Int64> {
            _ = many.note(from: at(number * 2 + 1), until: at(number * 2 + 2))
        }
        #expect(many.gaps.count <= 64)
        #expect(many.missed(since: at(1), now: at(2_000)) == days(999))
        let read = try #require(Absences(row: many.row))
        #expect(read == many)
        #expect(read.row.count < 1_024)
    }

    @Test func `a damaged row is none`() {
        var absences = Absences()
        _ = absences.note(from: at(100), until: at(130))
        let row = absences.row
        for length in 0..<row.count { #expect(Absences(row: Array(row.prefix(length))) == nil) }
        #expect(Absences(row: row + [0]) == nil)
        #expect(Absences(row: [2] + row.dropFirst()) == nil)
    }
}
