private import FerryCore
internal import FerryTestSupport
internal import Testing

/// The wheel against a plain list of deadlines.
struct TimerWheelTests {
    private static let tick = TimerWheel.tickMilliseconds

    /// A wheel, the deadlines that it should hold, and the clock of both.
    private struct Pair {
        var wheel: TimerWheel
        var deadlines: [Int: Int64] = [:]
        var now: Int64

        init(now: Int64) {
            self.now = now
            wheel = TimerWheel(now: Instant(milliseconds: now))
        }

        mutating func schedule(_ index: Int, after delay: Int64) {
            wheel.schedule(index, at: Instant(milliseconds: now + delay))
            deadlines[index] = now + delay
        }

        mutating func cancel(_ index: Int) {
            wheel.cancel(index)
            deadlines[index] = nil
        }

        /// Moves on; what fires is each deadline whose tick has come, once. Within a tick nothing does.
        mutating func advance(by milliseconds: Int64) {
            let before = now / tick
            now += milliseconds
            var fired: [Int] = []
            wheel.advance(to: Instant(milliseconds: now), fired: &fired)
            let due =
                now / tick == before ? [] : deadlines.filter { ($0.value + tick - 1) / tick <= now / tick }.map(\.key)
            #expect(fired.sorted() == due.sorted())
            for index in fired { deadlines[index] = nil }
            #expect(wheel.count == deadlines.count)
        }

        func checkWake() {
            guard let earliest = deadlines.values.min() else {
                #expect(wheel.nextWake == nil)
                return
            }
            let ceiling = (max(earliest, now / tick * tick + 1) + tick - 1) / tick * tick
            #expect(
                wheel.nextWake.map { $0.milliseconds <= ceiling } == true, "the next wake is not after the first due")
            #expect(wheel.nextWake.map { $0.milliseconds > now / tick * tick } == true, "the next wake is ahead")
        }
    }

    @Test func `A deadline fires in the first tick at or after it`() {
        for delay in [1, 15, 16, 17, 1_000, 1_024, 65_536, 70_000] as [Int64] {
            var wheel = TimerWheel(now: Instant(milliseconds: 0))
            wheel.schedule(3, at: Instant(milliseconds: delay))
            let due = (delay + 15) / 16 * 16
            var fired: [Int] = []
            wheel.advance(to: Instant(milliseconds: due - 1), fired: &fired)
            #expect(fired == [], "\(delay)")
            wheel.advance(to: Instant(milliseconds: due), fired: &fired)
            #expect(fired == [3], "\(delay)")
            wheel.advance(to: Instant(milliseconds: due * 10), fired: &fired)
            #expect(fired == [3], "\(delay)")
        }
    }

    @Test(arguments: Effort.seeds(30))
    func `A wheel fires what a list of deadlines would, tick by tick`(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var pair = Pair(now: Int64.random(in: 0...3_000_000_000_000, using: &random))
        for _ in 0..<1_500 {
            let index = Int.random(in: 0..<40, using: &random)
            switch UInt8.random(in: 0..<8, using: &random) {
            case 0: pair.schedule(index, after: Int64.random(in: -50...200, using: &random))
            case 1: pair.schedule(index, after: Int64.random(in: 0...3_000, using: &random))
            case 2: pair.cancel(index)
            default: pair.advance(by: Int64.random(in: 0...tickStep, using: &random))
            }
            pair.checkWake()
        }
    }

    @Test func `A deadline years away fires after half a year, and not before`() {
        var wheel = TimerWheel(now: Instant(milliseconds: 5_000))
        wheel.schedule(1, at: .distantFuture)
        var fired: [Int] = []
        wheel.advance(to: Instant(milliseconds: 198 * 86_400_000), fired: &fired)
        #expect(fired == [])
        wheel.advance(to: Instant(milliseconds: 200 * 86_400_000), fired: &fired)
        #expect(fired == [1])
    }

    private var tickStep: Int64 { TimerWheel.tickMilliseconds }

    @Test(arguments: Effort.seeds(30))
    func `A wheel fires what a list of deadlines would, over jumps and past its horizon`(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var pair = Pair(now: Int64.random(in: 0...3_000_000_000_000, using: &random))
        for _ in 0..<400 {
            let index = Int.random(in: 0..<200, using: &random)
            // All magnitudes alike: from a tick to half a year.
            let delay = Int64(1) << Int64.random(in: 0...32, using: &random)
            switch UInt8.random(in: 0..<4, using: &random) {
            case 0, 1: pair.schedule(index, after: delay + Int64.random(in: 0...delay, using: &random))
            case 2: pair.cancel(index)
            default: pair.advance(by: Int64.random(in: 0...delay, using: &random))
            }
            pair.checkWake()
            for index in 0..<200 { #expect(pair.wheel.isScheduled(index) == (pair.deadlines[index] != nil)) }
        }
    }

    @Test func `Following its own wake-ups, a wheel misses nothing by more than a tick`() {
        var random = SplitMix(seed: 7)
        var wheel = TimerWheel(now: Instant(milliseconds: 5))
        var deadlines: [Int64] = []
        for index in 0..<300 {
            let deadline = Int64.random(in: 6...400_000_000, using: &random)
            deadlines.append(deadline)
            wheel.schedule(index, at: Instant(milliseconds: deadline))
        }
        var left = 300
        while let wake = wheel.nextWake {
            var fired: [Int] = []
            wheel.advance(to: wake, fired: &fired)
            for index in fired {
                #expect(deadlines[index] <= wake.milliseconds && wake.milliseconds - deadlines[index] < Self.tick)
                left -= 1
            }
        }
        #expect(left == 0)
    }

    @Test func `Those of one tick all fire, and in order of ticks`() {
        var wheel = TimerWheel(now: Instant(milliseconds: 0))
        for index in 0..<100 { wheel.schedule(index, at: Instant(milliseconds: Int64(1 + index % 10) * 1_000)) }
        var fired: [Int] = []
        wheel.advance(to: Instant(milliseconds: 20_000), fired: &fired)
        #expect(fired.map { $0 % 10 } == fired.map { $0 % 10 }.sorted())
        #expect(Set(fired).count == 100)
    }

    @Test func `Deadlines and times at the ends of their range do not trap`() {
        var wheel = TimerWheel(now: Instant(milliseconds: 1_000))
        wheel.schedule(0, at: .distantFuture)
        wheel.schedule(1, at: Instant(milliseconds: .min))
        wheel.cancel(77)
        var fired: [Int] = []
        wheel.advance(to: Instant(milliseconds: 1_100), fired: &fired)
        #expect(fired == [1])
        wheel.advance(to: .distantPast, fired: &fired)
        #expect(fired == [1] && wheel.isScheduled(0) && !wheel.isScheduled(77))
    }

    @Test func `A hastened deadline only moves closer`() {
        var wheel = TimerWheel(now: Instant(milliseconds: 0))
        wheel.hasten(2, to: .distantFuture)
        #expect(!wheel.isScheduled(2))
        wheel.hasten(2, to: Instant(milliseconds: 500))
        wheel.hasten(2, to: Instant(milliseconds: 9_000))
        wheel.hasten(2, to: Instant(milliseconds: 200))
        wheel.hasten(2, to: Instant(milliseconds: 201))
        var fired: [Int] = []
        wheel.advance(to: Instant(milliseconds: 191), fired: &fired)
        #expect(fired == [])
        wheel.advance(to: Instant(milliseconds: 208), fired: &fired)
        #expect(fired == [2] && wheel.count == 0)
        wheel.hasten(2, to: Instant(milliseconds: 9_000))
        #expect(wheel.isScheduled(2))
    }

    @Test func `Indices far apart cost each other nothing and fire alike`() {
        var wheel = TimerWheel(now: Instant(milliseconds: 0))
        for index in [0, 511, 512, 100_000] { wheel.schedule(index, at: Instant(milliseconds: 32)) }
        wheel.cancel(511)
        var fired: [Int] = []
        wheel.advance(to: Instant(milliseconds: 32), fired: &fired)
        #expect(fired.sorted() == [0, 512, 100_000])
    }

    /// Each tick of a jump was visited: a process that was stopped for days came back to minutes of counting.
    @Test func `A jump of years costs no more than what fires in it`() {
        var wheel = TimerWheel(now: Instant(milliseconds: 0))
        let day: Int64 = 86_400_000
        wheel.schedule(0, at: Instant(milliseconds: 190 * day))
        wheel.schedule(1, at: Instant(milliseconds: 30 * day))
        var fired: [Int] = []
        wheel.advance(to: Instant(milliseconds: 190 * day - 1), fired: &fired)
        #expect(fired == [1])
        wheel.advance(to: Instant(milliseconds: 20 * 365 * day), fired: &fired)
        #expect(fired == [1, 0])
    }
}
