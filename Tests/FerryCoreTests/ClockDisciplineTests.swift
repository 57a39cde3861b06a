private import FerryCore
internal import Testing

/// Two clocks that a test moves.
private struct Clocks {
    var boot: Int64 = 5_000
    var wall: Int64 = 1_700_000_000_000
    var discipline: ClockDiscipline
    var notices: [ClockDiscipline.Notice] = []
    var told: [Instant] = []

    init(floor: Instant = .distantPast) {
        discipline = ClockDiscipline(
            wall: Instant(milliseconds: wall), boot: Instant(milliseconds: boot), floor: floor)
        told = [now]
    }

    var now: Instant {
        var copy = discipline
        return copy.now(boot: Instant(milliseconds: boot))
    }

    mutating func pass(seconds: Int) {
        for _ in 0..<seconds {
            boot += 1_000
            wall += 1_000
            if let notice = discipline.sampled(
                wall: Instant(milliseconds: wall), boot: Instant(milliseconds: boot))
            {
                notices.append(notice)
            }
            told.append(discipline.now(boot: Instant(milliseconds: boot)))
        }
    }

    /// How far the told time is behind the wall clock, in milliseconds.
    var behind: Int64 { wall - now.milliseconds }

    var neverGoesBack: Bool { zip(told, told.dropFirst()).allSatisfy { $0 <= $1 } }
    var longestStep: Int64 { zip(told, told.dropFirst()).map { $1.milliseconds - $0.milliseconds }.max() ?? 0 }
}

struct ClockDisciplineTests {
    @Test func `A wall clock that is set a year ahead expires nothing at once`() {
        var clocks = Clocks()
        clocks.pass(seconds: 10)
        let before = clocks.now
        clocks.wall += 365 * 86_400_000
        clocks.pass(seconds: 599)
        #expect(clocks.now == before + .seconds(599))
        #expect(clocks.notices == [.stepped(by: .milliseconds(365 * 86_400_000))])
    }

    @Test(arguments: [Int64(3_600_000), -3_600_000])
    func `A step is followed after ten minutes, slowly, without a jump and never backwards`(step: Int64) {
        var clocks = Clocks()
        clocks.wall += step
        clocks.pass(seconds: 602)
        #expect(clocks.notices == [.stepped(by: .milliseconds(step)), .confirmed(by: .milliseconds(step))])
        clocks.pass(seconds: 40_000)
        #expect(clocks.behind == 0)
        #expect(clocks.notices.last == .settled)
        #expect(clocks.neverGoesBack)
        #expect(clocks.longestStep <= 1_100)
    }

    @Test func `An operator's word spares the ten minutes`() {
        var clocks = Clocks()
        clocks.wall += 100_000
        clocks.pass(seconds: 1)
        #expect(clocks.discipline.confirmStep() == .confirmed(by: .seconds(100)))
        #expect(clocks.discipline.confirmStep() == nil)
        clocks.pass(seconds: 10)
        #expect(clocks.behind == 99_000)
    }

    @Test func `A step that is taken back leaves no trace`() {
        var clocks = Clocks()
        clocks.wall += 100_000
        clocks.pass(seconds: 300)
        clocks.wall -= 100_000
        clocks.pass(seconds: 1_000)
        #expect(clocks.notices == [.stepped(by: .seconds(100)), .settled])
        #expect(clocks.behind == 0)
    }

    @Test func `A second step starts the ten minutes anew`() {
        var clocks = Clocks()
        clocks.wall += 100_000
        clocks.pass(seconds: 590)
        clocks.wall += 900_000
        clocks.pass(seconds: 590)
        #expect(clocks.notices == [.stepped(by: .seconds(100)), .stepped(by: .seconds(1_000))])
        #expect(clocks.behind == 1_000_000)
    }

    @Test(arguments: [Int64(59_000), -59_000, 40])
    func `A small correction is slewed without a word`(correction: Int64) {
        var clocks = Clocks()
        clocks.wall += correction
        clocks.pass(seconds: 700)
        #expect(clocks.notices.isEmpty)
        #expect(clocks.behind == 0)
        #expect(clocks.neverGoesBack)
    }

    @Test func `A wall clock behind the journal's last time is an alarm, and the time goes on from there`() {
        let floor = Instant(milliseconds: 1_700_000_000_000 + 7_200_000)
        var clocks = Clocks(floor: floor)
        #expect(clocks.now == floor)
        clocks.pass(seconds: 5)
        #expect(clocks.notices == [.stepped(by: .seconds(-7_200))])
        #expect(clocks.now == floor + .seconds(5))
    }

    @Test func `A floor that is found later lifts the time and nothing lowers it again`() {
        var clocks = Clocks()
        let boot = Instant(milliseconds: clocks.boot)
        let start = clocks.now
        clocks.discipline.raise(to: start + .seconds(30), boot: boot)
        #expect(clocks.now == start + .seconds(30))
        clocks.discipline.raise(to: start, boot: boot)
        #expect(clocks.now == start + .seconds(30))
        clocks.pass(seconds: 100)
        #expect(clocks.neverGoesBack)
    }

    @Test func `Times at the ends of the range do not trap`() {
        for wall in [Int64.min, .max, 0] {
            for boot in [Int64.min, .max, 0] {
                var discipline = ClockDiscipline(wall: Instant(milliseconds: wall), boot: .distantPast)
                _ = discipline.sampled(wall: Instant(milliseconds: boot), boot: Instant(milliseconds: boot))
                _ = discipline.confirmStep()
                _ = discipline.sampled(wall: Instant(milliseconds: wall), boot: Instant(milliseconds: boot))
                _ = discipline.now(boot: Instant(milliseconds: boot))
            }
        }
    }
}
