private import FerryCore
private import FerrySession
internal import Testing

/// Each boundary of silence, one millisecond before, at and after it, with the times that the gateway really uses.
struct KeepAliveTests {
    private static let start = Instant(milliseconds: 1_000_000)

    private static func at(_ milliseconds: Int64) -> Instant { start + .milliseconds(milliseconds) }

    private static func make() -> KeepAlive {
        KeepAlive(interval: .seconds(240), now: start)
    }

    /// Looks once, at one moment.
    private static func look(_ keepAlive: KeepAlive, _ milliseconds: Int64) -> KeepAlive.Verdict {
        var copy = keepAlive
        return copy.check(now: at(milliseconds), policy: SessionPolicy())
    }

    @Test func `Silence ends a connection after one and a half keep-alive times`() {
        let keepAlive = Self.make()
        #expect(Self.look(keepAlive, 359_999) == .fine)
        #expect(Self.look(keepAlive, 360_000) == .keepAliveExpired)
        #expect(Self.look(keepAlive, 360_001) == .keepAliveExpired)
        #expect(keepAlive.deadline(SessionPolicy()) == Self.at(360_000))
    }

    @Test func `With messages in flight the device is probed at half the ack deadline, once`() {
        var keepAlive = Self.make()
        keepAlive.sent(now: Self.at(100))
        #expect(keepAlive.deadline(SessionPolicy()) == Self.at(5_100))
        #expect(Self.look(keepAlive, 5_099) == .fine)
        #expect(Self.look(keepAlive, 5_101) == .probe)
        #expect(keepAlive.check(now: Self.at(5_100), policy: SessionPolicy()) == .probe)
        #expect(keepAlive.check(now: Self.at(5_100), policy: SessionPolicy()) == .fine)
        #expect(keepAlive.deadline(SessionPolicy()) == Self.at(10_100))
    }

    @Test func `With messages in flight silence ends at the ack deadline`() {
        var keepAlive = Self.make()
        keepAlive.sent(now: Self.at(100))
        #expect(keepAlive.check(now: Self.at(5_100), policy: SessionPolicy()) == .probe)
        #expect(Self.look(keepAlive, 10_099) == .fine)
        #expect(Self.look(keepAlive, 10_100) == .ackDeadlineExpired)
        #expect(Self.look(keepAlive, 10_101) == .ackDeadlineExpired)
    }

    @Test func `Sending more does not restart the ack deadline`() {
        var keepAlive = Self.make()
        keepAlive.sent(now: Self.at(0))
        keepAlive.sent(now: Self.at(9_000))
        #expect(Self.look(keepAlive, 10_000) == .ackDeadlineExpired)
    }

    @Test func `Any byte restarts the ack deadline and the next probe`() {
        var keepAlive = Self.make()
        keepAlive.sent(now: Self.at(0))
        #expect(keepAlive.check(now: Self.at(5_000), policy: SessionPolicy()) == .probe)
        keepAlive.heard(now: Self.at(9_999))
        #expect(Self.look(keepAlive, 14_998) == .fine)
        #expect(Self.look(keepAlive, 14_999) == .probe)
        #expect(Self.look(keepAlive, 19_999) == .ackDeadlineExpired)
    }

    @Test func `Signs of life without an acknowledgement end at the progress deadline`() {
        var keepAlive = Self.make()
        keepAlive.sent(now: Self.at(0))
        for second in 1...59 as ClosedRange<Int64> { keepAlive.heard(now: Self.at(second * 1_000)) }
        #expect(Self.look(keepAlive, 59_999) == .fine)
        #expect(Self.look(keepAlive, 60_000) == .nothingAcknowledged)
        keepAlive.progressed(isEmpty: false, now: Self.at(59_500))
        #expect(Self.look(keepAlive, 60_000) == .fine)
        for second in 60...119 as ClosedRange<Int64> { keepAlive.heard(now: Self.at(second * 1_000)) }
        #expect(Self.look(keepAlive, 119_499) == .fine)
        #expect(Self.look(keepAlive, 119_500) == .nothingAcknowledged)
    }

    @Test func `With nothing in flight only the keep-alive time counts`() {
        var keepAlive = Self.make()
        keepAlive.sent(now: Self.at(0))
        keepAlive.progressed(isEmpty: true, now: Self.at(1_000))
        #expect(Self.look(keepAlive, 200_000) == .fine)
        keepAlive.sent(now: Self.at(2_000))
        keepAlive.stopWaiting()
        #expect(Self.look(keepAlive, 200_000) == .fine)
        #expect(keepAlive.deadline(SessionPolicy()) == Self.at(360_000))
    }

    @Test func `Times at the ends of their range do not trap`() {
        var policy = SessionPolicy()
        policy.ackDeadline = .seconds(Int64.max)
        policy.progressDeadline = .seconds(Int64.max)
        var keepAlive = KeepAlive(interval: .seconds(Int64.max / 2), now: .distantFuture)
        keepAlive.sent(now: .distantFuture)
        _ = keepAlive.check(now: .distantFuture, policy: policy)
        #expect(keepAlive.deadline(policy) <= .distantFuture)
    }

    @Test func `What a device wishes is kept within its bounds`() {
        let policy = SessionPolicy()
        #expect(policy.keepAlive(wished: 0) == .seconds(240))
        #expect(policy.keepAlive(wished: 4) == .seconds(5))
        #expect(policy.keepAlive(wished: 5) == .seconds(5))
        #expect(policy.keepAlive(wished: 3_600) == .seconds(3_600))
        #expect(policy.keepAlive(wished: 3_601) == .seconds(3_600))
        #expect(policy.keepAlive(wished: .max) == .seconds(3_600))
        #expect(policy.window(wished: 0) == 64)
        #expect(policy.window(wished: 1) == 1)
        #expect(policy.window(wished: 1_025) == 1_024)
        #expect(policy.window(wished: .max) == 1_024)
    }
}
